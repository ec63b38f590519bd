"""The one verb: where chains start, what is given, what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from harmonium.couplings import Dense
from harmonium.models import DBN, RBM, BoltzmannMachine
from harmonium.samplers import MALA, Gibbs, Langevin, Metropolis, ParallelTempering, Sampler, sample
from harmonium.samplers.sample import starting_points
from harmonium.testing import ExactLaw, scatter, tiny_rbm
from harmonium.testing.contract import chi_square_tail
from harmonium.units import Bernoulli, Categorical, Gaussian, Mixed

NAN = float("nan")


class Bowl(nn.Module):
    """`F(x) = x²/2`, with starting points of its own."""

    def free_energy(self, x: Tensor) -> Tensor:
        return x.square().sum(-1) / 2

    def initial(self, n: int, *, generator: torch.Generator | None = None) -> Tensor:
        return torch.randn(n, 2, generator=generator)


class Homeless(nn.Module):
    def free_energy(self, x: Tensor) -> Tensor:
        return x.square().sum(-1)


def test_samples_follow_the_model(generator: torch.Generator) -> None:
    rbm = tiny_rbm("Bernoulli", "Spin")
    v = sample(rbm, 5000, n_steps=50, generator=generator)
    law = ExactLaw(rbm)
    frequency, probability = law.frequencies({"visible": v}, ["visible"])
    assert chi_square_tail(frequency * 5000, probability) > 1e-6
    assert chi_square_tail(frequency * 5000, torch.full((16,), 1 / 16, dtype=torch.float64)) < 1e-6


@pytest.mark.parametrize("sampler", [None, Metropolis(), ParallelTempering(betas=(0.0, 0.5, 1.0))])
def test_given_is_conditional(sampler: Sampler | None, generator: torch.Generator) -> None:
    rbm = tiny_rbm("Bernoulli", "Bernoulli")
    given_values = torch.tensor([1.0, NAN, NAN, 0.0], dtype=torch.float64)
    v = sample(rbm, 4000, sampler=sampler, n_steps=60, given=given_values, generator=generator)
    assert (v[:, 0] == 1).all()
    assert (v[:, 3] == 0).all()
    law = ExactLaw(rbm, given_values)
    frequency, probability = law.frequencies({"visible": v}, ["visible"])
    known = probability > 0
    assert chi_square_tail(frequency[known] * 4000, probability[known]) > 1e-6


def test_given_one_for_each_sample(generator: torch.Generator) -> None:
    rbm = tiny_rbm("Bernoulli", "Bernoulli")
    values = torch.tensor([[1.0, NAN, NAN, NAN], [NAN, 0.0, NAN, NAN], [NAN] * 4], dtype=torch.float64)
    v = sample(rbm, 3, n_steps=5, given=values, generator=generator)
    assert v[0, 0] == 1
    assert v[1, 1] == 0
    assert not v.isnan().any()


def test_given_everything_returns_it(generator: torch.Generator) -> None:
    rbm = tiny_rbm("Gaussian", "Bernoulli")
    values = torch.tensor([0.5, -2.0], dtype=torch.float64)
    assert torch.equal(sample(rbm, 3, n_steps=4, given=values, generator=generator), values.expand(3, 2))


def test_given_on_a_mixed_table(generator: torch.Generator) -> None:
    rbm = scatter(RBM(Mixed(Bernoulli(1), Gaussian(1), Categorical(1, 3)), Bernoulli(4)), generator=generator)
    values = torch.tensor([NAN, 0.7, 0.0, 1.0, 0.0], dtype=torch.float64)
    v = sample(rbm, 50, n_steps=10, given=values, generator=generator)
    assert torch.equal(v[:, 1:], values[1:].expand(50, 4))
    assert set(v[:, 0].tolist()) == {0.0, 1.0}
    unknown = torch.tensor([1.0, NAN, NAN, NAN, NAN], dtype=torch.float64)
    v = sample(rbm, 50, n_steps=10, given=unknown, generator=generator)
    assert torch.equal(v[:, 2:].sum(1), torch.ones(50, dtype=torch.float64))


def test_given_for_any_energy(generator: torch.Generator) -> None:
    v = sample(
        Bowl(), 100, sampler=MALA(step_size=0.5), n_steps=20, given=torch.tensor([2.0, NAN]), generator=generator
    )
    assert (v[:, 0] == 2.0).all()
    assert v[:, 1].std() > 0.3
    assert sample(Bowl(), 10, n_steps=3, generator=generator).shape == (10, 2)


def test_each_step_is_shown(generator: torch.Generator) -> None:
    seen: list[tuple[int, dict[str, Any]]] = []
    sampler = ParallelTempering(betas=(0.0, 1.0))
    sample(
        tiny_rbm("Spin", "Spin"),
        5,
        sampler=sampler,
        n_steps=3,
        on_step=lambda i, info: seen.append((i, info)),
        generator=generator,
    )
    assert [i for i, _ in seen] == [0, 1, 2]
    assert all(info["swap_rates"].shape == (1,) for _, info in seen)


def test_same_generator_same_samples() -> None:
    rbm = tiny_rbm("Bernoulli", "Gaussian")
    first, second = (sample(rbm, 20, n_steps=5, generator=torch.Generator().manual_seed(4)) for _ in range(2))
    assert torch.equal(first, second)
    assert not first.requires_grad


def test_chains_start_under_the_biases(generator: torch.Generator) -> None:
    rbm = RBM(Bernoulli(2), Bernoulli(2))
    with torch.no_grad():
        rbm.visible_bias.copy_(torch.tensor([100.0, -100.0]))
    assert torch.equal(starting_points(rbm, 5, generator=generator), torch.tensor([1.0, 0.0]).expand(5, 2))


# --- bad input --------------------------------------------------------------------------------------------------------
RBM4 = RBM(Bernoulli(4), Bernoulli(2))
CLASSES = RBM(Categorical(2, 3), Bernoulli(2))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: sample(RBM4, 0), ValueError, "`n` and `n_steps` must be at least 1. Got n=0"),
        (lambda: sample(RBM4, 3, n_steps=0), ValueError, "Got n=3, n_steps=0"),
        (lambda: sample(RBM4, 3, given=torch.zeros(5)), ValueError, r"`given` must have shape \(\*batch, 4\)"),
        (
            lambda: sample(RBM4, 3, given=torch.zeros(2, 4)),
            ValueError,
            r"`given` must be one sample, of shape \(4,\), or n=3 of them. Got \(2, 4\)",
        ),
        (lambda: sample(RBM4, 1, given=torch.zeros(5, 4)), ValueError, r"or n=1 of them. Got \(5, 4\)"),
        (lambda: sample(RBM4, 3, given=torch.full((4,), 7)), ValueError, r"must lie in \[0, 1\].*7"),
        (lambda: sample(RBM4, 3, given=torch.zeros(4).double()), TypeError, "`given` must be torch.float32"),
        (lambda: sample(RBM4, 3, given=torch.full((4,), 7.0)), ValueError, r"must lie in \[0, 1\].*7"),
        (lambda: sample(RBM4, 3, given=torch.tensor([1.0, math.inf, 0.0, 0.0])), ValueError, "must be finite"),
        (
            lambda: sample(CLASSES, 3, given=torch.tensor([[1.0, NAN, NAN], [NAN, NAN, NAN]])),
            ValueError,
            "knows a one-hot vector of Categorical.* in part",
        ),
        (lambda: sample(RBM4, 3, sampler=Langevin()), TypeError, "Langevin follows the slope.*Bernoulli"),
        (lambda: sample(RBM4, 3, sampler=MALA()), TypeError, "MALA follows the slope.*Use Gibbs or Metropolis"),
        (lambda: sample(Bowl(), 3, sampler=Gibbs()), TypeError, "Gibbs needs a BoltzmannMachine"),
        (lambda: sample(Homeless(), 3), TypeError, "Homeless does not say where chains start"),
    ],
)
def test_bad_input(call: Callable[[], object], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_given_integers_are_taken_for_floats() -> None:
    known = torch.tensor([1, 0, 0, 1])
    drawn = [
        sample(RBM4, 3, given=given, generator=torch.Generator().manual_seed(0)) for given in (known, known.float())
    ]
    assert torch.equal(*drawn)
    assert torch.equal(drawn[0], known.float().expand(3, 4))


def test_a_model_without_a_law_is_named(generator: torch.Generator) -> None:
    """Gaussian units on both sides with large weights have no normalizable law: the chains run away, and it says so."""
    machine = BoltzmannMachine({"v": Gaussian(2), "h": Gaussian(2)}, [(("v", "h"), Dense(2, 2))])
    with torch.no_grad():
        for parameter in machine.couplings.parameters():
            parameter.fill_(1e4)
    with pytest.raises(ValueError, match="ran away to infinity or NaN. The model may have no normalizable law"):
        sample(machine, 3, n_steps=100, generator=generator)


def test_langevin_that_diverges_says_so(generator: torch.Generator) -> None:
    rbm = tiny_rbm("Gaussian", "Bernoulli")
    with pytest.raises(ValueError, match="finite|ran away"):
        sample(rbm, 3, sampler=Langevin(step_size=1e6), n_steps=200, generator=generator)


@given(
    n=st.integers(1, 4),
    n_steps=st.integers(1, 4),
    scale=st.sampled_from([0.0, 1.0, 1e4]),
    kind=st.sampled_from([Gibbs(), Metropolis(), ParallelTempering(betas=(0.0, 0.3, 1.0))]),
    known=st.lists(st.sampled_from([0.0, 1.0, NAN]), min_size=3, max_size=3),
    seed=st.integers(0, 2**31),
)
def test_any_request_is_answered(
    n: int, n_steps: int, scale: float, kind: Sampler, known: list[float], seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    rbm = RBM(Bernoulli(3), Gaussian(2))
    with torch.no_grad():
        for parameter in rbm.couplings.parameters():
            parameter.uniform_(-scale, scale, generator=generator)
    values = torch.tensor(known)
    v = sample(rbm, n, sampler=kind, n_steps=n_steps, given=values, generator=generator)
    assert v.shape == (n, 3)
    assert ((v == 0) | (v == 1)).all()
    assert (v.where(~values.isnan(), 0.0) == values.nan_to_num(0.0)).all()


def test_a_deep_network_calls_back_and_takes_integers(generator: torch.Generator) -> None:
    dbn, steps = DBN.from_spec("dense 4, dense 2", shape=(6,)), []
    start = torch.ones(3, 6, dtype=torch.int64)
    x = sample(dbn, 3, n_steps=4, start=start, generator=generator, on_step=lambda i, _: steps.append(i))
    assert x.shape == (3, 6) and steps == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "make", [lambda: RBM(Bernoulli(4), Bernoulli(3)), lambda: DBN([RBM(Bernoulli(4), Bernoulli(3))])]
)
def test_a_model_whose_parameters_are_nan_is_not_drawn_from(make: Callable[[], nn.Module]) -> None:
    """A coin thrown with probability NaN falls on a side: nothing in the samples would show it."""
    model = make()
    assert sample(model, 2, n_steps=1).isfinite().all()
    next(p for name, p in model.named_parameters() if name.endswith("weight")).data[0, 0] = NAN
    with pytest.raises(ValueError, match="weight' holds NaN"):
        sample(model, 2, n_steps=1)
