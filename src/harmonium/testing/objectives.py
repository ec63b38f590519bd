"""The contract of objectives: at the model's own law there is nothing to learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

import harmonium.learning.objectives
from harmonium.inference import ClosedForm, Inference
from harmonium.learning.objectives import CD, PCD, Contrastive, Objective, TemperedPCD
from harmonium.learning.objectives.base import Case
from harmonium.models import BoltzmannMachine, Conditioned, Tempered
from harmonium.models.layers import data_layer
from harmonium.samplers import ParallelTempering, Sampler
from harmonium.samplers.base import Info
from harmonium.testing.contract import FALSE_ALARM, members, normal_quantile, random_generator, require, require_close
from harmonium.testing.machines import ExactLaw
from harmonium.types import EnergyModel, State

ALL_OBJECTIVES: dict[str, Case] = {
    f"{kind.__name__} {i}": case
    for kind in members(harmonium.learning.objectives, Objective)
    for i, case in enumerate(kind.examples())
}
"""A case of each kind of objective in which there is nothing to learn."""

ALL_CONTRASTS: list[Callable[[], Contrastive]] = [
    CD,
    lambda: CD(n_steps=3),
    PCD,
    lambda: PCD(n_chains=37, n_steps=2),
    lambda: TemperedPCD(n_chains=50, betas=(0.0, 0.5, 1.0)),
]
"""A maker of each kind of contrastive objective that draws by a sampler."""


def check_objective(
    case: Case, *, n_rounds: int = 200, n_rows: int = 128, generator: torch.Generator | None = None
) -> float:
    """Hold an objective to its contract; raise `ContractError` where it fails.

    - With nothing to learn the mean gradient over `n_rounds` batches is zero, each entry within a bound that correct
      code passes with a false-alarm rate of 1e-6 in all;
    - the loss is a finite number with a gradient for every parameter;
    - what `state_dict` returns, loaded into another objective, makes the next update the same to the last bit.

    Returns the largest mean in units of its standard error.

    >>> ratio = check_objective(ALL_OBJECTIVES["SlicedScoreMatching 0"], n_rounds=50)
    """
    generator = random_generator(generator=generator)
    model, name = case.model, type(case.objective(generator=generator)).__name__
    first = case.objective(generator=generator)
    learning = [*model.parameters(), *first.parameters()]
    loss = first.loss(model, case.draw(n_rows, generator=generator), generator=generator)
    require(loss.ndim == 0 and bool(loss.isfinite()), f"{name}: the loss is {loss}, not one finite number.")
    slopes = torch.autograd.grad(loss, [p for p in learning if p.requires_grad], allow_unused=True)
    require(all(slope is not None for slope in slopes), f"{name}: a parameter has no gradient in the loss.")
    _check_state(case, n_rows, generator)
    rounds = []
    for _ in range(n_rounds):
        objective = case.objective(generator=generator)
        for parameter in (*model.parameters(), *objective.parameters()):
            parameter.grad = None
        objective.accumulate_grad(model, case.draw(n_rows, generator=generator), generator=generator)
        parts = [p.grad for p in (*model.parameters(), *objective.parameters()) if p.grad is not None]
        rounds.append(torch.cat([part.detach().flatten() for part in parts]))
    model.zero_grad(set_to_none=True)
    return _require_zero_mean(torch.stack(rounds), name)


def _check_state(case: Case, n_rows: int, generator: torch.Generator) -> None:
    """Raise unless an objective that takes up the state of another goes on as that one does."""
    model = case.model
    one, other = (case.objective(generator=generator) for _ in range(2))
    batches = [case.draw(n_rows, generator=generator) for _ in range(2)]
    one.accumulate_grad(model, batches[0], generator=generator)
    other.load_state_dict({name: value.clone() for name, value in one.state_dict().items()})
    found = []
    for objective in (one, other):
        for parameter in (*model.parameters(), *objective.parameters()):
            parameter.grad = None
        objective.accumulate_grad(model, batches[1], generator=torch.Generator().manual_seed(1))
        slopes = [p.grad for p in (*model.parameters(), *objective.parameters()) if p.grad is not None]
        found.append(torch.cat([slope.detach().flatten() for slope in slopes]))
    same = torch.equal(found[0], found[1])
    require(
        same, f"{type(one).__name__}: an update after load_state_dict differs; something that survives is not in it."
    )


def _require_zero_mean(found: Tensor, name: str) -> float:
    """Raise unless the mean of the rows is zero within the bounds of chance; return the largest ratio to its error."""
    error = found.std(0) / len(found) ** 0.5
    rounding = 1e-12 * found.abs().amax().clamp_min(1.0)
    ratio = (found.mean(0).abs() / (error + rounding)).max().item()
    bound = normal_quantile(FALSE_ALARM / found.shape[1])
    require(
        ratio <= bound,
        f"{name}: with the model's own law as data the mean gradient is {ratio:.1f} standard errors from zero "
        f"(bound {bound:.1f}).",
    )
    return ratio


@dataclass(frozen=True)
class Fixed(Sampler):
    """Chains that go to one given state and stay there: negatives that a test can choose."""

    x: State | None = None

    def init(
        self, model: EnergyModel, x: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> State:
        """Return the given state for each chain."""
        first = x if isinstance(x, Tensor) else next(iter(x.values()))
        if self.x is None:
            return {data_layer(model): first} if isinstance(x, Tensor) else dict(x)
        return {name: value.expand(len(first), *value.shape) for name, value in self.x.items()}

    def step(self, model: EnergyModel, state: State, *, generator: torch.Generator | None = None) -> tuple[State, Info]:
        """Stay."""
        return state, {}


def gradients(machine: BoltzmannMachine) -> Tensor:
    """Return the gradients of all parameters laid side by side, zero where there is none."""
    parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in machine.parameters()]
    return torch.cat([part.detach().flatten() for part in parts])


def exact_gradient(machine: BoltzmannMachine, batch: State, inference: Inference | None = None) -> Tensor:
    """Return the gradient of `-mean log p(batch) = mean (F + log Z)` by autograd, F and Z by enumeration.

    Z is that of the layers that are not given, for the conditions of each row. With an `inference`, F is its bound.
    """
    machine.zero_grad(set_to_none=True)
    free = (inference or ClosedForm()).free_energy(machine, batch)
    if machine.given:
        rows = []
        for i in range(len(free)):
            law = Conditioned(machine, {name: batch[name][i] for name in machine.given})
            rows.append((-law.energy(ExactLaw(law).states)).logsumexp(0))
        log_z = torch.stack(rows)
    else:
        log_z = (-machine.energy(ExactLaw(machine).states)).logsumexp(0)
    (free + log_z).mean().backward()
    return gradients(machine)


def check_exact_gradient(
    objective_factory: Callable[[Sampler], Contrastive],
    machine: BoltzmannMachine,
    batch: State | None = None,
    *,
    n_rows: int = 5,
    tolerance: float = 1e-9,
    generator: torch.Generator | None = None,
) -> None:
    """Raise `ContractError` unless an objective with exact negatives has the gradient of the exact log-likelihood.

    `objective_factory(sampler)` makes the objective. Each state j of the finite layers in turn is its only negative;
    the gradients averaged with the probabilities p(j) must be `∂(mean F(batch) + log Z)`, F being the bound of the
    objective's inference. Where the inference is exact, the same average with the states as data, weighted by p, must
    be zero. Both to rounding, in closed form and as a loss. Without a `batch`, data of the data layer are drawn from
    the machine. A machine with conditions must hold the same ones in all rows.

    >>> from harmonium.testing import tiny_rbm
    >>> check_exact_gradient(lambda sampler: CD(sampler=sampler), tiny_rbm("Bernoulli", "Spin"))
    """
    generator = random_generator(generator=generator)
    inference = objective_factory(Fixed()).inference
    given = {} if batch is None else {name: batch[name] for name in machine.given}
    law = ExactLaw(Conditioned(machine, {name: value[0] for name, value in given.items()}) if given else machine)
    layer = machine.data_layer
    finite = [name for name in law.layers if machine.layer(name).n_configurations() is not None]
    if batch is None:
        batch = {layer: law.draw(n_rows, generator=generator)[layer]}
    expected = exact_gradient(machine, batch, inference)

    def average(run: Callable[[Contrastive], None]) -> Tensor:
        total = torch.zeros_like(expected)
        for i, p in enumerate(law.probability):
            machine.zero_grad(set_to_none=True)
            run(objective_factory(Fixed(x={name: law.states[name][i] for name in finite})))
            total += p * gradients(machine)
        return total

    name = type(objective_factory(Fixed())).__name__
    closed = average(lambda objective: void(objective.accumulate_grad(machine, batch)))
    require_close(closed, expected, tolerance=tolerance, what=f"{name}, the gradient with exact negatives")
    loss = average(lambda objective: objective.loss(machine, batch).backward())
    require_close(loss, expected, tolerance=tolerance, what=f"{name}, the gradient of the loss with exact negatives")
    if inference.exact and layer in finite:
        n = len(law.probability)
        seen = {key: law.states[key] for key in batch if key in finite}
        seen |= {key: value[:1].expand(n, *value.shape[1:]) for key, value in given.items()}
        zero = average(lambda objective: void(objective.accumulate_grad(machine, seen, weight=law.probability)))
        what = f"{name}, the gradient with the model's own law as data"
        require_close(zero, torch.zeros_like(zero), tolerance=tolerance, what=what)
    machine.zero_grad(set_to_none=True)


def check_zero_gradient(
    objective_factory: Callable[[], Contrastive],
    machine: BoltzmannMachine,
    *,
    layers: tuple[str, ...] = (),
    n_rounds: int = 200,
    n_rows: int = 128,
    generator: torch.Generator | None = None,
) -> float:
    """Raise `ContractError` unless the gradient is zero on average when data and chains follow the machine exactly.

    Each round draws fresh data, and fresh chains for objectives that keep them, from the exact law of the machine, and
    takes the gradient in closed form with the objective's own sampler. The mean over the rounds of each entry, in units
    of its standard error, must stay within a bound that correct code passes with a false-alarm rate of 1e-6 in all.
    `layers` are those that are observed, the data layer unless told.

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
        drawn = law.draw(n_rows, generator=generator)
        batch = {name: drawn[name] for name in layers or (machine.data_layer,)}
        objective.accumulate_grad(machine, batch, generator=generator)
        rounds.append(gradients(machine))
    machine.zero_grad(set_to_none=True)
    return _require_zero_mean(torch.stack(rounds), repr(objective_factory()))


def _exact_chains(objective: PCD, machine: BoltzmannMachine, generator: torch.Generator) -> State:
    """Return chains that follow the machine exactly, at each temperature where there are several."""
    if not isinstance(objective.sampler, ParallelTempering):
        return ExactLaw(machine).draw(objective.n_chains, generator=generator)
    rungs = [Tempered(machine, beta, objective.sampler.reference) for beta in objective.sampler.betas]
    draws = [ExactLaw(rung).draw(objective.n_chains, generator=generator) for rung in rungs]
    return {name: torch.stack([draw[name] for draw in draws]) for name in machine.layers}


def void(result: object) -> None:
    """Drop a result."""
