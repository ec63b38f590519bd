"""Disjoint parts of all states, annealed on their own, and the modes that they belong to."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

import harmonium as hm
from harmonium.draws import draw_normal
from harmonium.partition.ais import anneal, from_weights
from harmonium.partition.annealed_part import Annealed, _estimate, melt_parts
from harmonium.partition.bounds import Bounds
from harmonium.partition.effort import Effort
from harmonium.partition.modes import mean_field_modes
from harmonium.partition.path import MachinePath
from harmonium.partition.sandwich import added_up, judged
from harmonium.partition.schedule import adapted_betas
from harmonium.partition.states_bound import states_bound
from harmonium.testing import ExactLaw, scatter, tiny_rbm
from harmonium.types import Estimate

SURE = Estimate(5.0, 0.01, 4.97, 5.03, "sandwich", ess=100.0)


def two_modes(tilt: float = 0.0) -> hm.RBM:
    """Return 8 + 4 spins that all agree: two deep modes, one of them heavier."""
    rbm = hm.RBM(hm.Spin(8), hm.Spin(4)).double()
    with torch.no_grad():
        rbm.weight.fill_(1.0)
        rbm.visible_bias.fill_(tilt)
        rbm.hidden_bias.zero_()
    return rbm


def test_mean_field_finds_both_modes_and_cells_are_their_sides(generator: torch.Generator) -> None:
    rbm = two_modes()
    modes = mean_field_modes(rbm, generator=generator)
    best = modes.states["visible"][:2]
    assert sorted(best[:, 0].tolist()) == [-1.0, 1.0] and bool((best == best[:, :1]).all())
    law = ExactLaw(rbm)
    cells = modes.cells({"visible": law.states["visible"]})
    side = torch.sign(law.states["visible"].sum(1))
    for sign in (-1.0, 1.0):
        own = int(torch.nonzero(best[:, 0] == sign)[0, 0])
        assert bool((cells[side == sign] == own).all())


def test_a_part_is_estimated_without_the_others(generator: torch.Generator) -> None:
    """The weight of one side of a machine, by chains that start there; the control: all of it is log 2 more."""
    rbm = two_modes(0.1)
    law = ExactLaw(rbm)
    up_side = law.states["visible"].sum(1) > 0
    exact = law.log_z + math.log(law.probability[up_side].sum().item())
    path = MachinePath(rbm, {"visible": torch.ones(1, 8).double(), "hidden": torch.ones(1, 4).double()})
    betas = adapted_betas(path, 60, generator=generator)
    run = Annealed(path, betas, *anneal(path, betas, 1024, generator=generator))
    (part,), inner = melt_parts(run, lambda s: s["visible"].sum(1) > 0, path.group_log_z0(), 10, generator=generator)
    assert part is not None and abs(part.value - exact) < 5 * part.error + 1e-9
    assert part.lower < exact < part.upper
    assert bool((inner.state["visible"].sum(1) > 0).all())
    assert abs(part.value - law.log_z) > 10 * part.error


def test_groups_of_chains_are_paths_of_their_own(generator: torch.Generator) -> None:
    rbm = tiny_rbm("Bernoulli", "Spin")
    fields = draw_normal(torch.empty(3, 4, dtype=torch.float64), generator=generator) * 3
    path = MachinePath(rbm, fields)
    alone = [MachinePath(rbm, field).log_z0() for field in fields]
    assert path.group_log_z0().tolist() == pytest.approx(alone, abs=1e-12)
    point = path.start(6000, generator=generator)
    means = point.state["visible"].unflatten(0, (3, 2000)).mean(1)
    assert (means - fields.sigmoid()).abs().max() < 4.9 * 0.5 / math.sqrt(2000) + 1e-9
    ratio = path.log_ratio(point, 0.2, 0.7)
    for i, field in enumerate(fields):
        rows = slice(2000 * i, 2000 * (i + 1))
        single = MachinePath(rbm, field)
        other = single.log_ratio(single.point({"visible": point.state["visible"][rows]}), 0.2, 0.7)
        assert torch.allclose(ratio[rows], other, atol=1e-12)
    with pytest.raises(ValueError, match="as many reference fields"):
        MachinePath(rbm, {"visible": fields, "hidden": torch.zeros(2, 4).double()})


def test_parts_add_up_in_logarithms() -> None:
    total = added_up([SURE, None, replace(SURE, value=4.0, lower=3.9, upper=4.1, error=0.1)])
    assert total.value == pytest.approx(math.log(math.exp(5.0) + math.exp(4.0)))
    assert total.lower == pytest.approx(math.log(math.exp(4.97) + math.exp(3.9)))
    share = 1 / (1 + math.e)
    assert total.error == pytest.approx(math.hypot((1 - share) * 0.01, share * 0.1))
    with pytest.raises(ValueError, match="so few chains"):
        added_up([None])


@pytest.mark.parametrize(
    ("estimate", "bounds", "word"),
    [
        (SURE, Bounds(), ""),
        (SURE, Bounds(5.5, math.inf), "guaranteed lower bound"),
        (SURE, Bounds(-math.inf, 4.5), "guaranteed upper bound"),
        (replace(SURE, upper=6.5), Bounds(), "nats apart"),
        (replace(SURE, ess=2.0), Bounds(), "rest on 2.0 chains"),
        (replace(SURE, upper=6.5), Bounds(4.9, 5.4), ""),  # known from the bounds alone
    ],
)
@pytest.mark.filterwarnings("ignore:log Z is not trustworthy")
def test_reasons_of_distrust(estimate: Estimate, bounds: Bounds, word: str) -> None:
    found = judged(estimate, [], bounds, Effort(), torch.float64)
    assert found.trusted == (not word) and word in found.note
    assert max(bounds.at_least, found.lower) <= found.value <= min(bounds.at_most, found.upper)
    assert (found.at_least, found.at_most) == (bounds.at_least, bounds.at_most)


def test_samples_are_looked_at(generator: torch.Generator) -> None:
    rbm = scatter(hm.RBM(hm.Bernoulli(10), hm.Bernoulli(8)), scale=0.3, generator=generator).float()
    x = (draw_normal(torch.empty(50, 10), generator=generator) > 0).float()
    settings = {"n_chains": 64, "n_betas": 60, "n_steps": 10, "generator": generator}
    found = hm.log_z(rbm, method="sandwich", samples=x, **settings)
    exact = hm.exact_log_z(rbm).value
    assert states_bound(rbm, {"hidden": x[:, :8]}) <= exact
    assert found.lower <= exact <= found.upper and found.at_least <= exact <= found.at_most


def test_unknown_methods_and_efforts_are_refused() -> None:
    rbm = tiny_rbm("Bernoulli", "Spin")
    with pytest.raises(ValueError, match="no method 'guess'.*sandwich"):
        hm.log_z(rbm, method="guess")
    with pytest.raises(ValueError, match="`n_betas` must be at least 2"):
        hm.log_z(rbm, method="sandwich", n_betas=1)
    assert hm.log_z(rbm, method="bounds").kind == "bounds"


def test_an_interval_is_never_narrower_than_three_errors(generator: torch.Generator) -> None:
    """Chains that agree going up say nothing of how those going down scatter."""
    up = draw_normal(torch.empty(64, dtype=torch.float64), generator=generator) * 0.01
    down = draw_normal(torch.empty(64, dtype=torch.float64), generator=generator) + 0.5
    found = _estimate(up, torch.ones(64, dtype=torch.bool), down, 0.0, whole=True)
    alone = from_weights(up, 0.0, "ais")
    assert alone.lower > found.value - 3 * found.error  # the control: one side alone would be too sure
    assert found.lower <= found.value - 3 * found.error and found.upper >= found.value + 3 * found.error
