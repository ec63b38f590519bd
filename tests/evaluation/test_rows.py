"""Imputation and scores of rows: exact conditionals, p-values that are uniform, columns that explain."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from harmonium.data import Column, encode, infer_columns
from harmonium.evaluation.annealed_rows import rows_log_likelihood
from harmonium.evaluation.crowd import N_PATTERNS, Crowd, free_energies
from harmonium.evaluation.imputation import Filled, completed, draw_imputations, impute
from harmonium.evaluation.moments import moments_apart
from harmonium.evaluation.row_scores import observed_log_likelihood, score_rows
from harmonium.evaluation.synthetic import draw_rows
from harmonium.learning.fit_table import table_machine
from harmonium.learning.starts.mixture import start_mixture
from harmonium.models import RBM
from harmonium.models.observed import draw_observed
from harmonium.types import Estimate
from harmonium.units import Bernoulli, Categorical, Gaussian, Mixed

COLUMNS = (
    Column("a", "real", decimals=2, low=-9, high=9),
    Column("b", "real", decimals=2, low=-9, high=9),
    Column("level", "ordinal", (1, 2, 3)),
)


@pytest.fixture
def rbm() -> RBM:
    """A single component: a and b normal with correlation 0.8, the level independent with shares ½, ¼, ¼."""
    machine = table_machine(COLUMNS, 1)
    with torch.no_grad():
        machine.weight.zero_()
        machine.visible.parts[0].set_covariance(torch.tensor([[1.0, 0.8], [0.8, 1.0]]))  # type: ignore[operator]
        machine.visible_bias.copy_(torch.tensor([0, 0, math.log(2), 0, 0]).double())
    return machine


def row(a: float, b: float, level: int | None) -> list[float]:
    return [a, b, *([math.nan] * 3 if level is None else [float(level == i) for i in (1, 2, 3)])]


def rows(*cells: tuple[float, float, int | None]) -> torch.Tensor:
    return torch.tensor([row(*cell) for cell in cells], dtype=torch.float64)


def test_likelihood_of_what_is_known(rbm: RBM) -> None:
    found = observed_log_likelihood(rbm, rows((0.0, math.nan, None), (math.nan, math.nan, 1))).value
    assert found.tolist() == pytest.approx([-0.5 * math.log(2 * math.pi), math.log(0.5)], abs=1e-9)


def test_a_cell_is_filled_with_its_conditional_mean(rbm: RBM, generator: torch.Generator) -> None:
    filled = impute(rbm, rows((1.5, math.nan, 1), (0.0, 0.0, 2)), COLUMNS, n_draws=4000, generator=generator)
    (cell,) = filled
    assert (cell.row, cell.column) == (0, "b")
    assert abs(float(cell.value) - 1.2) < 5 * 0.6 / math.sqrt(4000) + 0.01  # 0.8 · 1.5, to two decimals
    assert cell.std == pytest.approx(0.6, rel=0.1)
    assert float(cell.low) == pytest.approx(1.2 - 1.645 * 0.6, abs=0.12)  # type: ignore[arg-type]
    assert round(float(cell.value), 2) == cell.value
    drawn = draw_imputations(rbm, rows((1.5, math.nan, 1)), 7, generator=generator)
    assert drawn.shape == (7, 1, 5) and len(drawn[:, 0, 1].unique()) == 7 and bool((drawn[:, 0, 0] == 1.5).all())


def test_levels_get_their_probability(rbm: RBM, generator: torch.Generator) -> None:
    (cell,) = impute(rbm, rows((0.0, 0.0, None)), COLUMNS, n_draws=2000, generator=generator)
    assert cell.value in (1, 2) and cell.probability is not None  # the median of ½, ¼, ¼ lies between 1 and 2
    assert completed({"a": [0.0], "level": [None]}, [cell]) == {"a": [0.0], "level": [cell.value]}
    assert impute(rbm, rows((0.0, 0.0, 1)), COLUMNS, generator=generator) == []
    assert Filled(0, "a", 1.0).probability is None


def test_p_values_of_the_models_own_rows_are_uniform(rbm: RBM, generator: torch.Generator) -> None:
    x = draw_observed(rbm, torch.full((2000, 5), math.nan).double(), generator=generator)
    x[::2, 0] = math.nan
    scores = score_rows(rbm, x, COLUMNS, generator=generator)
    for p in (scores.p_value[::2], scores.p_value[1::2]):
        # Levels make ties, so p is at least uniform: never too small. 1,000 rows against 1,000 draws.
        assert float((p <= 0.1).double().mean()) < 0.1 + 5 * math.sqrt(2 * 0.09 / 1000)
        assert float((p <= 0.5).double().mean()) > 0.3


def test_the_odd_column_is_named(rbm: RBM, generator: torch.Generator) -> None:
    scores = score_rows(rbm, rows((1.5, -1.5, 1), (0.1, 0.1, 1), (math.nan, 5.0, 1)), COLUMNS, generator=generator)
    assert [name for name, _ in scores.because(0)[:2]] in (["a", "b"], ["b", "a"]) and not scores.because(1)
    assert scores.because(2)[0][0] == "b" and float(scores.surprise[2, 0]) == 0.0
    assert float(scores.anomaly[0]) > 3 > 1 > float(scores.anomaly[1])
    assert float(scores.p_value[0]) < 0.01 < float(scores.p_value[1])


def test_a_memory_is_a_modern_hopfield_network(generator: torch.Generator) -> None:
    """Its free energies are those of an RBM with Gaussian units and one category, up to a constant."""
    x, memory = (torch.randn(n, 3, generator=generator).double() for n in (5, N_PATTERNS))
    found = free_energies(x, memory, 3)
    for i, energies in enumerate(found):
        h = math.sqrt(2 * 3) / 2 / 4**i
        network = RBM(Gaussian(3), Categorical(1, N_PATTERNS)).double()
        with torch.no_grad():
            network.visible.log_sigma.fill_(math.log(h))  # type: ignore[union-attr, operator]
            network.weight.copy_(memory.mT)
            network.hidden_bias.copy_(-memory.square().sum(1)[None] / (2 * h * h))
            apart = network.energy(x) - energies
        assert float(apart.max() - apart.min()) < 1e-9


def test_nearly_copies_that_differ_are_odd(rbm: RBM, generator: torch.Generator) -> None:
    """Columns correlated by 0.99: a row seven of their differences out lies among the others, for a memory."""
    with torch.no_grad():
        rbm.visible.parts[0].set_covariance(torch.tensor([[1.0, 0.99], [0.99, 1.0]]))  # type: ignore[operator]
    crowd = Crowd(rbm, COLUMNS, generator=generator)
    anomaly, p = crowd.oddness(rows((0.5, -0.5, 1), (0.5, 0.5, 1), (math.nan, math.nan, None)))
    assert float(p[0]) < 0.02 and float(anomaly[0]) > 3 and float(p[1]) > 0.05
    assert anomaly[2] == 0 and p[2] == 1  # of a row that is not known at all, nothing is odd


def test_odd_rows_that_were_learned_stay_odd(generator: torch.Generator) -> None:
    """A component of its own for three rows in a hundred: the density there is no lower than elsewhere."""
    columns = COLUMNS[:2]
    machine = table_machine(columns, 2)
    with torch.no_grad():
        machine.weight.copy_(torch.tensor([[0.0, 8.0], [0.0, 8.0]]))
        machine.visible_bias.zero_()
        c = torch.tensor([[0.97, 0.03]]).double().log()
        c[0, 1] -= 64.0  # A(b + W) of the second: its share is 0.03
        machine.hidden_bias.copy_(c)
    x = torch.tensor([[0.0, 0.0], [8.0, 8.0], [1.9, -1.9]]).double()
    anomaly, p = Crowd(machine, columns, generator=generator).oddness(x)
    assert float(anomaly[1]) > float(anomaly[2]) > float(anomaly[0]) and float(p[1]) < 0.06
    log_p = observed_log_likelihood(machine, x).value
    assert float(log_p[1]) > float(log_p[2])  # the control: the density finds the learned row the more usual one
    x = encode({"a": [1e300], "b": [0.0]}, columns)
    far = Crowd(machine, columns, generator=generator).oddness(x)[0]
    assert math.isfinite(float(far)) and float(far) > 100


def test_surprise_is_the_conditional(rbm: RBM, generator: torch.Generator) -> None:
    scores = score_rows(rbm, rows((2.0, 1.0, 1)), COLUMNS, generator=generator)
    mean, variance = 0.8, 0.36  # of a given b = 1
    exact = ((2.0 - mean) ** 2 / variance - 1) / 2  # less its mean over rows of the model
    assert float(scores.surprise[0, 0]) == pytest.approx(exact, abs=5 * 0.71 / math.sqrt(1000))


def test_log_likelihood_is_in_the_units_of_the_table(rbm: RBM, generator: torch.Generator) -> None:
    wide = (Column("a", "real", unit=100.0), *COLUMNS[1:])
    x = rows((0.3, 0.2, 1))
    near, far = (score_rows(rbm, x, columns, generator=generator).log_likelihood for columns in (COLUMNS, wide))
    assert float(near - far) == pytest.approx(math.log(100), abs=1e-9)


def test_synthetic_rows_have_the_margins_of_the_data_and_the_order_of_the_model(generator: torch.Generator) -> None:
    """A column with a spike at 3 and a far value, tied to another: the model knows neither, its rows have both."""
    tied = torch.randn(400, generator=generator).double()
    odd = (2 * tied).exp()
    odd[(odd > 1) & (odd < 5)] = 3.0
    odd[int(tied.argmax())] = 900.0
    table = {"tied": tied.tolist(), "odd": odd.tolist()}
    columns = infer_columns(table)
    x = encode(table, columns)
    machine = table_machine(columns, 1)
    start_mixture(machine, x)
    made = draw_rows(machine, columns, 4000, generator=generator)
    plain = draw_observed(machine, torch.full((4000, 2), math.nan).double(), generator=generator)
    cells, alone = (columns[1].inverse(rows[:, 1]) for rows in (made, plain))
    spike = float((odd == 3).double().mean())
    error = 5 * math.sqrt(spike * (1 - spike) / 4000) + 0.04  # and the knots at its ends are 2 % of the rows apart
    assert abs(float((cells == 3).double().mean()) - spike) < error < spike and not bool((alone == 3).any())
    assert bool((cells > 0).all()) and 300 < float(cells.max()) <= 900
    ranks = [rows.argsort(0).argsort(0).double() for rows in (made, x)]
    order, of_data = (float(torch.corrcoef(r.mT)[0, 1]) for r in ranks)
    assert abs(order - of_data) < 0.1
    assert torch.equal(draw_rows(machine, [replace(c, quantiles=()) for c in columns], 9, generator=seeded(1)),
                       draw_observed(machine, torch.full((9, 2), math.nan).double(), generator=seeded(1)))  # fmt: skip


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_moments_of_samples(generator: torch.Generator) -> None:
    x = torch.randn(500, 2, generator=generator).double()
    machine = table_machine(COLUMNS[:2], 1)
    start_mixture(machine, x)
    samples = draw_observed(machine, torch.full((5000, 2), math.nan).double(), generator=generator)
    good = moments_apart(samples, x, COLUMNS[:2])
    assert good["mean"] < 0.1 and good["spread"] < 1.1
    bad = moments_apart(2 * samples + 1, x, COLUMNS[:2])
    assert bad["mean"] > 0.8 and bad["spread"] > 1.8


def test_annealing_agrees_with_counting(generator: torch.Generator) -> None:
    """An RBM of 17 hidden units, too many to go through here, against itself with one unit cut off and counted."""
    units = Mixed(Bernoulli(3), Gaussian(2), Categorical(1, 3))
    rbm = RBM(units, Bernoulli(17), generator=generator).double()
    with torch.no_grad():
        rbm.weight.mul_(60.0)
        rbm.weight[:, 8:] = 0.0  # units that see nothing add log 2 each to both sums
    small = RBM(units, Bernoulli(8)).double()
    with torch.no_grad():
        small.weight.copy_(rbm.weight[:, :8])
    x = draw_observed(small, torch.full((6, 8), math.nan).double(), generator=generator)
    x[:3, 1], x[2:5, 5:], x[4, :3] = math.nan, math.nan, math.nan
    exact = observed_log_likelihood(small, x).value
    found = rows_log_likelihood(rbm, x, n_chains=400, generator=generator)
    assert bool(((found.value - exact).abs() < 5 * found.error + 1e-6).all()) and bool((found.error[:5] > 0).any())
    blind = rows_log_likelihood(rbm, x, n_chains=400, n_betas=1, generator=generator)  # a control: nothing annealed
    assert float(blind.error.max()) > 2 * float(found.error.max())
    z = Estimate(0.0, 0.0, 0.0, 0.0, "exact")
    assert rows_log_likelihood(rbm, x, log_z=z, n_chains=400, generator=generator).trusted
    with torch.no_grad():
        rbm.weight[:, :8].mul_(20.0)
    thin = rows_log_likelihood(rbm, x, log_z=z, n_chains=40, n_betas=1, generator=generator)
    assert not thin.trusted and "rows rest on few of their 40 chains" in thin.note
