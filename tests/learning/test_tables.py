"""Learning tables: the observed likelihood, the start as a mixture, the choice of its size, the best parameters."""

from __future__ import annotations

import math

import pytest
import torch

import harmonium as hm
from harmonium.data import Column
from harmonium.learning.choose_mixture import choose_mixture
from harmonium.learning.fit_table import fit_table, n_epochs, observed_nats, table_machine
from harmonium.learning.monitors import KeepBest
from harmonium.learning.objectives import ObservedLikelihood
from harmonium.learning.starts.mixture import start_mixture
from harmonium.models import RBM
from harmonium.models.observed import draw_observed
from harmonium.units import Bernoulli, Categorical

COLUMNS = (Column("a", "real"), Column("b", "real"), Column("c", "categorical", ("x", "y", "z")), Column("d", "binary"))


def two_clouds(n: int, generator: torch.Generator) -> torch.Tensor:
    """Two correlated clouds 6 standard deviations apart, with a category and a bit that follow them."""
    z = torch.rand(n, generator=generator) < 0.3
    a = torch.randn(n, generator=generator)
    b = 0.9 * a + math.sqrt(1 - 0.81) * torch.randn(n, generator=generator)
    shift = 3 * z.double() * 2 - 3
    level = torch.where(z, torch.randint(0, 2, (n,), generator=generator), 2)
    bit = z ^ (torch.rand(n, generator=generator) < 0.05)
    one_hot = torch.eye(3)[level]
    return torch.cat([(a + shift)[:, None], (b - shift)[:, None], one_hot, bit[:, None]], 1).double()


def with_holes(x: torch.Tensor, rate: float, generator: torch.Generator) -> torch.Tensor:
    holes = torch.rand(len(x), 4, generator=generator) < rate
    return x.masked_fill(holes.repeat_interleave(torch.tensor([1, 1, 3, 1]), 1), math.nan)


def test_a_mixture_is_found_again(generator: torch.Generator) -> None:
    x = two_clouds(2000, generator)
    rbm = table_machine(COLUMNS, 2)
    start_mixture(rbm, x, generator=generator)
    samples = draw_observed(rbm, torch.full((4000, 6), math.nan).double(), generator=generator)
    upper = samples[:, 0] > 0
    assert abs(float(upper.double().mean()) - 0.3) < 0.05, "both modes, at their shares"
    for rows, like in ((samples[upper], x[x[:, 0] > 0]), (samples[~upper], x[x[:, 0] <= 0])):
        assert torch.allclose(rows.mean(0), like.mean(0), atol=0.15)
    within = rbm.visible.parts[0].covariance.detach()  # type: ignore[union-attr, operator]
    assert torch.allclose(within, torch.tensor([[1.0, 0.9], [0.9, 1.0]]).double(), atol=0.2)
    single = table_machine(COLUMNS, 1)
    start_mixture(single, x, generator=generator)
    assert observed_nats(rbm, {"visible": x}) > observed_nats(single, {"visible": x}) + 1.0


def test_size_and_shrinkage_are_chosen(generator: torch.Generator) -> None:
    x = two_clouds(240, generator)
    found = choose_mixture(lambda n: table_machine(COLUMNS, n), x, generator=generator)
    assert found.n_components in (2, 3, 4) and found.shrinkage < 0.1
    assert max(found.nats.values()) >= found.nats[1, 1.0], "never worse than independent columns on rows left out"
    noise = torch.randn(240, 2, generator=generator).double()
    apart = choose_mixture(lambda n: table_machine(COLUMNS[:2], n), noise, generator=generator)
    assert apart.n_components <= 3 and apart.nats[apart[:2]] < apart.nats[1, 1.0] + 0.05


