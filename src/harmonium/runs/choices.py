"""What settings can name: hidden units and objectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor, nn

from harmonium.learning.objectives import (
    CD,
    PCD,
    DenoisingScoreMatching,
    ExactLikelihood,
    FastPCD,
    MeanFieldCD,
    NoiseContrastive,
    Objective,
    PerturbAndMAP,
    ProbabilityFlow,
    PseudoLikelihood,
    RatioMatching,
    ScoreMatching,
    SlicedScoreMatching,
    TemperedPCD,
)
from harmonium.models import BoltzmannMachine
from harmonium.units import Bernoulli, Binomial, Categorical, Gaussian, NReLU, Spin, Units

_N_ROWS = 10_000  # to fit noise to

HIDDEN: dict[str, Callable[[int, Mapping[str, Any]], Units]] = {
    "bernoulli": lambda n, _options: Bernoulli(n),
    "spin": lambda n, _options: Spin(n),
    "nrelu": lambda n, _options: NReLU(n),
    "gaussian": lambda n, _options: Gaussian(n),
    "binomial": lambda n, options: Binomial(n, levels=_whole(options, "levels", 10)),
    "categorical": lambda n, options: Categorical(n, _whole(options, "classes", 10)),
}
"""Hidden units by their name, `(n_hidden, options) -> units`."""

HIDDEN_OPTIONS = {"binomial": ("levels",), "categorical": ("classes",)}
"""The options in `[model] options` that hidden units take."""


def _whole(options: Mapping[str, Any], name: str, default: int) -> int:
    value = options.get(name, default)
    if type(value) is not int or not 1 <= value <= 10**6:
        raise ValueError(f"[model] options.{name} must be a whole number in 1..1,000,000. Got {value!r}.")
    return value


class Rule(Protocol):
    """The settings that objectives are made of."""

    @property
    def n_steps(self) -> int:
        """Steps of the chains in an update."""

    @property
    def n_chains(self) -> int:
        """Persistent chains."""

    @property
    def betas(self) -> Sequence[float]:
        """Inverse temperatures of tempered chains."""

    @property
    def fast_rate(self) -> float:
        """The rate of fast weights."""

    @property
    def n_units(self) -> int:
        """Units in an update of a rule that goes unit by unit; 0 is all."""


OBJECTIVES: dict[str, Callable[[Rule, nn.Module | None, Tensor | None], Objective]] = {
    "exact": lambda _rule, _model, _rows: ExactLikelihood(),
    "cd": lambda rule, _model, _rows: CD(n_steps=rule.n_steps),
    "mean-field-cd": lambda rule, _model, _rows: MeanFieldCD(n_steps=rule.n_steps),
    "pcd": lambda rule, _model, _rows: PCD(n_chains=rule.n_chains, n_steps=rule.n_steps),
    "fast-pcd": lambda rule, _model, _rows: FastPCD(
        n_chains=rule.n_chains, n_steps=rule.n_steps, fast_rate=rule.fast_rate
    ),
    "tempered-pcd": lambda rule, _model, _rows: TemperedPCD(
        n_chains=rule.n_chains, n_steps=rule.n_steps, betas=tuple(rule.betas)
    ),
    "pseudo-likelihood": lambda rule, _model, _rows: PseudoLikelihood(rule.n_units or None),
    "ratio-matching": lambda rule, _model, _rows: RatioMatching(rule.n_units or None),
    "probability-flow": lambda rule, _model, _rows: ProbabilityFlow(rule.n_units or None),
    "score-matching": lambda _rule, _model, _rows: ScoreMatching(),
    "sliced-score-matching": lambda _rule, _model, _rows: SlicedScoreMatching(),
    "denoising-score-matching": lambda _rule, _model, _rows: DenoisingScoreMatching(),
    "perturb-and-map": lambda _rule, _model, _rows: PerturbAndMAP(),
    "noise-contrastive": lambda _rule, model, rows: noise_contrastive(model, rows),
}
"""Objectives by their name, `(settings, model, rows) -> objective`; most need the settings alone."""


def noise_contrastive(model: nn.Module | None, rows: Tensor | None) -> NoiseContrastive:
    """Return noise-contrastive estimation for a machine about to learn these rows."""
    if not isinstance(model, BoltzmannMachine) or rows is None:
        raise ValueError(
            "The objective noise-contrastive makes its noise for one Boltzmann machine and its data. Choose another."
        )
    return NoiseContrastive.of(model, rows[:_N_ROWS].to(next(model.parameters())))


def known(value: str, table: Mapping[str, Any]) -> str:
    """Return the value if the table has it.

    >>> known("cd", OBJECTIVES)
    'cd'
    """
    if value not in table:
        raise ValueError(f"must be one of {', '.join(table)}")
    return value
