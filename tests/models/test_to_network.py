"""Stacks of machines as ordinary networks: the same numbers, and they learn from there."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

import harmonium as hm
from harmonium.learning.objectives import CrossEntropy
from harmonium.networks.layers import redraw
from harmonium.testing import scatter, tiny_dbm, tiny_labeled_rbm
from harmonium.units import MaxPooled


def draws(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def features(network: nn.Sequential, x: Tensor) -> Tensor:
    """Return what the last layer sees."""
    return network[:-1](x)


@pytest.mark.parametrize("visible", [hm.Bernoulli(4), hm.Gaussian(4, initial_sigma=0.7), hm.Spin(4)], ids=repr)
@pytest.mark.parametrize("hidden", [hm.Bernoulli(3), hm.Spin(3), hm.Gaussian(3), hm.NReLU(3)], ids=repr)
def test_an_rbm_gives_its_hidden_means(visible: hm.RBM, hidden: hm.RBM) -> None:
    if isinstance(visible, hm.Gaussian) and isinstance(hidden, hm.Gaussian | hm.NReLU):
        pytest.skip("two unbounded layers have no law for all weights")
    rbm, x = scatter(hm.RBM(visible, hidden)), draws(5, 4)
    network = rbm.to_network(3)
    expected = rbm.mean("hidden", {"visible": x})
    torch.testing.assert_close(features(network, x), expected, rtol=0, atol=1e-12)
    assert torch.equal(network(x), torch.zeros(5, 3, dtype=torch.float64))  # all classes equally probable
    ordinary = [type(module).__module__.startswith("torch.nn") for module in network]
    assert all(ordinary) or isinstance(hidden, hm.NReLU)


def scattered(dbn: hm.DBN) -> hm.DBN:
    return hm.DBN([scatter(rbm) for rbm in dbn])


def test_a_stack_gives_what_goes_up() -> None:
    dbn = scattered(hm.DBN.from_spec("dense 5, dense 4, dense 3", shape=(6,)))
    x = draws(7, 6)
    torch.testing.assert_close(features(dbn.to_network(2), x), dbn.up(x), rtol=0, atol=1e-12)
    conv = scattered(hm.DBN.from_spec("conv 3 4x4/2, dense 5", shape=(1, 8, 8)))
    images = draws(2, 1, 8, 8)
    torch.testing.assert_close(features(conv.to_network(2), images), conv.up(images), rtol=0, atol=1e-12)
    mixed = scattered(hm.DBN([hm.RBM(hm.Bernoulli(4), hm.Spin(3)), hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2))]))
    x = draws(5, 4)  # -1 and 1 below, 0 and 1 above: the range is carried over
    torch.testing.assert_close(features(mixed.to_network(2), x), mixed.up(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("activation", ["sigmoid", "relu", "tanh"])
def test_levels_go_up_as_shares_of_the_highest(activation: str) -> None:
    dbn = scattered(hm.DBN.from_spec("conv 3 4x4/2, dense 5", shape=(1, 8, 8), levels=255, activation=activation))
    images = 255 * draws(2, 1, 8, 8)
    network = dbn.to_network(2)
    torch.testing.assert_close(features(network, images), dbn.up(images) / 255, rtol=0, atol=1e-12)
    ordinary = all(type(module).__module__.startswith("torch.nn") for module in network)
    assert ordinary == (activation == "sigmoid")


def test_the_parameters_are_copies() -> None:
    rbm = scatter(hm.RBM(hm.Bernoulli(4), hm.Bernoulli(3)))
    network, before = rbm.to_network(2), rbm.weight.detach().clone()
    with torch.no_grad():
        network[0].weight.add_(1.0)
    assert torch.equal(rbm.weight, before)


def test_a_deep_machine_hears_what_is_below_twice() -> None:
    dbm, v = tiny_dbm(), draws(5, 4)
    (w1, w2, w3), (_, b1, b2, b3) = dbm.weights, dbm.biases
    h2 = (2 * (2 * v @ w1 + b1).sigmoid() @ w2 + b2).sigmoid()
    expected = (h2 @ w3 + b3).sigmoid()
    torch.testing.assert_close(features(dbm.to_network(3), v), expected.detach(), rtol=0, atol=1e-12)


def test_a_deep_machine_beside_its_posterior_starts_at_mean_field() -> None:
    """The features are the fixed point; without the posterior, where W below is doubled, they are not."""
    dbm, v = hm.DBM(hm.Gaussian(4, initial_sigma=0.7), hm.Bernoulli(3), hm.Spin(2)).double(), draws(5, 4)
    scatter(dbm)
    means = hm.MeanField(n_steps=500, tolerance=0.0).fixed_point(dbm, {"visible": v}).state
    network = dbm.to_network(3, posterior=True)
    beside = torch.cat([v, means["hidden_2"]], 1)
    torch.testing.assert_close(network[:2](beside), means["hidden_1"], rtol=0, atol=1e-10)
    torch.testing.assert_close(features(network, beside), means["hidden_2"], rtol=0, atol=1e-10)
    assert (features(dbm.to_network(3), v) - means["hidden_2"]).abs().max() > 0.01


def test_a_class_rbm_starts_near_its_own_classes() -> None:
    """The outputs agree with the exact log p(y | x) to first order in U: a tenth of U leaves a hundredth."""
    machine, x = tiny_labeled_rbm(), draws(6, 3)
    gaps = []
    for _ in range(2):
        gap = machine.to_network()(x).log_softmax(-1) - machine.predict_proba(x).log()
        gaps.append(gap.abs().max().item())
        with torch.no_grad():
            machine.label_weight.mul_(0.1)
    assert gaps[1] < gaps[0] / 30
    with pytest.raises(ValueError, match="has 3 classes"):
        machine.to_network(5)


def test_stacks_without_a_layer_are_refused() -> None:
    pooled = hm.DBN([hm.RBM(hm.Bernoulli(1, 4, 4), MaxPooled(2, 4, 4, block=2), hm.Conv2d(1, 2, kernel=1))])
    with pytest.raises(TypeError, match="no layer of PyTorch for"):
        pooled.to_network(2)
    with pytest.raises(ValueError, match="at least 2"):
        hm.RBM(hm.Bernoulli(4), hm.Bernoulli(3)).to_network(1)


def test_redrawn_weights_come_from_the_generator() -> None:
    rbm = hm.RBM(hm.Bernoulli(400), hm.Bernoulli(30))
    one, other = (redraw(rbm.to_network(10), generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(one[0].weight, other[0].weight) and not one[0].bias.any()
    assert one[0].weight.std().item() == pytest.approx(400**-0.5, rel=0.05)


def test_cross_entropy_is_pytorchs_and_leaves_rows_without_a_label_out() -> None:
    network = redraw(hm.RBM(hm.Bernoulli(4), hm.Bernoulli(3)).double().to_network(3), generator=torch.Generator())
    x, y = draws(6, 4), torch.tensor([0, 1, 2, -1, 1, -1])
    found = CrossEntropy().loss(network, {"x": x, "y": y})
    torch.testing.assert_close(found, nn.functional.cross_entropy(network(x), y, ignore_index=-1))
    nothing = CrossEntropy().loss(network, {"x": x, "y": torch.full((6,), -1)})
    assert nothing.item() == 0.0


def test_dropout_keeps_the_mean_and_follows_the_generator() -> None:
    network = nn.Sequential(nn.Linear(50, 2, bias=False).double())
    x, y = draws(4, 50), torch.zeros(4, dtype=torch.int64)
    thinned = CrossEntropy(input_dropout=0.5)
    one, other = (thinned.loss(network, {"x": x, "y": y}, generator=torch.Generator().manual_seed(1)) for _ in "ab")
    assert one == other != CrossEntropy().loss(network, {"x": x, "y": y})
    hidden = nn.Sequential(nn.Linear(50, 40).double(), nn.Sigmoid(), nn.Linear(40, 2).double())
    full = CrossEntropy().loss(hidden, {"x": x, "y": y})
    assert CrossEntropy(dropout=0.5).loss(hidden, {"x": x, "y": y}, generator=torch.Generator().manual_seed(1)) != full
    assert torch.equal(hidden(x), hidden(x))  # the network itself knows nothing of it


def test_fit_alone_tunes_a_network() -> None:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(300) % 3
    x = torch.eye(3)[y].repeat(1, 4) * 0.8 + 0.1 * torch.rand(300, 12, generator=generator)
    network = hm.RBM(hm.Bernoulli(12), hm.Bernoulli(8), generator=generator).to_network(3)
    history = hm.fit(network, (x, y), epochs=150, generator=generator, monitors=[])
    assert len(history) == 150 and (network(x).argmax(-1) == y).float().mean() > 0.95


def test_errors_say_what_to_do() -> None:
    network = hm.RBM(hm.Bernoulli(4), hm.Bernoulli(3)).to_network(2)
    with pytest.raises(ValueError, match=r"Give a tuple \(x, y\)"):
        hm.fit(network, torch.zeros(8, 4))
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\)"):
        CrossEntropy(dropout=1.0)
    with pytest.raises(TypeError, match=r"needs an nn.Sequential"):
        CrossEntropy(dropout=0.5).check(hm.MLP(4, 2))


def test_fit_tells_how_a_network_learns(generator: torch.Generator) -> None:
    """The loss of each epoch, and with validation data the share of right classes, of rows whose class is known."""
    network = hm.RBM(hm.Bernoulli(6), hm.Bernoulli(5)).to_network(3)
    x = torch.eye(6)
    y = torch.arange(6) % 3
    held_out = (x, torch.where(y == 2, -1, y))
    optimizer = torch.optim.Adam(network.parameters(), 0.05)
    history = hm.fit(network, (x, y), optimizer=optimizer, epochs=100, validation=held_out, generator=generator)
    losses = [record["classification_loss"] for record in history.records]
    assert losses[0] == pytest.approx(math.log(3), abs=0.05) and losses[-1] < losses[0] - 0.5
    assert history.records[0]["validation_accuracy"] <= 1 and history.records[-1]["validation_accuracy"] == 1