def test_one_odd_row_does_not_choose_for_the_others(
    generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns that are nearly equal in 399 of 400 rows: their correlation is kept, whatever the other row costs."""
    a = torch.randn(400, generator=generator).double()
    x = torch.stack([a, a + 0.02 * torch.randn(400, generator=generator)], 1)
    x[0] = torch.tensor([3.0, -3.0])
    found = choose_mixture(lambda n: table_machine(COLUMNS[:2], n), x, generator=generator)
    assert found.shrinkage < 0.01
    monkeypatch.setattr("harmonium.learning.choose_mixture.ODD", 1e-300)  # the control: the mean over all rows decides
    assert choose_mixture(lambda n: table_machine(COLUMNS[:2], n), x, generator=generator).shrinkage > 0.02


def test_holes_are_learned_from(generator: torch.Generator) -> None:
    """With half of the cells gone, in every row, the correlation and the modes are still found."""
    x = with_holes(two_clouds(2000, generator), 0.5, generator)
    x[:, 5] = torch.where(x.isnan().any(1), x[:, 5], torch.nan)
    assert bool(x.isnan().any(1).all())
    rbm = fit_table(COLUMNS, x, n_components=2, shrinkage=0.0, generator=generator)
    test = two_clouds(2000, generator)
    whole = fit_table(COLUMNS, two_clouds(2000, generator), n_components=2, shrinkage=0.0, generator=generator)
    assert observed_nats(rbm, {"visible": test}) > observed_nats(whole, {"visible": test}) - 0.1
    filled = torch.where(x.isnan(), x.nanmean(0), x)  # a control: means in the holes spoil it
    spoiled = fit_table(COLUMNS, filled, n_components=2, shrinkage=0.0, generator=generator)
    assert observed_nats(spoiled, {"visible": test}) < observed_nats(rbm, {"visible": test}) - 0.5


def test_fit_by_observed_likelihood_climbs(generator: torch.Generator) -> None:
    x = torch.cat([torch.eye(6), 1 - torch.eye(6)]).repeat(10, 1).double()
    x[::3, 0] = math.nan
    rbm = RBM(Bernoulli(6), Bernoulli(4), generator=generator).double()
    before = observed_nats(rbm, {"visible": x})
    hm.fit(rbm, x, ObservedLikelihood(), epochs=300, monitors=[], generator=generator)
    assert observed_nats(rbm, {"visible": x}) > before + 0.5


def test_weights_of_rows_count_as_repeats(generator: torch.Generator) -> None:
    rbm = RBM(Bernoulli(3), Categorical(1, 2), generator=generator).double()
    x = torch.tensor([[1.0, 0.0, math.nan], [0.0, 1.0, 1.0]], dtype=torch.float64)
    ObservedLikelihood().accumulate_grad(rbm, x, weight=torch.tensor([2.0, 1.0], dtype=torch.float64))
    weighted = rbm.weight.grad.clone()  # type: ignore[union-attr]
    rbm.zero_grad(set_to_none=True)
    ObservedLikelihood().accumulate_grad(rbm, x[[0, 0, 1]])
    assert torch.allclose(weighted, rbm.weight.grad)  # type: ignore[arg-type]


def test_the_best_parameters_are_kept(generator: torch.Generator) -> None:
    """Learning that goes astray, at a huge rate, leaves the start as the best."""
    x = two_clouds(200, generator)
    rbm = table_machine(COLUMNS, 2)
    start_mixture(rbm, x, generator=generator)
    start = {name: value.clone() for name, value in rbm.state_dict().items()}
    keep = KeepBest(observed_nats)
    optimizer = torch.optim.SGD(rbm.parameters(), 0.5)
    hm.fit(rbm, x, ObservedLikelihood(), optimizer=optimizer, epochs=3, validation=x, monitors=[keep])
    assert keep.value >= observed_nats_of(start, x) - 1e-12
    rbm.load_state_dict(keep.best)
    assert observed_nats(rbm, {"visible": x}) == pytest.approx(keep.value, abs=1e-12)
    again = KeepBest(observed_nats)
    again.load_state_dict(keep.state_dict())
    assert again.value == keep.value and all(torch.equal(again.best[name], p) for name, p in keep.best.items())


def observed_nats_of(state: dict[str, torch.Tensor], x: torch.Tensor) -> float:
    rbm = table_machine(COLUMNS, 2)
    rbm.load_state_dict(state)
    return observed_nats(rbm, {"visible": x})


def test_updates_are_counted_not_epochs() -> None:
    assert n_epochs(100) == 200 and n_epochs(512 * 50) == 4 and n_epochs(10**7) == 1


def test_a_start_needs_a_category() -> None:
    with pytest.raises(ValueError, match="Categorical"):
        start_mixture(RBM(Bernoulli(2), Bernoulli(2)), torch.zeros(4, 2))
