"""The contract of samplers: chains that start at the law of a model stay there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

import harmonium.samplers
from harmonium.models import BoltzmannMachine, Tempered
from harmonium.samplers import ParallelTempering, Sampler
from harmonium.testing.contract import FALSE_ALARM, members, random_generator, require
from harmonium.testing.machines import ExactLaw
from harmonium.types import State

ALL_SAMPLERS: list[Callable[[], Sampler]] = [
    lambda kind=kind, i=i: kind.examples()[i]  # type: ignore[misc]
    for kind in members(harmonium.samplers, Sampler)
    for i in range(len(kind.examples()))
]
"""A maker of each kind of sampler. Those with `exact = False` are biased and are not held to `check_no_drift`."""

FLOORS = 4.0
"""How many times its Monte-Carlo floor the total variation may be."""


def check_no_drift(
    sampler: Sampler,
    machine: BoltzmannMachine,
    *,
    given: Tensor | None = None,
    n_chains: int = 20000,
    steps: Sequence[int] = (1, 4, 16),
    generator: torch.Generator | None = None,
) -> dict[int, float]:
    """Start chains exactly at the law of an enumerable machine and raise `ContractError` if the sampler moves them off.

    After each number of `steps` the total variation `½ Σ_s |frequency(s) - p(s)|` must stay below 4 times its floor:
    its expectation for independent chains, `½ Σ_s √(2 p (1 - p) / πn)`. By McDiarmid's inequality a correct sampler
    fails with probability at most `e^{-18 n floor²}`; a machine with so few states that this exceeds 1e-6 is refused.
    Layers with infinitely many states are compared column by column, and the energy of the data too, with fresh exact
    draws (Kolmogorov-Smirnov, false-alarm rate 1e-6 in all). `ParallelTempering` is checked at every temperature.
    With `given`, a value of the data layer with NaN where unknown, known units are clamped and the law is conditional.

    Returns, for each number of steps, the largest total variation in units of its floor.

    >>> from harmonium.testing import tiny_rbm
    >>> ratios = check_no_drift(Gibbs(), tiny_rbm("Bernoulli", "Spin"), n_chains=2000)
    """
    generator = random_generator(generator=generator)
    if given is not None:
        sampler = replace(sampler, clamp={**sampler.clamp, machine.data_layer: ~given.isnan()})
    laws = [ExactLaw(rung, given) for rung in _rungs(sampler, machine)]
    state = _start(sampler, machine, [law.draw(n_chains, generator=generator) for law in laws], generator)
    worst: dict[int, float] = {}
    done = 0
    for n_steps in sorted(steps):
        while done < n_steps:
            state, _ = sampler.step(machine, state, generator=generator)
            done += 1
        ratios = [
            _compare(law, chains, f"{sampler!r} after {n_steps} steps{place}", generator)
            for law, chains, place in zip(laws, *_unstack(sampler, machine, state), strict=True)
        ]
        worst[n_steps] = max(ratios)
    return worst


def _rungs(sampler: Sampler, machine: BoltzmannMachine) -> list[BoltzmannMachine]:
    if isinstance(sampler, ParallelTempering):
        return [Tempered(machine, beta, sampler.reference) for beta in sampler.betas]
    return [machine]


def _start(sampler: Sampler, machine: BoltzmannMachine, starts: list[State], generator: torch.Generator) -> State:
    """Return the state of a sampler whose chains are at these states: of each temperature, or of the only one."""
    if isinstance(sampler, ParallelTempering):
        stacked = {name: torch.stack([start[name] for start in starts]) for name in machine.layers}
        inner = replace(sampler.inner, clamp={**sampler.inner.clamp, **sampler.clamp})
        betas = torch.tensor(sampler.betas, dtype=stacked[machine.data_layer].dtype)
        return _start(inner, Tempered(machine, betas, sampler.reference), [stacked], generator)
    state = sampler.init(machine, starts[0][machine.data_layer], generator=generator)
    return state | {name: value for name, value in starts[0].items() if name in state}


def _unstack(sampler: Sampler, machine: BoltzmannMachine, state: State) -> tuple[list[State], list[str]]:
    layers = {name: state[name] for name in machine.layers if name in state}
    if isinstance(sampler, ParallelTempering):
        chains = [{name: value[i] for name, value in layers.items()} for i in range(len(sampler.betas))]
        return chains, [f" at β = {beta:g}" for beta in sampler.betas]
    return [layers], [""]


def _compare(law: ExactLaw, chains: State, what: str, generator: torch.Generator) -> float:
    ratio = 0.0
    finite = [name for name in law.layers if name in chains]
    if finite:
        frequency, probability = law.frequencies(chains, finite)
        n = len(chains[finite[0]])
        distance = (frequency - probability).abs().sum().item() / 2
        floor = (2 * probability * (1 - probability) / (math.pi * n)).sqrt().sum().item() / 2
        ratio = distance / floor
        false_alarm = math.exp(-2 * n * ((FLOORS - 1) * floor) ** 2)
        if false_alarm > FALSE_ALARM:
            raise ValueError(
                f"The law over {finite} has too few states to tell drift from noise: a correct sampler would fail with "
                f"probability up to {false_alarm:.2g}. Use a machine with more states."
            )
        require(
            distance <= FLOORS * floor,
            f"{what}: the chains drifted off the law over {finite}. The total variation is {distance:.4f}, "
            f"{ratio:.1f} times its floor {floor:.4f} (alarm above {FLOORS:g} times).",
        )
    if len(finite) < len(chains):
        _compare_columns(law, chains, what, generator)
    return ratio


def _compare_columns(law: ExactLaw, chains: State, what: str, generator: torch.Generator) -> None:
    """Compare the columns of the layers that are not enumerated, and the energy, with fresh draws of the exact law."""
    names = [name for name in chains if name not in law.layers]
    n = len(chains[names[0]])
    fresh = law.draw(n, generator=generator)
    machine, data = law.machine, law.machine.data_layer
    columns = [torch.cat([state[name].reshape(n, -1) for name in names], dim=1) for state in (chains, fresh)]
    if all(machine.ties(name, data) for name in machine.layers if name != data) and data in names:
        with torch.no_grad():
            columns = [
                torch.cat([column, machine.energy({data: state[data]})[:, None]], dim=1)
                for column, state in zip(columns, (chains, fresh), strict=True)
            ]
    limit = math.sqrt(2 * math.log(4 * columns[0].shape[1] / FALSE_ALARM) / n)  # two empirical laws, each by DKW
    for i in range(columns[0].shape[1]):
        distance = _kolmogorov_smirnov(columns[0][:, i], columns[1][:, i])
        require(
            distance <= limit,
            f"{what}: the chains drifted off the law of column {i} of {names}. The distribution functions lie "
            f"{distance:.4f} apart (alarm above {limit:.4f}).",
        )


def _kolmogorov_smirnov(first: Tensor, second: Tensor) -> float:
    points = torch.cat([first, second])
    below = [torch.searchsorted(x.sort().values, points, right=True) / len(x) for x in (first, second)]
    return (below[0] - below[1]).abs().max().item()
