"""Networks as energies: the formulas, the shapes, the modes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import harmonium as hm
from harmonium.models.frozen import frozen
from harmonium.types import EnergyModel
from tests.neural.quadrature import Quadratic

NETWORKS = {
    "mlp": lambda generator, spectral: hm.MLP((1, 8, 8), 5, hidden=(12, 7), spectral=spectral, generator=generator),
    "conv": lambda generator, spectral: hm.networks.SmallConv(
        (1, 8, 8), 5, channels=(4, 6), hidden=8, spectral=spectral, generator=generator
    ),
    "residual": lambda generator, spectral: hm.networks.SmallResidual(
        (1, 8, 8), 5, channels=(4, 6), spectral=spectral, generator=generator
    ),
}


@pytest.fixture
def jem(generator: torch.Generator) -> hm.JEM:
    return hm.JEM(hm.MLP(3, 4, hidden=(16,), generator=generator)).double()


def test_a_joint_model_is_its_formulas(jem: hm.JEM, generator: torch.Generator) -> None:
    x = torch.randn(6, 3, generator=generator, dtype=torch.float64)
    f = jem.net(x)
    energies = torch.stack([jem.energy(x, y) for y in range(4)], -1)
    torch.testing.assert_close(energies, -f)
    torch.testing.assert_close(jem.free_energy(x), -f.exp().sum(-1).log())
    torch.testing.assert_close(jem.predict_proba(x), f.exp() / f.exp().sum(-1, keepdim=True))
    assert torch.equal(jem.classify(x), f.argmax(-1))
    y = torch.tensor([0, 3, 1, 2, 0, 1])
    torch.testing.assert_close(jem.energy(x, y), energies[torch.arange(6), y])
    torch.testing.assert_close(jem.given_class(y).free_energy(x), energies[torch.arange(6), y])


def test_class_values_may_be_huge() -> None:
    class Huge(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * torch.tensor([1e4, -1e4])

    jem = hm.JEM(Huge(), shape=1)
    x = torch.tensor([[1.0], [-1.0]])
    assert torch.equal(jem.free_energy(x), torch.tensor([-1e4, -1e4]))
    loss = hm.learning.objectives.JointLikelihood(generation_weight=0.0).loss(jem, {"x": x, "y": torch.tensor([1, 1])})
    assert loss.item() == pytest.approx(1e4)


@pytest.mark.parametrize("batch", [(), (2,), (3, 2)])
def test_leading_axes_are_batch(batch: tuple[int, ...], generator: torch.Generator) -> None:
    x = torch.randn(*batch, 1, 8, 8, generator=generator)
    for make in NETWORKS.values():
        jem = hm.JEM(make(generator, False))
        assert jem.free_energy(x).shape == batch
        assert jem.class_logits(x).shape == (*batch, 5)
        torch.testing.assert_close(jem.free_energy(x).flatten(), jem.free_energy(x.reshape(-1, 1, 8, 8)))


def test_the_base_measure_is_a_gaussian(generator: torch.Generator) -> None:
    x = torch.randn(5, 2, generator=generator, dtype=torch.float64)
    net = Quadratic(2.0)
    bare, based = hm.NeuralEBM(net), hm.NeuralEBM(net, base_std=0.5)
    torch.testing.assert_close(based.free_energy(x) - bare.free_energy(x), x.square().sum(-1) / 0.5)
    joint = hm.MLP(2, 3, generator=generator).double()
    plain, measured = hm.JEM(joint), hm.JEM(joint, base_std=0.5)
    torch.testing.assert_close(plain.predict_proba(x), measured.predict_proba(x))
    torch.testing.assert_close(measured.energy(x, 1) - plain.energy(x, 1), x.square().sum(-1) / 0.5)


def test_shapes_are_asked_for_and_checked() -> None:
    with pytest.raises(ValueError, match="shape of one sample is not known"):
        hm.NeuralEBM(nn.Linear(3, 1))
    model = hm.NeuralEBM(nn.Linear(3, 1), shape=3)
    assert model.free_energy(torch.zeros(2, 3)).shape == (2,)
    with pytest.raises(ValueError, match=r"`x` must have shape \(\*batch, 3\)"):
        model.free_energy(torch.zeros(2, 4))
    with pytest.raises(TypeError, match="to match the parameters"):
        model.free_energy(torch.zeros(2, 3, dtype=torch.float64))
    with pytest.raises(ValueError, match="Use JEM"):
        hm.NeuralEBM(nn.Linear(3, 4), shape=3).free_energy(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="must return"):
        hm.JEM(nn.Linear(3, 4), shape=3, n_classes=5).class_logits(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="Classes must lie in 0..3"):
        hm.JEM(nn.Linear(3, 4), shape=3).energy(torch.zeros(2, 3), 4)


def test_models_meet_the_protocol(jem: hm.JEM) -> None:
    for model in (jem, hm.NeuralEBM(Quadratic()), jem.given_class(1), hm.laws.GaussianLaw(torch.zeros(2))):
        assert isinstance(model, EnergyModel)


def test_chains_start_in_the_box(jem: hm.JEM, generator: torch.Generator) -> None:
    x = hm.JEM(jem.net, box=(-3.0, 2.0)).initial(4000, generator=generator)
    assert x.shape == (4000, 3) and x.dtype == torch.float64
    assert -3.0 <= x.min() < -2.9 and 1.9 < x.max() <= 2.0
    assert abs(x.mean().item() + 0.5) < 4 * 5 / 12**0.5 / 12000**0.5


def test_sampling_given_a_class_and_painting_in(jem: hm.JEM, generator: torch.Generator) -> None:
    given = torch.tensor([0.25, float("nan"), float("nan")], dtype=torch.float64)
    x = hm.sample(jem, 5, n_steps=20, given=given, generator=generator)
    assert torch.equal(x[:, 0], torch.full((5,), 0.25, dtype=torch.float64))
    assert x[:, 1:].std() > 0
    y = torch.tensor([0, 1, 2, 3, 0])
    assert hm.sample(jem.given_class(y), 5, n_steps=5, generator=generator).shape == (5, 3)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("spectral", [False, True])
def test_networks_are_drawn_from_the_generator(name: str, spectral: bool) -> None:
    before = torch.get_rng_state()
    first, second = (NETWORKS[name](torch.Generator().manual_seed(3), spectral) for _ in range(2))
    other = NETWORKS[name](torch.Generator().manual_seed(4), spectral)
    assert torch.equal(torch.get_rng_state(), before)
    x = torch.linspace(-1, 1, 128).reshape(2, 1, 8, 8)
    assert torch.equal(first.eval()(x), second.eval()(x))
    assert not torch.equal(first(x), other.eval()(x))


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("spectral", [False, True])
def test_networks_are_smooth_and_treat_samples_alone(name: str, spectral: bool, generator: torch.Generator) -> None:
    net = NETWORKS[name](generator, spectral).double().eval()
    x = torch.randn(3, 1, 8, 8, generator=generator, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(net(x)[:1], net(x[:1]))
    assert torch.autograd.gradgradcheck(lambda v: net(v).logsumexp(-1).sum(), x[:1].detach().requires_grad_())


def test_spectral_normalization_bounds_every_layer(generator: torch.Generator) -> None:
    def largest(net: nn.Module) -> list[float]:
        layers = [m for m in net.modules() if isinstance(m, nn.Linear)]
        return [torch.linalg.matrix_norm(layer.weight.detach(), 2).item() for layer in layers]

    sizes = {
        spectral: hm.MLP(6, 2, hidden=(20, 20), spectral=spectral, generator=generator) for spectral in (True, False)
    }
    with torch.no_grad():
        for net in sizes.values():
            net.train()
            for parameter in net.parameters():
                parameter.mul_(3.0)
            for _ in range(30):
                net(torch.zeros(1, 6))
    assert all(size == pytest.approx(1.0, abs=0.02) for size in largest(sizes[True]))
    assert max(largest(sizes[False])) > 2.0


def test_a_spectral_layer_stands_still_in_evaluation(generator: torch.Generator) -> None:
    net = hm.MLP(6, 2, hidden=(20,), spectral=True, generator=generator)
    states = []
    for mode in (False, False, True):
        net.train(mode)
        net(torch.zeros(1, 6))
        states.append(torch.cat([b.clone() for b in net.buffers()]))
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[1], states[2])


def test_unknown_activation() -> None:
    with pytest.raises(ValueError, match="smooth ones. Got 'relu'"):
        hm.MLP(2, activation="relu")
    with pytest.raises(ValueError, match="multiples of `patch`"):
        hm.networks.SmallConv((1, 10, 10))
    for cls in (hm.networks.SmallConv, hm.networks.SmallResidual):
        with pytest.raises(ValueError, match="channels, height, width"):
            cls((8, 8))


def test_a_model_held_twice_is_put_back_by_the_last() -> None:
    """As two threads do that sample one model: the first to come leaves before the second."""
    net = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Dropout())
    net[0].bias.requires_grad_(False)
    first, second = frozen(net), frozen(net)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not net[1].training and not net[0].weight.requires_grad
    second.__exit__(None, None, None)
    assert net.training and net[1].training and net[0].weight.requires_grad and not net[0].bias.requires_grad


def test_frozen_puts_everything_back_even_after_an_error() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.Linear(2, 1))
    net[2].weight.requires_grad_(False)
    net[1].eval()

    def fail() -> None:
        assert not any(m.training for m in net.modules())
        assert not any(p.requires_grad for p in net.parameters())
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), frozen(net):
        fail()
    assert [m.training for m in net.modules()] == [True, True, False, True]
    assert [p.requires_grad for p in net.parameters()] == [True, True, False, True]


def test_prediction_ignores_dropout_and_restores_it() -> None:
    jem = hm.JEM(nn.Sequential(nn.Linear(3, 50), nn.Dropout(0.5), nn.Linear(50, 2)), shape=3)
    x = torch.ones(4, 3)
    assert torch.equal(jem.predict_proba(x), jem.predict_proba(x))
    assert jem.training and jem.net[1].training
    assert not torch.equal(jem.class_logits(x), jem.class_logits(x))  # dropout is at work in training
