"""Missing values: drawn from the exact conditional law, and learned through."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

import harmonium as hm
from harmonium.learning import Training
from harmonium.learning.batches import Batches
from harmonium.learning.missing import MissingValues
from harmonium.testing import ExactLaw, scatter
from harmonium.testing.contract import chi_square_tail
from tests.learning.machines import small_bars

NAN = float("nan")


def imputed(rbm: hm.RBM, row: Tensor, n_rounds: int, generator: torch.Generator) -> Tensor:
    """Return 4000 imputations of one row after some rounds."""
    x = row.expand(4000, -1).clone()
    missing = MissingValues(rbm, Batches(x, rbm))
    assert torch.equal(missing.unknown["visible"], x.isnan())
    everything = torch.arange(len(x))
    for _ in range(n_rounds):
        filled = missing.fill(everything, {"visible": x}, generator=generator)
    return filled["visible"]


def tail(rows: Tensor, law: ExactLaw) -> float:
    frequencies, probability = law.frequencies({"visible": rows}, ["visible"])
    possible = probability > 0
    assert bool((frequencies[~possible] == 0).all())
    return chi_square_tail(frequencies[possible] * len(rows), probability[possible])


def test_imputations_follow_the_conditional_law(generator: torch.Generator) -> None:
    """χ² against enumeration, false-alarm rate 1e-6; one round from the column means is not there yet."""
    rbm = scatter(hm.RBM(hm.Bernoulli(4), hm.Bernoulli(3)), scale=1.0)
    row = torch.tensor([1.0, NAN, NAN, 0.0]).double()
    law = ExactLaw(rbm, row)
    rows = imputed(rbm, row, 30, generator)
    assert bool((rows[:, 0] == 1).all())
    assert bool((rows[:, 3] == 0).all())
    assert tail(rows, law) > 1e-6
    wrong = scatter(hm.RBM(hm.Bernoulli(4), hm.Bernoulli(3)), scale=1.0, generator=torch.Generator().manual_seed(9))
    assert tail(imputed(wrong, row, 30, generator), law) < 1e-6


def test_a_gaussian_given_its_neighbor(generator: torch.Generator) -> None:
    """Given x₁ the law of x₂ is a mixture of two Gaussians, with known mean and variance."""
    rbm = hm.RBM(hm.Gaussian(2), hm.Bernoulli(1)).double()
    with torch.no_grad():
        rbm.weight.copy_(torch.tensor([[1.0], [2.0]]))
    x1 = 0.5
    # e^{-E}: h = 0 weighs 1, h = 1 weighs e^{x₁ w₁ + w₂²/2} after x₂ is integrated out.
    p = torch.sigmoid(torch.tensor(x1 * 1.0 + 2.0, dtype=torch.float64)).item()
    mean, variance = 2 * p, 1 + 4 * p * (1 - p)
    rows = imputed(rbm, torch.tensor([x1, NAN]).double(), 40, generator)
    assert bool((rows[:, 0] == x1).all())
    assert abs(rows[:, 1].mean() - mean) < 5 * (variance / 4000) ** 0.5
    assert rows[:, 1].var().item() == pytest.approx(variance, rel=0.15)


def test_rows_without_gaps_stay(generator: torch.Generator) -> None:
    rbm = hm.RBM(hm.Bernoulli(2), hm.Bernoulli(2))
    x = torch.tensor([[0.0, 1.0], [1.0, NAN]])
    missing = MissingValues(rbm, Batches(x, rbm))
    assert list(missing.values) == ["visible"]
    filled = missing.fill(torch.tensor([0]), {"visible": x[:1]}, generator=generator)
    assert torch.equal(filled["visible"], x[:1])
    assert MissingValues(rbm, Batches(x[:1], rbm)).values == {}
    assert MissingValues(rbm, Batches(x[:1].to(torch.uint8), rbm)).values == {}


def test_a_transform_acts_on_what_is_known(generator: torch.Generator) -> None:
    """Known entries come from the transformed batch, not from the data as it was."""
    rbm = hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2))
    data = torch.tensor([[0.0, 1.0, NAN]]).repeat(8, 1)

    def flip(batch: Tensor, *, generator: torch.Generator | None) -> Tensor:
        return 1 - batch

    training = Training(rbm, data, hm.CD(), optimizer=torch.optim.SGD(rbm.parameters(), 0.1), epochs=1, transform=flip,
                        generator=generator)  # fmt: skip
    training.run()
    batch = training.batch["visible"]
    assert batch[:, :2].tolist() == [[1.0, 0.0]] * 8
    assert set(batch[:, 2].tolist()) <= {0.0, 1.0}


def test_learning_with_a_fourth_of_the_values_missing(generator: torch.Generator) -> None:
    """Bars and stripes with gaps: much better than independent units, which know nothing of the patterns."""
    complete = small_bars().double()
    x = complete.repeat(16, 1)
    x[torch.empty_like(x).uniform_(generator=generator) < 1 / 4] = NAN
    before = x.clone()
    rbm = hm.RBM(hm.Bernoulli(9), hm.Bernoulli(12), generator=generator).double()
    hm.initialize(rbm, x)
    optimizer = torch.optim.Adam(rbm.parameters(), 0.01)
    hm.fit(
        rbm, x, hm.PCD(n_chains=64), optimizer=optimizer, epochs=400, batch_size=64, monitors=[], generator=generator
    )
    assert torch.equal(x.nan_to_num(9.0), before.nan_to_num(9.0))
    assert hm.log_likelihood(rbm, complete).mean().value > -9 * math.log(2) + 1.0


def test_gaps_in_a_one_hot_vector() -> None:
    rbm = hm.RBM(hm.Categorical(1, 3), hm.Bernoulli(2))
    with pytest.raises(ValueError, match="`visible` knows a one-hot vector of .* in part"):
        MissingValues(rbm, Batches(torch.tensor([[[1.0, NAN, 0.0]]]), rbm))


def test_models_that_cannot_draw() -> None:
    linear = nn.Linear(2, 1)
    with pytest.raises(TypeError, match="Missing values need a BoltzmannMachine.*Got Linear"):
        MissingValues(linear, Batches(torch.tensor([[1.0, NAN]]), linear))


def test_data_of_gaps_alone() -> None:
    rbm = hm.RBM(hm.Bernoulli(2), hm.Bernoulli(2))
    with pytest.raises(ValueError, match="All values of layer 'visible' are NaN .*there is nothing to learn from"):
        MissingValues(rbm, Batches(torch.full((3, 2), NAN), rbm))


def test_gaps_that_fit_cannot_fill() -> None:
    rbm = hm.RBM(hm.Bernoulli(2), hm.Bernoulli(2))
    optimizer = torch.optim.SGD(rbm.parameters(), 0.1)
    with pytest.raises(ValueError, match="`visible` must be finite. It holds NaN"):
        hm.fit(rbm, TensorDataset(torch.tensor([[1.0, NAN]])), hm.CD(), optimizer=optimizer, epochs=1)
