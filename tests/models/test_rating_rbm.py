"""Ratings against brute force: every configuration of a small table is written out."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

import harmonium as hm
from harmonium.learning.objectives import LeaveOneOut, PseudoLikelihood
from harmonium.models import RatingRBM

NAN = math.nan
LEVELS = (1.0, 2.0, 5.0)


def small(rows: str = "users", hidden: hm.units.Units | None = None, share: float = 0.4) -> RatingRBM:  # type: ignore[name-defined]
    generator = torch.Generator().manual_seed(0)
    model = RatingRBM(3, 4, LEVELS, hidden or hm.Bernoulli(2), rows=rows, share=share).double()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return model


TABLE = torch.tensor([[1.0, NAN, 5.0, 2.0], [NAN, 2.0, NAN, 1.0], [5.0, 5.0, 1.0, NAN]], dtype=torch.float64)


def brute_free_energy(model: RatingRBM, row: Tensor) -> float:
    """Return `-log Σ_h e^{-E(v, h | r)}` of the formula in the docstring, over the ratings that are there alone."""
    s = [(level - 3) / 2 for level in LEVELS]
    there = [(i, LEVELS.index(v)) for i, v in enumerate(row.tolist()) if not math.isnan(v)]
    k = len(there) ** -model.share
    w, d, b, c = model.weight, model._implicit, model.bias, model._hidden_bias
    total = 0.0
    for h in itertools.product((0.0, 1.0), repeat=2):
        work = sum(b[i, level].item() for i, level in there) + sum(c[j].item() * h[j] for j in range(2))
        for i, level in there:
            work += k * sum((s[level] * w[i, j].item() + d[i, j].item()) * h[j] for j in range(2))
        total += math.exp(work)
    return -math.log(total)


def test_missing_ratings_cost_nothing_in_the_free_energy() -> None:
    model = small()
    state = model.observed(TABLE)
    wanted = torch.tensor([brute_free_energy(model, row) for row in TABLE], dtype=torch.float64)
    torch.testing.assert_close(model.free_energy(state), wanted, rtol=0, atol=1e-12)
    other = dict(state)
    other["ratings"] = torch.where(state["rated"] > 0, state["ratings"], 2)  # whatever stands where there is no rating
    torch.testing.assert_close(model.free_energy(other), wanted, rtol=0, atol=1e-12)
    there = state["ratings"].clone()
    there[0, 0] = 2
    assert (model.free_energy(state | {"ratings": there}) - wanted)[0].abs() > 1e-3  # a rating that is there counts


@pytest.mark.parametrize("rows", ["users", "items"])
@pytest.mark.parametrize("hidden", [hm.Bernoulli(2), hm.Gaussian(2), hm.Spin(2)])
def test_predictions_are_ratios_of_boltzmann_factors(rows: str, hidden: hm.Bernoulli) -> None:
    """`p(v_i | others)` follows from F with each level put in its place, the list one longer where it was missing."""
    model = small(rows, hidden)
    law = model.law_of(TABLE)
    for user, item in itertools.product(range(3), range(4)):
        energies = []
        for level in LEVELS:
            asked = TABLE.clone()
            asked[user, item] = level
            energies.append(model.free_energy(model.observed(asked))[item if rows == "items" else user])
        torch.testing.assert_close(law[user, item], (-torch.stack(energies)).softmax(0), rtol=0, atol=1e-10)
    torch.testing.assert_close(model.predict(TABLE), law @ torch.tensor(LEVELS, dtype=torch.float64))
    few = model.predict(TABLE, torch.tensor([2, 0]), torch.tensor([3, 1]))
    torch.testing.assert_close(few, model.predict(TABLE)[[2, 0], [3, 1]], rtol=0, atol=1e-12)


def test_leave_one_out_is_the_pseudo_likelihood_of_what_is_there() -> None:
    model = small()
    state = model.observed(TABLE)
    wanted = -sum(
        model.law_of(TABLE)[u, i, LEVELS.index(TABLE[u, i].item())].log()
        for u, i in (~TABLE.isnan()).nonzero().tolist()
    )
    n = int((~TABLE.isnan()).sum())
    assert LeaveOneOut().loss(model, state).item() * n == pytest.approx(float(wanted), abs=1e-10)
    # The general rule asks for all units; one that is not there is uniform.
    general = PseudoLikelihood().loss(model, state).item() * len(TABLE)
    assert general == pytest.approx(float(wanted) + (TABLE.numel() - n) * math.log(3), abs=1e-9)


def test_likelihood_is_that_of_the_ratings_given_which_there_are() -> None:
    """The ratings that are not there are summed out as a constant, `log 3` each."""
    model = small()
    row = TABLE[1]  # two ratings: nine tables in all
    factors = {}
    for a, b in itertools.product(LEVELS, repeat=2):
        filled = row.clone()
        filled[1], filled[3] = a, b
        factors[a, b] = math.exp(-brute_free_energy(model, filled))
    wanted = math.log(factors[2.0, 1.0] / sum(factors.values()))
    nats = hm.log_likelihood(model, model.observed(TABLE))
    assert nats.kind == "exact"
    assert nats.value[1].item() + 2 * math.log(3) == pytest.approx(wanted, abs=1e-10)


@pytest.mark.parametrize("rows", ["users", "items"])
def test_it_learns_what_a_table_says(rows: str) -> None:
    """Two kinds of users with opposite tastes: a third of the ratings is predicted from the rest."""
    generator = torch.Generator().manual_seed(0)
    taste = torch.randint(0, 2, (40, 1), generator=generator) * 2 - 1
    kind = torch.randint(0, 2, (1, 30), generator=generator) * 2 - 1
    full = torch.where(taste * kind > 0, 5.0, 1.0)
    hidden = torch.rand(full.shape, generator=generator) < 0.33
    known = full.masked_fill(hidden, NAN)
    model = RatingRBM(40, 30, hidden=hm.Gaussian(4), rows=rows, generator=generator)
    model.start(known)
    hm.fit(model, model.observed(known), epochs=20, batch_size=10, generator=generator)
    error = (model.predict(known) - full)[hidden].abs().mean()
    assert error < 0.3
    best = model.recommend(known, 3)
    assert bool(hidden.gather(1, best).all()) and (full.gather(1, best) == 5).float().mean() > 0.95
    drawn = hm.sample(
        model,
        len(model.observed(known)["rated"]),
        n_steps=3,
        given={name: model.observed(known)[name] for name in model.given},
    )
    assert drawn.shape == (*model.observed(known)["rated"].shape, 5)


def test_errors_say_what_to_do() -> None:
    model = small()
    with pytest.raises(ValueError, match="must be one of 1, 2, 5, or NaN .* 2 are outside the scale, such as 3"):
        model.observed(torch.tensor([[1.0, 3.0, NAN, 9.0]]))
    with pytest.raises(ValueError, match="holds no rating"):
        model.observed(torch.full((2, 4), NAN))
    with pytest.raises(ValueError, match=r"must have shape \(n, 4\), users by items. Got \(1, 3\)"):
        model.observed(torch.ones(1, 3))
    with pytest.raises(ValueError, match=r"must have shape \(3, 4\)"):
        small("items").observed(torch.ones(2, 4))
    with pytest.raises(ValueError, match="Got 2; user 0 has 1 left"):
        model.recommend(TABLE, 2)
    with pytest.raises(ValueError, match="both `users` and `items`"):
        model.predict(TABLE, torch.tensor([0]))
    with pytest.raises(ValueError, match="rising numbers"):
        RatingRBM(1, 2, (2, 1))
    with pytest.raises(ValueError, match='`rows` must be "items" or "users"'):
        RatingRBM(1, 2, rows="films")
    with pytest.raises(TypeError, match="needs a RatingRBM. Got RBM"):
        hm.fit(hm.RBM(hm.Bernoulli(2), hm.Bernoulli(2)), torch.zeros(2, 2), LeaveOneOut())


RATED = torch.tensor([[5.0, NAN, 1.0], [4.0, 2.0, 3.0]])


def test_a_table_of_ratings_is_enough() -> None:
    """`fit` and scores take a bare table as what `observed` makes of it, to the last bit."""
    first, second = (RatingRBM(2, 3, hidden=hm.Gaussian(2), generator=torch.Generator().manual_seed(0)) for _ in "ab")
    hm.fit(first, RATED, epochs=3, generator=torch.Generator().manual_seed(1))
    hm.fit(second, second.observed(RATED), epochs=3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(first.predict(RATED), second.predict(RATED))
    assert torch.equal(first.free_energy(RATED), first.free_energy(first.observed(RATED)))
    bare, looked_at = (hm.log_likelihood(first, x) for x in (RATED, first.observed(RATED)))
    assert torch.equal(bare.value, looked_at.value) and bare.kind == "exact"
    hm.fit(second, {"ratings": RATED}, epochs=1)


def test_recommendations_for_some_users() -> None:
    """One user who has rated everything does not stand in the way of the others."""
    model = RatingRBM(2, 3, hidden=hm.Gaussian(2), generator=torch.Generator().manual_seed(0))
    assert model.recommend(RATED, 1, users=[0]).tolist() == [[1]]
    with pytest.raises(ValueError, match=r"Got 1; user 1 has 0 left.*users=…"):
        model.recommend(RATED, 1)
    wide = torch.tensor([[5.0, NAN, 1.0, NAN], [NAN, 2.0, NAN, NAN]])
    model = RatingRBM(2, 4, hidden=hm.Gaussian(2), generator=torch.Generator().manual_seed(0))
    assert torch.equal(model.recommend(wide, 2, users=[1, 0]), model.recommend(wide, 2)[[1, 0]])
    for wrong, message in (([2], "from 0 to 1: the table has 2. Got 2"), ([-1], "Got -1 to -1")):
        with pytest.raises(ValueError, match=message):
            model.recommend(wide, 1, users=wrong)
    with pytest.raises(TypeError, match="Got torch.float32. Use .long()"):
        model.law_of(wide, torch.tensor([0.5]), torch.tensor([0]))
    with pytest.raises(ValueError, match="must be pairs. Got 2 users and 1 items"):
        model.law_of(wide, [0, 1], [0])
