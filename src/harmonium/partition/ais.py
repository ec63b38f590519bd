"""Annealed importance sampling, forward and in reverse."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from harmonium import workers
from harmonium.models import BoltzmannMachine
from harmonium.partition.base import Path, Reference, path_of
from harmonium.partition.modes import mean_field_modes
from harmonium.partition.path import MachinePath, PathPoint
from harmonium.partition.schedule import adapted_betas
from harmonium.partition.shared import everyone, own, part_of_chains, weights_of_all
from harmonium.samplers import Gibbs
from harmonium.samplers.resample import effective_size, resample
from harmonium.types import EnergyModel, Estimate, State, as_state, keep_freed_memory
from harmonium.workers import Part

Progress = Callable[[int, int], None]
"""Called with the number of temperatures done and their total."""

FEWEST = 8.0
"""The effective sample size below which weights have no error that means anything."""

_ROUNDING = 1e-3  # nats by which a bound in double precision may lie above weights in single precision

MARKOV = 6.6
"""`P(Ẑ ≥ e^c Z) ≤ e^{-c}` for a mean Ẑ of positive weights (Markov): c nats for the tail of three standard errors."""


@torch.no_grad()
def ais(
    model: EnergyModel,
    *,
    n_chains: int = 512,
    n_betas: int = 1000,
    betas: Sequence[float] | None = None,
    reference: Reference | None = None,
    generator: torch.Generator | None = None,
    on_beta: Progress | None = None,
) -> Estimate:
    """Estimate log Z from below by annealing from a reference field to the model (Neal 2001).

    Each chain is drawn at β = 0 and carried through rising β; its weight `w = Π_k f_{k+1}(x_k)/f_k(x_k)` has the mean
    `Z/Z_0` (Salakhutdinov and Murray 2008). The value is `log Z_0 + log mean w`, whose expectation lies below log Z.
    `reference` is the field at β = 0 on the data layer, best `units.fitted_field(data)`; without it, the model's own
    biases. An energy that is not a Boltzmann machine is annealed from a law instead, `GaussianLaw` or `UniformLaw`
    (on its `box` unless told), by Langevin steps that are accepted or rejected. The temperatures are placed by a short
    pilot run unless `betas` gives them. A mode that no chain reaches leaves no trace in the weights: mean field looks
    for modes from a few starts, and the weights are not trusted where they lie below its guaranteed bound, or where it
    finds modes that no chain reached and that count for more than the interval allows. `log_z` adds such modes up.
    """
    path = path_of(model, reference)
    ladder = _ladder(path, n_betas, betas, generator)
    log_weights, point, part = _carry_up(path, ladder, n_chains, generator, on_beta)
    found = from_weights(weights_of_all(log_weights, part), path.log_z0(), "ais")
    found = with_rounding(found, point.linear.dtype)
    if not isinstance(model, BoltzmannMachine):
        return found
    return held_against_modes(found, model, everyone(path, point, part).state)


def held_against_modes(found: Estimate, model: BoltzmannMachine, ends: State) -> Estimate:
    """Return an estimate from below with mean field's guaranteed bound; not trusted where it lies below that.

    Nor is it where the modes in whose cells no chain ends would, by mean field's bounds of their weights, add more than
    the interval has room for. The starts are the same in every call and take nothing from the generator of the chains.
    """
    starts = torch.Generator().manual_seed(0)
    modes = mean_field_modes(model, n_starts=48, n_steps=30, generator=starts)
    bound, room = modes.bound, found.upper - found.value + _ROUNDING
    if bound > found.value + room:
        note = f"log Z is at least {bound:.3f} by mean field: the chains miss a mode. Use log_z"
        return replace(found, at_least=bound, upper=math.inf, trusted=False, note=note)
    missed = modes.cells(ends).bincount(minlength=len(modes)).cpu() == 0
    beside = (modes.bounds.cpu()[missed] - found.value).exp().sum().log1p().item()
    if not found.trusted or beside <= room - _ROUNDING:
        return replace(found, at_least=bound)
    note = f"mean field finds modes that no chain reaches, which add about {beside:.2g} nats. Use log_z"
    return replace(found, at_least=bound, upper=math.inf, trusted=False, note=note)


def with_rounding(found: Estimate, dtype: torch.dtype) -> Estimate:
    """Return an estimate whose interval has room for the rounding of energies of this type."""
    rounding = 64 * torch.finfo(dtype).eps * max(1.0, abs(found.value))
    return replace(found, lower=found.lower - rounding, upper=found.upper + rounding)


@torch.no_grad()
def reverse_ais(
    model: EnergyModel,
    *,
    samples: Tensor | None = None,
    n_chains: int = 512,
    n_betas: int = 1000,
    betas: Sequence[float] | None = None,
    n_steps: int = 200,
    reference: Reference | None = None,
    generator: torch.Generator | None = None,
    on_beta: Progress | None = None,
) -> Estimate:
    """Estimate log Z from above by melting samples of the model down to the reference.

    The weights in reverse have the mean `Z_0/Z`, so `log Z_0 - log mean w` has an expectation above log Z when
    `samples` follow the model (Burda, Grosse and Salakhutdinov 2015). Without `samples`, annealed chains are resampled
    by their weights and run for `n_steps` more. Layers that `samples` do not decide, as in a deep machine, are drawn
    given them in `n_steps` Gibbs steps.
    """
    path = path_of(model, reference)
    ladder = _ladder(path, n_betas, betas, generator)
    if samples is None:
        log_weights, point = anneal(path, ladder, n_chains, generator=generator)
        start = equilibrate(path, point, log_weights, n_steps, generator=generator)
    else:
        start = path.point(kept_state(path, samples, n_steps, generator=generator))
    log_weights = melt(path, ladder, start, generator=generator, on_beta=on_beta)
    return with_rounding(reversed_estimate(log_weights, path.log_z0()), start.linear.dtype)


def anneal(
    path: Path,
    betas: Tensor,
    n_chains: int,
    *,
    generator: torch.Generator | None = None,
    on_beta: Progress | None = None,
) -> tuple[Tensor, PathPoint]:
    """Carry chains from β = 0 to 1 and return their log weights and where they end."""
    log_weights, point, part = _carry_up(path, betas, n_chains, generator, on_beta)
    return weights_of_all(log_weights, part), everyone(path, point, part)


def _carry_up(
    path: Path, betas: Tensor, n_chains: int, generator: torch.Generator | None, on_beta: Progress | None
) -> tuple[Tensor, PathPoint, Part | None]:
    """Carry the chains of this worker from β = 0 to 1; return their log weights, where they end, and which they are."""
    if n_chains < 2:
        raise ValueError(f"`n_chains` must be at least 2, or there is no error bar. Got {n_chains}. Try 512.")
    keep_freed_memory()
    part = part_of_chains(path, n_chains)
    with workers.dividing(part):
        point = path.start(n_chains if part is None else part.count, generator=generator)
        total = torch.zeros(len(point.linear), dtype=torch.float64, device=point.linear.device)
        ladder = betas.tolist()
        for i in range(1, len(ladder)):
            total += path.log_ratio(point, ladder[i - 1], ladder[i])
            point = path.advance(point, ladder[i], generator=generator)
            if on_beta is not None:
                on_beta(i, len(ladder) - 1)
    return total, point, part


def melt(
    path: Path,
    betas: Tensor,
    point: PathPoint,
    *,
    generator: torch.Generator | None = None,
    on_beta: Progress | None = None,
) -> Tensor:
    """Carry chains from β = 1 to 0 and return their log weights."""
    part = part_of_chains(path, len(point.linear))
    with workers.dividing(part):
        point = own(path, point, part)
        total = torch.zeros(point.linear.shape, dtype=torch.float64, device=point.linear.device)
        ladder = betas.tolist()
        for i in reversed(range(1, len(ladder))):
            point = path.advance(point, ladder[i], generator=generator)
            total += path.log_ratio(point, ladder[i], ladder[i - 1])
            if on_beta is not None:
                on_beta(len(ladder) - i, len(ladder) - 1)
    return weights_of_all(total, part)


def equilibrate(
    path: Path,
    point: PathPoint,
    log_weights: Tensor,
    n_steps: int,
    *,
    generator: torch.Generator | None = None,
) -> PathPoint:
    """Resample annealed chains in proportion to their weights and run them on at β = 1."""
    index = resample(log_weights, generator=generator)
    point = path.point({name: value[index] for name, value in point.state.items()})
    return run_on(path, point, n_steps, generator=generator)


def run_on(path: Path, point: PathPoint, n_steps: int, *, generator: torch.Generator | None = None) -> PathPoint:
    """Run chains on at β = 1."""
    part = part_of_chains(path, len(point.linear))
    with workers.dividing(part):
        point = own(path, point, part)
        for _ in range(n_steps):
            point = path.advance(point, 1.0, generator=generator)
    return everyone(path, point, part)


def from_weights(log_weights: Tensor, log_z0: float, kind: str) -> Estimate:
    """Return `log Z_0 + log mean w` with its standard error and the effective sample size of the weights."""
    n = len(log_weights)
    value = log_z0 + (log_weights.logsumexp(0) - math.log(n)).item()
    if not math.isfinite(value):
        raise ValueError(
            f"log Z came out as {value}: Z is infinite, or the parameters are not finite. Check the model."
        )
    ess = effective_size(log_weights)
    error = weight_error(log_weights)
    if ess >= min(FEWEST, n / 2):
        return Estimate(value, error, value - 3 * error, value + 3 * error, kind, ess=ess)
    note = (
        f"the weights rest on {ess:.1f} of {n} chains, too few for an error: only that it is hardly {MARKOV:.1f} nats "
        "too high is known. Use more temperatures (n_betas), more chains, or a reference fitted to the data"
    )
    return Estimate(value, math.inf, value - MARKOV, math.inf, kind, ess=ess, trusted=False, note=note)


def reversed_estimate(log_weights: Tensor, log_z0: float) -> Estimate:
    """Return `log Z_0 - log mean w` of weights made in reverse."""
    forward = from_weights(log_weights, -log_z0, "reverse-ais")
    note = forward.note.replace("too high", "too low")
    return replace(forward, value=-forward.value, lower=-forward.upper, upper=-forward.lower, note=note)


def weight_error(log_weights: Tensor) -> float:
    """Return the standard error of `log mean w`, by the jackknife, which feels a few heavy weights."""
    n = len(log_weights)
    share = (log_weights - log_weights.logsumexp(0)).exp()
    # Left out, a weight that is nearly all leaves the others: their own sum, where 1 - share would round to 0.
    left_out = (-share).log1p()
    heaviest = int(log_weights.argmax())
    if share[heaviest] > 0.5:
        others = torch.cat([log_weights[:heaviest], log_weights[heaviest + 1 :]])
        left_out[heaviest] = others.logsumexp(0) - log_weights.logsumexp(0)
    return math.sqrt((n - 1) / n * (left_out - left_out.mean()).square().sum().item())


def _ladder(path: Path, n_betas: int, betas: Sequence[float] | None, generator: torch.Generator | None) -> Tensor:
    if betas is None:
        if n_betas < 2:
            raise ValueError(f"`n_betas` must be at least 2, from 0 to 1. Got {n_betas}. Try 1000.")
        return adapted_betas(path, n_betas, generator=generator)
    ladder = torch.as_tensor(betas, dtype=torch.float64)
    if len(ladder) < 2 or ladder[0] != 0 or ladder[-1] != 1 or not bool((ladder.diff() > 0).all()):
        raise ValueError("`betas` must rise strictly from 0 to 1, such as torch.linspace(0, 1, 1000).")
    return ladder


def kept_state(
    path: Path, samples: Tensor | Mapping[str, Tensor], n_steps: int, *, generator: torch.Generator | None = None
) -> State:
    """Return samples of the data as values of the layers that a path keeps, those beside the data layer drawn."""
    if not isinstance(path, MachinePath):
        return as_state(samples, "x")
    sampler = Gibbs(clamp={path.model.data_layer: True})
    state = sampler.init(path.model, samples, generator=generator)
    kept = path.kept_layers()
    for _ in range(n_steps if len(kept) > 1 else 0):
        state, _ = sampler.step(path.model, state, generator=generator)
    return {name: state[name] for name in kept}
