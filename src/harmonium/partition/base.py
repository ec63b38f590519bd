"""What a path is: laws from β = 0, drawn exactly, to β = 1, the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
from harmonium.partition.neural_path import Law, NeuralPath
from harmonium.partition.path import MachinePath, PathPoint
from harmonium.types import EnergyModel, State

Reference = Tensor | Mapping[str, Tensor] | Law
"""Where a path starts: a field on the data layer of a machine, or a law for any other energy."""


class Path(Protocol):
    """The laws `p_β` between a reference and a model, for annealed importance sampling."""

    model: Any
    n_groups: int

    def log_z0(self) -> float:
        """Return log Z at β = 0."""
        ...

    def start(self, n: int, *, generator: torch.Generator | None = None) -> PathPoint:
        """Draw `n` chains at β = 0, exactly."""
        ...

    def point(self, state: State) -> PathPoint:
        """Return a point of the path at these values."""
        ...

    def log_ratio(self, point: PathPoint, beta: float, new: float) -> Tensor:
        """Return `log f_new(x) - log f_β(x)` of each chain, in float64."""
        ...

    def advance(self, point: PathPoint, beta: float, *, generator: torch.Generator | None = None) -> PathPoint:
        """Make a transition that leaves p_β as it is."""
        ...


def path_of(model: EnergyModel, reference: Reference | None = None) -> Path:
    """Return the path for a kind of model: Gibbs steps for a Boltzmann machine, Langevin steps for any other energy."""
    is_law = not (reference is None or isinstance(reference, Tensor | Mapping))
    if isinstance(model, BoltzmannMachine):
        if is_law:
            raise TypeError(f"A machine anneals from a field. Got {reference!r}. Give units.fitted_field(data).")
        return MachinePath(model, reference)  # type: ignore[arg-type]
    if reference is not None and not is_law:
        raise TypeError(
            f"{type(model).__name__} anneals from a law, not from a field. Give GaussianLaw.fitted(data) or UniformLaw."
        )
    return NeuralPath(model, reference)  # type: ignore[arg-type]
