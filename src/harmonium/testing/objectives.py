"""The contract of objectives: at the model's own law there is nothing to learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.learning import CD, PCD, Contrastive, TemperedPCD
from harmonium.models import BoltzmannMachine
from harmonium.samplers import ParallelTempering, Sampler
from harmonium.samplers.base import Info
from harmonium.testing.contract import FALSE_ALARM, normal_quantile, random_generator, require, require_close
from harmonium.testing.machines import ExactLaw
from harmonium.types import EnergyModel, State

ALL_OBJECTIVES: list[Callable[[], Contrastive]] = [
    CD,
    lambda: CD(n_steps=3),
    PCD,
    lambda: PCD(n_chains=37, n_steps=2),
    lambda: TemperedPCD(n_chains=50, betas=(0.0, 0.5, 1.0)),
]
"""A maker of each kind of contrastive objective."""


@dataclass(frozen=True)
class Fixed(Sampler):
    """Chains that go to one given sample and stay there: negatives that a test can choose."""

    x: Tensor | None = None

    def init(self, model: EnergyModel, x: Tensor, *, generator: torch.Generator | None = None) -> State:
        """Return the given sample for each chain."""
        layer = model.data_layer if isinstance(model, BoltzmannMachine) else "x"
        return {layer: x if self.x is None else self.x.expand_as(x)}

    def step(self, model: EnergyModel, state: State, *, generator: torch.Generator | None = None) -> tuple[State, Info]:
        """Stay."""
        return state, {}


def gradients(machine: BoltzmannMachine) -> Tensor:
    """Return the gradients of all parameters laid side by side, zero where there is none."""
    parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in machine.parameters()]
    return torch.cat([part.detach().flatten() for part in parts])


def exact_gradient(machine: BoltzmannMachine, x: Tensor) -> Tensor:
    """Return the gradient of `-mean log p(x) = mean F(x) + log Z` by autograd, Z by enumeration."""
    machine.zero_grad(set_to_none=True)
    loss = machine.energy(x).mean() + (-machine.energy(ExactLaw(machine).states)).logsumexp(0)
    loss.backward()
    return gradients(machine)


def check_exact_gradient(
    objective_factory: Callable[[Sampler], Contrastive],
    machine: BoltzmannMachine,
    *,
    n_rows: int = 5,
    tolerance: float = 1e-9,
    generator: torch.Generator | None = None,
) -> None:
    """Raise `ContractError` unless an objective with exact negatives has the gradient of the exact log-likelihood.

    `objective_factory(sampler)` makes the objective. Each state j of the data layer in turn is its only negative; the
    gradients averaged with the probabilities p(j) must be `∂(mean F(x) + log Z)`. With the states as data, weighted by
    p, the same average must be zero. Both to rounding, in closed form and as a loss. The data layer must be finite.

    >>> from harmonium.testing import tiny_rbm
    >>> check_exact_gradient(lambda sampler: CD(sampler=sampler), tiny_rbm("Bernoulli", "Spin"))
    """
    generator = random_generator(generator=generator)
    layer = machine.data_layer
    law = ExactLaw(machine)
    rows, probability = law.marginal([layer])
    states = rows.reshape(-1, *machine.layer(layer).shape)
    x = law.draw(n_rows, generator=generator)[layer]
    expected = exact_gradient(machine, x)

    def average(run: Callable[[Contrastive], None]) -> Tensor:
        total = torch.zeros_like(expected)
        for state, p in zip(states, probability, strict=True):
            machine.zero_grad(set_to_none=True)
            run(objective_factory(Fixed(x=state)))
            total += p * gradients(machine)
        return total

    name = type(objective_factory(Fixed())).__name__
    closed = average(lambda objective: void(objective.accumulate_grad(machine, x)))
    require_close(closed, expected, tolerance=tolerance, what=f"{name}, the gradient with exact negatives")
    loss = average(lambda objective: objective(machine, x).backward())
    require_close(loss, expected, tolerance=tolerance, what=f"{name}, the gradient of the loss with exact negatives")
    zero = average(lambda objective: void(objective.accumulate_grad(machine, states, weight=probability)))
    what = f"{name}, the gradient with the model's own law as data"
    require_close(zero, torch.zeros_like(zero), tolerance=tolerance, what=what)
    machine.zero_grad(set_to_none=True)


def check_zero_gradient(
    objective_factory: Callable[[], Contrastive],
    machine: BoltzmannMachine,
    *,
    n_rounds: int = 200,
    n_rows: int = 128,
    generator: torch.Generator | None = None,
) -> float:
    """Raise `ContractError` unless the gradient is zero on average when data and chains follow the machine exactly.

    Each round draws fresh data, and fresh chains for objectives that keep them, from the exact law of the machine, and
    takes the gradient in closed form with the objective's own sampler. The mean over the rounds of each entry, in units
    of its standard error, must stay within a bound that correct code passes with a false-alarm rate of 1e-6 in all.

    Returns the largest of these ratios.

    >>> from harmonium.testing import tiny_rbm
    >>> ratio = check_zero_gradient(CD, tiny_rbm("Bernoulli", "Spin"), n_rounds=50)
    """
    generator = random_generator(generator=generator)
    law = ExactLaw(machine)
    rounds = []
    for _ in range(n_rounds):
        objective = objective_factory()
        if isinstance(objective, PCD):
            objective.chains = _exact_chains(objective, machine, generator)
        machine.zero_grad(set_to_none=True)
        x = law.draw(n_rows, generator=generator)[machine.data_layer]
        objective.accumulate_grad(machine, x, generator=generator)
        rounds.append(gradients(machine))
    machine.zero_grad(set_to_none=True)
    found = torch.stack(rounds)
    error = found.std(0) / n_rounds**0.5
    rounding = 1e-12 * found.abs().amax().clamp_min(1.0)
    ratio = (found.mean(0).abs() / (error + rounding)).max().item()
    bound = normal_quantile(FALSE_ALARM / found.shape[1])
    require(
        ratio <= bound,
        f"{objective_factory()!r}: with the model's own law as data the mean gradient is {ratio:.1f} standard errors "
        f"from zero (bound {bound:.1f}).",
    )
    return ratio


def _exact_chains(objective: PCD, machine: BoltzmannMachine, generator: torch.Generator) -> State:
    """Return chains that follow the machine exactly, at each temperature where there are several."""
    if not isinstance(objective.sampler, ParallelTempering):
        return ExactLaw(machine).draw(objective.n_chains, generator=generator)
    rungs = [machine.tempered(beta, objective.sampler.reference) for beta in objective.sampler.betas]
    draws = [ExactLaw(rung).draw(objective.n_chains, generator=generator) for rung in rungs]
    return {name: torch.stack([draw[name] for draw in draws]) for name in machine.units}


def void(result: object) -> None:
    """Drop a result."""
