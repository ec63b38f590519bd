"""A deep belief network that learns as a whole from what its code gives back."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, conv_transpose2d

import harmonium as hm
from harmonium.learning.objectives import Reconstruction, SummedLayers
from harmonium.learning.starts import initialize_layers, layer_rates
from harmonium.models import DBN

LEVELS = 255
K = 4 / LEVELS


def squash(field: Tensor) -> Tensor:
    return LEVELS * (K * field).sigmoid()


def by_hand(dbn: DBN, upward: list[hm.RBM], x: Tensor) -> Tensor:
    """The loss of `conv, dense` of sigmoid units, written out: no class of harmonium takes part."""
    conv, dense = upward
    h = squash(conv2d(x, conv.weight, stride=2, padding=1) + conv.hidden_bias)
    code = squash(h.flatten(1) @ dense.weight + dense.hidden_bias)
    conv, dense = dbn[0], dbn[1]
    h = squash(code @ dense.weight.mT + dense.visible_bias).view(h.shape)
    field = conv_transpose2d(h, conv.weight, stride=2, padding=1) + conv.visible_bias
    softplus = nn.functional.softplus(K * field) * (LEVELS / K)
    return (softplus - field * x).flatten(1).sum(1).mean()


@pytest.fixture
def small(generator: torch.Generator) -> tuple[DBN, Tensor]:
    dbn = DBN.from_spec("conv 3 4x4/2, dense 5", shape=(1, 8, 8), levels=LEVELS, generator=generator).double()
    x = LEVELS * torch.rand(7, 1, 8, 8, dtype=torch.float64, generator=generator)
    initialize_layers(dbn, x, spread=0.5)
    return dbn, x


@pytest.mark.parametrize("untied", [False, True])
def test_the_gradient_is_that_of_the_whole_written_out(untied: bool, small: tuple[DBN, Tensor]) -> None:
    """Tied, a weight gets the sum of both ways; untied, each its own. The gradient of a stopped loss is another."""
    dbn, x = small
    if untied:
        dbn = dbn.untied()
        with torch.no_grad():
            for p in dbn.recognition.parameters():
                p.mul_(1.1)
    upward = list(dbn.recognition) if untied else list(dbn)
    expected = torch.autograd.grad(by_hand(dbn, upward, x), list(dbn.parameters()), allow_unused=True)  # type: ignore[arg-type]
    Reconstruction().accumulate_grad(dbn, x)
    for (name, p), grad in zip(dbn.named_parameters(), expected, strict=True):
        if grad is None:  # biases of what is drawn the other way
            assert p.grad is None and untied, name
        else:
            assert p.grad is not None and torch.allclose(p.grad, grad, rtol=1e-9, atol=1e-9 * grad.abs().max()), name
    stopped = copy.deepcopy(dbn)
    stopped.zero_grad()
    SummedLayers().accumulate_grad(stopped, x)
    low, other = dbn[0].weight.grad, stopped[0].weight.grad
    assert low is not None and other is not None
    assert torch.cosine_similarity(low.flatten(), other.flatten(), dim=0).abs() < 0.99


def test_the_loss_is_the_likelihood_of_the_data_given_the_code(generator: torch.Generator) -> None:
    """For Gaussian units `-log N(v; θ, σ²)`; for exact units with levels it adds up to 1 over all images."""
    gaussian = DBN([hm.RBM(hm.Gaussian(3, initial_sigma=0.7), hm.Bernoulli(2), generator=generator)]).double()
    v = torch.randn(5, 3, dtype=torch.float64, generator=generator)
    mean = gaussian.reconstruct(v)
    expected = -torch.distributions.Normal(mean, 0.7).log_prob(v).sum(1).mean()
    assert Reconstruction().loss(gaussian, v).item() == pytest.approx(expected.item(), rel=1e-6)
    exact = DBN.from_spec("dense 2", shape=(2,), levels=3, exact=True, generator=generator).double()
    field = exact.field_below(torch.tensor([[1.0, 2.0]], dtype=torch.float64))
    states = torch.cartesian_prod(torch.arange(4.0), torch.arange(4.0)).double()
    units = exact.visible
    logs = units.inner(field, states) + units.total(units.log_base(states)) - units.total(units.log_partition(field))
    assert logs.exp().sum().item() == pytest.approx(1.0)


def test_the_whole_learns_more_than_its_parts(generator: torch.Generator) -> None:
    """Images of 12 numbers through a code of 12: 180 updates more by the whole leave far less than 180 by parts."""
    basis = torch.randn(12, 64, generator=generator)
    x = LEVELS * (0.5 * torch.randn(600, 12, generator=generator) @ basis).sigmoid().view(-1, 1, 8, 8)
    dbn = DBN.from_spec("conv 16 4x4/2, dense 40, dense 12", shape=(1, 8, 8), levels=LEVELS, generator=generator)
    initialize_layers(dbn, x, spread=0.5)

    def learn(dbn: DBN, objective: hm.learning.objectives.Objective, epochs: int) -> float:
        adam = torch.optim.Adam(layer_rates(dbn, 0.05))
        hm.fit(dbn, x, objective, optimizer=adam, epochs=epochs, batch_size=100, monitors=[], generator=generator)
        with torch.no_grad():
            return ((dbn.reconstruct(x) - x).square().sum() / (x - x.mean(0)).square().sum()).item()

    learn(dbn, SummedLayers(), 10)
    parts = learn(copy.deepcopy(dbn), SummedLayers(), 30)
    tied = learn(copy.deepcopy(dbn), Reconstruction(), 30)
    untied = learn(dbn.untied(), Reconstruction(), 30)
    assert tied < 0.9 * parts and untied < 0.8 * parts  # 0.64 to 0.78 and 0.52 to 0.61 with six seeds


def test_noise_is_added_to_the_code(small: tuple[DBN, Tensor], generator: torch.Generator) -> None:
    dbn, x = small
    with torch.no_grad():
        plain = Reconstruction().loss(dbn, x)
        noisy = [Reconstruction(0.3).loss(dbn, x, generator=torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    assert noisy[0] == noisy[1] != noisy[2] and noisy[0] > plain
    assert math.isfinite(noisy[0].item())


def test_what_it_measures_is_recorded(small: tuple[DBN, Tensor], generator: torch.Generator) -> None:
    dbn, x = small
    adam = torch.optim.Adam(layer_rates(dbn, 1e-9))
    history = hm.fit(dbn, x, Reconstruction(), optimizer=adam, epochs=1, batch_size=7, generator=generator)
    with torch.no_grad():
        share = (dbn.reconstruct(x) - x).square().sum() / (x - x.mean(0)).square().sum()
    assert history.records[-1]["unexplained"] == pytest.approx(share.item(), rel=1e-4)


def test_only_a_network_learns_by_it() -> None:
    with pytest.raises(TypeError, match="Reconstruction trains a DBN"):
        hm.fit(hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2)), torch.ones(4, 3), Reconstruction(), epochs=1)
