"""A trained model with its settings and its data: what is sampled, scored and reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from harmonium.data import Data
from harmonium.runs.settings import Config
from harmonium.runs.values import Prepared
from harmonium.samplers import Gibbs, Sampler

Starts = Callable[..., Tensor | None]
"""`starts(n, y, *, generator)` returns where `n` chains start, of classes `y` if given; None leaves it to the model."""


def anywhere(n: int, y: Tensor | None = None, *, generator: torch.Generator) -> None:
    """Leave it to the model where chains start."""


@dataclass(eq=False)
class Trained:
    """A model ready to be used, beside what made it.

    `prepared` are its data as it sees them, with the way back; `shape` is that of one sample as it takes it, `sampler`
    and `starts` are how its chains run and where from, `origin` says the latter in words. `records` are the metrics of
    its epochs and `scores` those of its evaluation, if there was one.
    """

    config: Config
    prepared: Prepared
    model: Any
    shape: tuple[int, ...]
    sampler: Sampler = field(default_factory=Gibbs)
    starts: Starts = anywhere
    origin: str = "the model's biases alone"
    records: list[dict[str, Any]] = field(default_factory=list)
    scores: dict[str, Any] | None = None

    @property
    def data(self) -> Data:
        """The data as the model sees them, each sample in its own shape."""
        return self.prepared.data

    @cached_property
    def image(self) -> tuple[int, ...] | None:
        """The shape of the samples if they are images."""
        sizes = tuple(self.data.shape)
        if self.data.kind == "table" or len(sizes) not in (2, 3) or (len(sizes) == 3 and sizes[0] not in (1, 3)):
            return None
        return sizes

    @property
    def plane(self) -> bool:
        """Whether the samples are points in the plane."""
        return self.data.kind == "real" and tuple(self.data.shape) == (2,)

    def rows(self, split: str) -> Tensor | None:
        """Return the samples of a split in the shape and type that the model takes, or None without that split."""
        x = self.prepared.rows(split, self.shape)
        return None if x is None else x.to(next(self.model.parameters(), torch.zeros(())))

    def labeled(self, split: str) -> tuple[Tensor, Tensor] | None:
        """Return the samples of a split with their classes, or None where one of them is not there.

        Training samples that are binarized anew each time are, once.
        """
        x, y = self.rows(split), self.data.labels.get(split)
        if x is None or y is None:
            return None
        if split == "train" and self.data.transform is not None:
            x = self.data.transform(x, generator=torch.Generator().manual_seed(self.config.run.seed + 1))
        return x, y

    def start(self, n: int, y: Tensor | None = None, *, generator: torch.Generator) -> Tensor | None:
        """Return where `n` chains start, of classes `y` if given; None leaves it to the model."""
        return self.starts(n, y, generator=generator)

    def restored(self, x: Tensor) -> Tensor:
        """Return samples of the model in the shape and on the scale of the data."""
        return self.prepared.restored(x)
