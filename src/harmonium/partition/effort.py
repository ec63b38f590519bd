"""How hard an estimate of log Z tries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.partition.ais import Progress, kept_state
from harmonium.partition.base import Path, Reference
from harmonium.types import State

_FEWEST_BETAS = 100


@dataclass(frozen=True)
class Effort:
    """Chains, temperatures and steps of an estimate, where it starts, and its random numbers; see `log_z`."""

    n_chains: int = 512
    n_betas: int = 1000
    n_steps: int = 200
    reference: Reference | None = None
    samples: Tensor | Mapping[str, Tensor] | None = None
    generator: torch.Generator | None = None
    on_beta: Progress | None = None

    def __post_init__(self) -> None:
        if self.n_chains < 2:
            raise ValueError(f"`n_chains` must be at least 2, or there is no error bar. Got {self.n_chains}. Try 512.")
        if self.n_betas < 2:
            raise ValueError(f"`n_betas` must be at least 2, from 0 to 1. Got {self.n_betas}. Try 1000.")

    def given(self, path: Path) -> list[State]:
        """Return the samples, if there are any, as values of the layers that a path keeps."""
        if self.samples is None:
            return []
        return [kept_state(path, self.samples, self.n_steps, generator=self.generator)]

    def stages(self) -> list[int]:
        """Return the numbers of temperatures to try: a quarter is enough for an easy machine."""
        quarter = self.n_betas // 4
        return [quarter, self.n_betas] if quarter >= _FEWEST_BETAS else [self.n_betas]
