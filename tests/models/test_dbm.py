"""Deep Boltzmann machines: energy, bound, gradients and their start by pairs, against enumeration."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch
from torch import Tensor

import harmonium as hm
from harmonium.data import load
from harmonium.inference import MeanField
from harmonium.learning.doubled_pairs import doubled_pair, fit_doubled_pairs
from harmonium.learning.objectives import CD, Phases
from harmonium.testing import tiny_dbm
from harmonium.testing.objectives import exact_gradient, gradients

HealthWarning = pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")


def states(n: int) -> Tensor:
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=n))).double()


def log_joint(dbm: hm.DBM) -> Tensor:
    """Return `-E` of every state of a 4-3-2-2 machine from the formula, `(16, 8, 4, 4)`."""
    (w1, w2, w3), (a, b, c, d) = ([p.detach() for p in part] for part in (dbm.weights, dbm.biases))
    v, h1, h2, h3 = states(4), states(3), states(2), states(2)
    pairs = (v @ w1 @ h1.T)[:, :, None, None] + (h1 @ w2 @ h2.T)[:, :, None] + h2 @ w3 @ h3.T
    return pairs + (v @ a)[:, None, None, None] + (h1 @ b)[:, None, None] + (h2 @ c)[:, None] + h3 @ d


def test_energy_and_likelihood_are_those_of_the_formula() -> None:
    dbm = tiny_dbm()
    joint = log_joint(dbm)
    for i, j, k, m in [(0, 0, 0, 0), (5, 3, 1, 2), (15, 7, 3, 3)]:
        state = {"visible": states(4)[i], "hidden_1": states(3)[j], "hidden_2": states(2)[k], "hidden_3": states(2)[m]}
        assert dbm.energy(state).item() == pytest.approx(-joint[i, j, k, m].item(), abs=1e-12)
    log_z = joint.flatten().logsumexp(0)
    assert hm.exact_log_z(dbm).value == pytest.approx(log_z.item(), abs=1e-10)
    exact = joint.flatten(1).logsumexp(1) - log_z
    torch.testing.assert_close(hm.log_likelihood(dbm, states(4)).value, exact, rtol=0, atol=1e-10)
    bound = hm.log_likelihood(dbm, states(4), inference=MeanField(n_steps=200, tolerance=0.0))
    assert bool((bound.value <= exact + 1e-12).all()) and "bound" in bound.kind
    assert (exact - bound.value).max() > 1e-4  # the layers are tied: the bound is not the value itself


def test_mean_field_stands_at_its_fixed_point() -> None:
    dbm, v = tiny_dbm(), states(4)
    means = MeanField(n_steps=500, tolerance=0.0).fixed_point(dbm, {"visible": v}).state
    for name in ("hidden_1", "hidden_2", "hidden_3"):  # each mean under the full field of the others
        torch.testing.assert_close(dbm.mean(name, means), means[name], rtol=0, atol=1e-10)


def test_the_gradient_is_that_of_the_bound() -> None:
    dbm, v, inference = tiny_dbm(), states(4), MeanField(n_steps=500, tolerance=0.0)
    inference.free_energy(dbm, {"visible": v}).mean().backward()
    wanted = gradients(dbm)
    dbm.zero_grad()
    inference.accumulate_grad(dbm, {"visible": v}, 1 / len(v))
    torch.testing.assert_close(gradients(dbm), wanted, rtol=0, atol=1e-8)
    exact = exact_gradient(dbm, {"visible": v})
    assert torch.isfinite(exact).all()


def test_sandwich_of_log_z_holds() -> None:
    dbm = tiny_dbm()
    exact = log_joint(dbm).flatten().logsumexp(0).item()
    found = hm.ais(dbm, n_chains=256, n_betas=100, generator=torch.Generator().manual_seed(0))
    assert abs(found.value - exact) < 6 * found.error


def test_a_machine_above_an_rbm_starts_as_that_rbm() -> None:
    generator = torch.Generator().manual_seed(0)
    rbm = hm.RBM(hm.Bernoulli(4), hm.Bernoulli(3)).double()
    with torch.no_grad():
        for parameter in rbm.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    dbm = hm.DBM.above(rbm, hm.Bernoulli(2), generator=generator)
    wanted = hm.log_likelihood(rbm, states(4)).value
    near = hm.log_likelihood(dbm, states(4)).value
    assert 1e-9 < (near - wanted).abs().max() < 0.1  # small weights above: close to it, and not the same
    with torch.no_grad():
        dbm.weights[1].zero_()
    for inference in (None, MeanField(n_steps=200, tolerance=0.0)):  # the bound is tight where nothing is tied
        found = hm.log_likelihood(dbm, states(4), inference=inference).value
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-10)
    with torch.no_grad():
        dbm.weights[0].zero_()
    assert bool((rbm.weight != 0).all())  # a copy: what the deep machine learns leaves the RBM alone


def test_a_machine_above_a_convolution_is_refused() -> None:
    rbm = hm.RBM(hm.Bernoulli(1, 4, 4), hm.Bernoulli(2, 2, 2), hm.Conv2d(1, 2, kernel=2, stride=2))
    with pytest.raises(TypeError, match="dense coupling"):
        hm.DBM.above(rbm, hm.Bernoulli(2))


def test_a_pair_hears_its_layer_twice() -> None:
    dbm = tiny_dbm()
    h = states(2)
    lowest, (_, upper) = doubled_pair(dbm, 0)
    with torch.no_grad():
        upper.bias.fill_(0.3)
    v = states(4)
    field = lowest.field("hidden", {"visible": v, "visible_twin": v})
    torch.testing.assert_close(field, 2 * v @ dbm.weights[0] + 0.3)
    middle, _ = doubled_pair(dbm, 1)
    assert middle.layers == ("visible", "visible_twin", "hidden", "hidden_twin")
    torch.testing.assert_close(middle.field("visible", {"hidden": h, "hidden_twin": h}), 2 * h @ dbm.weights[1].T)
    top, _ = doubled_pair(dbm, 2)
    assert top.layers == ("visible", "hidden", "hidden_twin")


def test_pairs_share_the_weights_and_give_the_mean_of_their_biases() -> None:
    generator = torch.Generator().manual_seed(0)
    x = load("bars-and-stripes").train.flatten(1).float()
    dbm = hm.DBM(hm.Bernoulli(16), hm.Bernoulli(8), hm.Bernoulli(4), generator=generator)
    before = [w.detach().clone() for w in dbm.weights]
    sgd = lambda parameters: torch.optim.SGD(parameters, 0.05)  # noqa: E731
    histories = fit_doubled_pairs(dbm, x, CD(), optimizer=sgd, epochs=[5, 3], generator=generator)
    assert [len(history) for history in histories] == [5, 3]
    assert all(not torch.equal(old, new) for old, new in zip(before, dbm.weights, strict=True))
    with pytest.raises(ValueError, match="one for each of 2 pairs"):
        fit_doubled_pairs(dbm, x, CD(), optimizer=sgd, epochs=[5])


@HealthWarning
@pytest.mark.parametrize("objective", [hm.PCD, hm.TemperedPCD], ids=["pcd", "tempered"])
def test_it_learns(objective: type[hm.PCD]) -> None:
    generator = torch.Generator().manual_seed(0)
    x = load("bars-and-stripes").train.flatten(1).float()
    dbm = hm.DBM(hm.Bernoulli(16), hm.Bernoulli(16), hm.Bernoulli(6), generator=generator)
    hm.initialize(dbm, x)
    hm.fit(
        dbm,
        x,
        objective(n_chains=64, inference=MeanField(n_steps=10)),
        optimizer=torch.optim.Adam(dbm.parameters(), 0.01),
        epochs=250,
        transforms=[hm.Centering()],
        monitors=[],
        generator=generator,
    )
    nats = hm.log_likelihood(dbm, x, inference=MeanField()).mean()
    assert nats.value > -9  # fair coins have -11.09, the law itself has -3.4


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    dbm = tiny_dbm()
    dbm.save(tmp_path / "dbm.safetensors")
    again = hm.load(tmp_path / "dbm.safetensors")
    assert torch.equal(again.free_energy(states(4)), dbm.free_energy(states(4)))


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ValueError, match="at least two hidden layers. Got 2 in all"):
        hm.DBM(hm.Bernoulli(4), hm.Bernoulli(3))
    wide = hm.DBM(hm.Bernoulli(4), hm.Bernoulli(20), hm.Bernoulli(20))
    with pytest.raises(ValueError, match=r"MeanField\(\) or ClampedChains"):
        wide.free_energy(torch.zeros(1, 4))


def test_centering_a_pair_is_centering_both_of_its_twins() -> None:
    """Twins that share a coupling and a bias learn as one machine of both layers side by side, weights tied."""
    generator = torch.Generator().manual_seed(0)
    x = torch.bernoulli(torch.full((64, 4), 0.3), generator=generator).double()
    dbm = tiny_dbm()
    pair, (lower, upper) = doubled_pair(dbm, 0)
    with torch.no_grad():
        lower.bias.fill_(-0.5)
        upper.bias.fill_(0.2)
    weight = dbm.weights[0]
    whole = hm.RBM(hm.Bernoulli(8), hm.Bernoulli(3)).double()
    with torch.no_grad():
        whole.weight.copy_(torch.cat([weight, weight]))
        whole.visible_bias.copy_(torch.cat([lower.bias, lower.bias]))
        whole.hidden_bias.copy_(upper.bias)
    for machine, batch in ((pair, {"visible": x, "visible_twin": x}), (whole, torch.cat([x, x], 1))):
        negative = {name: torch.full_like(v, 0.4) for name, v in machine.fill(machine.state(batch)).state.items()}
        positive = machine.accumulate_grad(batch, 1 / 64).state
        machine.add_gradient(negative, -1 / 64)
        transform = hm.Centering()
        transform.before(machine, Phases(positive, negative, ("hidden",)))
        with torch.no_grad():
            for parameter in machine.parameters():
                parameter.sub_(0.1 * parameter.grad)
        transform.after(machine)
    both = whole.weight[:4] - torch.cat([weight.new_zeros(0, 3), whole.weight[4:]])
    assert both.abs().max() < 1e-12  # the halves of the one machine are still the same
    start = tiny_dbm().weights[0]
    torch.testing.assert_close(weight - start, 2 * (whole.weight[:4] - start), rtol=0, atol=1e-12)
