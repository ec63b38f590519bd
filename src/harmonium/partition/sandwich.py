"""log Z between annealings up and down, looked at from elsewhere before it is trusted."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
from harmonium.partition.ais import (
    FEWEST,
    MARKOV,
    anneal,
    from_weights,
    melt,
    reversed_estimate,
    run_on,
    with_rounding,
)
from harmonium.partition.annealed_part import FEWEST_INSIDE, Annealed, melt_parts
from harmonium.partition.base import Path, path_of
from harmonium.partition.bounds import Bounds, guaranteed_bounds
from harmonium.partition.effort import Effort
from harmonium.partition.modes import Modes, mean_field_modes
from harmonium.partition.path import MachinePath, PathPoint
from harmonium.partition.schedule import adapted_betas
from harmonium.types import EnergyModel, Estimate, State

WIDEST = 1.0
"""The width of a sandwich, in nats, beyond which it is not trusted."""

NARROW = 0.1
"""The width, in nats, at which a quarter of the temperatures is enough."""

DISAGREE = 0.3
"""How far, in nats, populations of chains that start apart may differ."""

NEGLIGIBLE = 9.0
"""A mode so many nats below the whole adds less than a thousandth of a nat."""

LONELY = 0.1
"""The share of all that may lie where chains are which no annealed one meets."""

MOST_APART = 8
"""The most modes that are annealed on their own."""

_N_PROBES = 64  # states of a population from which modes are looked for, and modes from which chains start


def sandwich(model: EnergyModel, effort: Effort) -> Estimate:
    """Estimate log Z between a lower and an upper bound, and say whether it deserves trust.

    Annealed importance sampling runs up (a stochastic lower bound) and down again from equilibrated samples (an upper
    bound); the value is Bennett's (1976) estimate from both sets of weights, `[lower, upper]` the two bounds, each
    three standard errors outward. A quarter of the temperatures is tried first.

    Up and down share their modes: chains that never saw one cannot miss it. So a machine is looked at from elsewhere.
    Mean field looks for modes from dispersed starts, from where the chains ended and from `samples`, and chains start
    there. The cell of a mode of some weight, which hardly an annealed chain reached and where others stay, is a part of
    its own: it is annealed from the law that mean field found, and the disjoint parts are added up. The chains that
    started elsewhere are melted, too; where they find a little more, the interval reaches that far. The result is not
    trusted, and says why, if its bounds lie more than 1 nat apart, if a guaranteed bound contradicts it, if its weights
    rest on few chains, if populations that start apart do not meet, or if there are too many modes to be added up.
    """
    if not isinstance(model, BoltzmannMachine):
        return _of_any_energy(path_of(model, effort.reference), effort)
    path = MachinePath(model, effort.reference)  # type: ignore[arg-type]
    given = effort.given(path)
    *fewer, n_betas = effort.stages()
    view = None
    for n in fewer:
        view = _view(path, n, given, None, effort)
        if view.estimate.upper - view.estimate.lower <= NARROW:
            break
    else:
        view = _view(path, n_betas, given, view, effort)
    pool = [view.run.ends.state, view.inner, view.look.visitors.state, *view.others.states, *given]
    bounds = guaranteed_bounds(model, view.look.modes, pool, generator=effort.generator)
    doubts, beyond = _doubts(view, effort)
    return judged(_reaching(view.estimate, beyond), doubts, bounds, effort, view.run.ends.linear.dtype)


class _Look(NamedTuple):
    """What was seen from elsewhere: modes, chains that started there, and the modes that are parts of their own."""

    modes: Modes
    visitors: PathPoint
    started: Tensor  # the cells where the visitors started
    n_annealed: Tensor  # annealed chains by the cell where they ended
    apart: Tensor
    n_left_out: int
    forgone: float  # the weight of what is negligible and was left out, beside the best mode

    def in_main(self, state: State) -> Tensor:
        """Say of each chain whether it is in none of the parts that are annealed on their own."""
        return ~torch.isin(self.modes.cells(state), self.apart)


class _Others(NamedTuple):
    """The parts that were annealed on their own, where their chains ended, and what these say of the main part."""

    parts: list[Estimate]
    states: list[State]
    of_main: list[Estimate]


class _View(NamedTuple):
    """An annealing up and down, with the parts that were annealed on their own."""

    run: Annealed
    look: _Look
    others: _Others
    main: Estimate | None
    inner: State
    estimate: Estimate


def _view(path: MachinePath, n_betas: int, given: list[State], before: _View | None, effort: Effort) -> _View:
    """Anneal up, look elsewhere (once), anneal what lies apart, and melt the rest."""
    run = _anneal(path, n_betas, effort.n_chains, effort)
    look = _look_elsewhere(run, given, effort) if before is None else _separated(run, *before.look[:3])
    look, others = _apart(look, n_betas, effort)
    inside = look.in_main if len(look.apart) else None
    (main,), inner = melt_parts(
        run, inside, path.group_log_z0(), effort.n_steps, generator=effort.generator, on_beta=effort.on_beta
    )
    estimate = added_up([main, *others.parts])
    # What mean field says of a mode may be off by some nats: three here, as far as it adds up.
    estimate = replace(estimate, upper=estimate.upper + math.log1p(look.forgone * math.exp(3.0)))
    return _View(run, look, others, main, inner.state, estimate)


def _anneal(path: Path, n_betas: int, n_chains: int, effort: Effort) -> Annealed:
    betas = adapted_betas(path, n_betas, generator=effort.generator)
    up, ends = anneal(path, betas, n_chains, generator=effort.generator, on_beta=effort.on_beta)
    return Annealed(path, betas, up, ends)


def _look_elsewhere(run: Annealed, given: list[State], effort: Effort) -> _Look:
    """Look for modes, let chains start there and at the samples, and say which are parts of their own."""
    starts = [{name: x[:_N_PROBES] for name, x in state.items()} for state in (run.ends.state, *given)]
    modes = mean_field_modes(run.path.model, starts, generator=effort.generator)
    index = torch.arange(max(_N_PROBES, effort.n_chains // 4)) % min(len(modes), _N_PROBES)
    rows = [{name: modes.states[name][index] for name in run.ends.state}, *starts[1:]]
    point = run.path.point({name: torch.cat([state[name] for state in rows]) for name in run.ends.state})
    started = modes.cells(point.state)
    point = run_on(run.path, point, effort.n_steps, generator=effort.generator)
    return _separated(run, modes, point, started)


def _separated(run: Annealed, modes: Modes, visitors: PathPoint, started: Tensor) -> _Look:
    """Say which modes are parts of their own: of some weight, hardly reached by the annealing, and not left by chains.

    Mean field lies below log Z by about as much at every mode, so what it says of one is compared with its best.
    """
    few = max(1, min(FEWEST_INSIDE, len(run.up) // 16))
    stayed = started[started == modes.cells(visitors.state)]
    n_annealed, n_started, n_stayed = (
        cells.bincount(minlength=len(modes)) for cells in (modes.cells(run.ends.state), started, stayed)
    )
    weighty = (modes.bounds > modes.bound - NEGLIGIBLE).to(started.device)
    rare = n_annealed < few
    apart = torch.nonzero(weighty & rare & (n_started > 0) & (2 * n_stayed >= n_started)).flatten()
    forgone = (modes.bounds[(~weighty & rare).to(modes.bounds.device)] - modes.bound).exp().sum().item()
    return _Look(modes, visitors, started, n_annealed, apart[:MOST_APART], max(0, len(apart) - MOST_APART), forgone)


def _apart(look: _Look, n_betas: int, effort: Effort) -> tuple[_Look, _Others]:
    """Anneal the modes that are parts of their own, each from its own law; those that chains leave are none."""
    if not len(look.apart):
        return look, _Others([], [], [])
    size = max(_N_PROBES, effort.n_chains // 4)
    path = MachinePath(look.modes.model, {name: field[look.apart] for name, field in look.modes.fields.items()})
    run = _anneal(path, n_betas, size * len(look.apart), effort)
    wanted = look.apart.repeat_interleave(size)
    found, _ = melt_parts(
        run,
        lambda state: look.modes.cells(state) == wanted,
        path.group_log_z0(),
        effort.n_steps,
        generator=effort.generator,
        on_beta=effort.on_beta,
    )
    stay = torch.tensor([part is not None for part in found], device=look.apart.device)
    look = look._replace(apart=look.apart[stay])
    of_main = [
        from_weights(up.masked_fill(~inside, -torch.inf), log_z0, "ais")
        for up, inside, log_z0 in zip(
            run.up.split(size), look.in_main(run.ends.state).split(size), path.group_log_z0().tolist(), strict=True
        )
        if int(inside.sum()) >= FEWEST_INSIDE
    ]
    return look, _Others([part for part in found if part is not None], [run.ends.state], of_main)


def _doubts(view: _View, effort: Effort) -> tuple[list[str], float]:
    """Return what the populations that started elsewhere say against the estimate, in words and in nats.

    The nats are what they find beyond it, or leave room for, where that is too little for words.
    """
    run, look, main, doubts = view.run, view.look, view.main, []
    if look.n_left_out:
        n = look.n_left_out + MOST_APART
        doubts.append(
            f"mean field finds {n} modes that the annealing does not reach; at most {MOST_APART} are added up"
        )
    if main is None:
        return [*doubts, "hardly a chain is annealed to where it may end"], 0.0
    beyond = math.log1p(_overlooked(look, view.inner, main.value))
    for other in view.others.of_main:
        if other.lower > main.upper + DISAGREE:
            doubts.append(f"chains annealed from a mode of mean field find {other.value:.6g} beyond it")
    inside = look.in_main(look.visitors.state)
    if len(look.modes) < 2 or int(inside.sum()) < FEWEST_INSIDE:
        return doubts, beyond
    point = run.path.point({name: x[inside] for name, x in look.visitors.state.items()})
    down = melt(run.path, run.betas, point, generator=effort.generator)
    # From a region r they give log Z + log(π_r/q_r), its mass over the share of annealed chains that end there: above
    # the estimate where the annealing sees too little of it, below it where the region is of no account.
    elsewhere = reversed_estimate(down, run.path.log_z0())
    gap = elsewhere.value - main.value
    margin = 3 * elsewhere.error if math.isfinite(elsewhere.error) else MARKOV
    if gap > max(DISAGREE, margin):
        doubts.append(
            f"chains that start at modes of mean field give {elsewhere.value:.6g}, {gap:+.2g} nats: populations that "
            "start apart do not meet"
        )
    elif gap > margin:  # chains cross over, but had not the time to forget where they started
        beyond = max(beyond, gap)
    lonely = look.n_annealed[look.modes.cells(point.state)] == 0
    if bool(lonely.any()):
        # No chain of n ended there: q_r < 3/n but for one time in twenty, and so π_r is below this.
        gap = reversed_estimate(down[lonely], run.path.log_z0()).value - main.value
        mass = math.exp(min(gap, 50.0)) * 3 / len(run.up)
        if mass > LONELY:
            doubts.append(
                f"{int(lonely.sum())} of {len(lonely)} chains that start elsewhere end where no annealed chain does, "
                f"at {gap:+.2g} nats: up to {min(mass, 1.0):.0%} of all may be there"
            )
        else:
            beyond = max(beyond, math.log1p(mass))
    return doubts, beyond


def _overlooked(look: _Look, inner: State, value: float) -> float:
    """Return how much more than was seen may lie in cells that hardly a chain is in, beside the whole.

    Of n chains K are in these cells together; as seldom as three standard errors are exceeded, 2K + 6.6 were to be
    expected (Poisson). They do not weigh much more than mean field says: three times as much here.
    """
    n_inside = look.modes.cells(inner).bincount(minlength=len(look.modes))
    few = n_inside < FEWEST_INSIDE
    few[look.apart] = False
    by_chance = (MARKOV + int(n_inside[few].sum())) / int(n_inside.sum())
    return min(by_chance, 3 * (look.modes.bounds[few.to(look.modes.bounds.device)] - value).exp().sum().item())


def _reaching(estimate: Estimate, beyond: float) -> Estimate:
    """Return the estimate with an interval of three errors that reaches so many nats beyond its value."""
    return replace(estimate, error=max(estimate.error, beyond / 3), upper=max(estimate.upper, estimate.value + beyond))


def added_up(found: list[Estimate | None]) -> Estimate:
    """Return the sum of disjoint parts, in logarithms."""
    parts = [part for part in found if part is not None]
    if not parts:
        raise ValueError("log Z cannot be estimated from so few chains. Use n_chains=512.")
    if len(parts) == 1:
        return parts[0]
    values = torch.tensor([part.value for part in parts], dtype=torch.float64)
    total = values.logsumexp(0)
    errors = torch.tensor([part.error for part in parts], dtype=torch.float64)
    lower = torch.tensor([part.lower for part in parts], dtype=torch.float64).logsumexp(0).item()
    upper = torch.tensor([part.upper for part in parts], dtype=torch.float64).logsumexp(0).item()
    error = ((values - total).exp() * errors).square().sum().sqrt().item()
    heaviest = parts[int(values.argmax())]
    return replace(heaviest, value=total.item(), error=error, lower=lower, upper=upper)


def judged(estimate: Estimate, doubts: list[str], bounds: Bounds, effort: Effort, dtype: torch.dtype) -> Estimate:
    """Return the estimate inside its guaranteed bounds, with the reasons not to trust it, and warn of them."""
    estimate = with_rounding(estimate, dtype)
    low, high, width = bounds.at_least, bounds.at_most, estimate.upper - estimate.lower
    if width > WIDEST:
        more = f"Use more temperatures (n_betas={4 * effort.n_betas}), more chains, or a reference fitted to the data"
        doubts = [f"the bounds of log Z are {width:.2g} nats apart. {more}", *doubts]
    elif estimate.ess is not None and estimate.ess < FEWEST:
        doubts = [*doubts, f"the weights rest on {estimate.ess:.1f} chains"]
    if low > estimate.upper:
        beyond = f"{low - estimate.upper:.2g} nats above it: the chains missed a mode"
        doubts = [*doubts, f"a guaranteed lower bound is {low:.6g}, {beyond}"]
        estimate = replace(estimate, error=math.inf, upper=math.inf)
    if high < estimate.lower:
        doubts = [*doubts, f"a guaranteed upper bound is {high:.6g}, {estimate.lower - high:.2g} nats below it"]
        estimate = replace(estimate, error=math.inf, lower=-math.inf)
    if doubts and high - low <= WIDEST:  # known well enough, whatever the chains did
        middle = (low + high) / 2
        return replace(
            estimate, value=middle, error=(high - low) / 2, lower=low, upper=high, at_least=low, at_most=high
        )
    note = "; ".join(doubts)
    if note:
        warnings.warn(f"log Z is not trustworthy: {note}.", stacklevel=4)
    value, lower, upper = (min(max(x, low), high) for x in (estimate.value, estimate.lower, estimate.upper))
    return replace(
        estimate, value=value, lower=lower, upper=upper, at_least=low, at_most=high, trusted=not note, note=note
    )


def _of_any_energy(path: Path, effort: Effort) -> Estimate:
    """Return the sandwich of an energy of which only chains know something."""
    run = _anneal(path, effort.n_betas, effort.n_chains, effort)
    log_z0 = torch.tensor([path.log_z0()], dtype=torch.float64)
    found, _ = melt_parts(run, None, log_z0, effort.n_steps, generator=effort.generator, on_beta=effort.on_beta)
    return judged(added_up(found), [], Bounds(), effort, run.ends.linear.dtype)
