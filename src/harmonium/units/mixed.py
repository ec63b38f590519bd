"""Layers that hold units of several kinds side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from harmonium.units.base import Units
from harmonium.units.bernoulli import Bernoulli
from harmonium.units.categorical import Categorical
from harmonium.units.gaussian import Gaussian


class Mixed(Units):
    """Several layers flattened and laid side by side in one vector: columns of a table, binary, categorical and real.

    >>> table = Mixed(Categorical(1, 3), Gaussian(2))
    >>> table.shape
    (5,)
    """

    def __init__(self, *parts: Units) -> None:
        if not parts or any(not isinstance(part, Units) for part in parts):
            raise TypeError(f"Mixed needs layers of units, such as Mixed(Bernoulli(3), Gaussian(2)). Got {parts}.")
        super().__init__(sum(math.prod(part.shape) for part in parts))
        self.parts = nn.ModuleList(parts)
        self._sizes = [math.prod(part.shape) for part in parts]

    @classmethod
    def examples(cls) -> list[Self]:
        """Return a table of three kinds of columns."""
        return [cls(Bernoulli(2), Gaussian(2, initial_sigma=1.5), Categorical(1, 3))]

    @property
    def support(self) -> str:  # type: ignore[override]
        """`"finite"` or `"real"` when all parts agree, else `"mixed"`."""
        kinds = {part.support for part in self._layers()}
        return kinds.pop() if len(kinds) == 1 else "mixed"

    @property
    def proper(self) -> bool:
        """Whether every part has a base measure."""
        return all(part.proper for part in self._layers())

    @property
    def sites(self) -> tuple[int, ...]:
        """The number of units of all parts."""
        return (sum(math.prod(part.sites) for part in self._layers()),)

    def split(self, x: Tensor) -> list[Tensor]:
        """Return the values of each part in its own shape."""
        pieces = x.split(self._sizes, dim=-1)
        return [piece.unflatten(-1, part.shape) for part, piece in zip(self._layers(), pieces, strict=True)]

    def join(self, pieces: list[Tensor]) -> Tensor:
        """Lay the values of the parts side by side."""
        return torch.cat(
            [piece.flatten(piece.ndim - len(part.shape)) for part, piece in zip(self._layers(), pieces, strict=True)],
            dim=-1,
        )

    def log_partition(self, field: Tensor) -> Tensor:
        """Return A of each unit of each part."""
        return self._per_unit("log_partition", field)

    def log_base(self, x: Tensor) -> Tensor:
        """Return log μ of each unit of each part."""
        return self._per_unit("log_base", x)

    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw each part."""
        pieces = zip(self._layers(), self.split(field), strict=True)
        return self.join([part.sample(piece, generator=generator) for part, piece in pieces])

    def mean(self, field: Tensor) -> Tensor:
        """Return the mean of each part."""
        return self._elementwise("mean", field)

    def variance(self, field: Tensor) -> Tensor:
        """Return the variance of each part."""
        return self._elementwise("variance", field)

    def mode(self, field: Tensor) -> Tensor:
        """Return the mode of each part."""
        return self._elementwise("mode", field)

    def statistic(self, x: Tensor) -> Tensor:
        """Return the statistic of each part."""
        return self._elementwise("statistic", x)

    def partial_weights(self, fields: Tensor, x: Tensor) -> Tensor:
        """Return the sum of those of the parts."""
        pieces = zip(self._layers(), self.split(fields), self.split(x), strict=True)
        return torch.stack([part.partial_weights(of_field, of_x) for part, of_field, of_x in pieces]).sum(0)

    def complete(self, field: Tensor, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw what is unknown of each part."""
        pieces = zip(self._layers(), self.split(field), self.split(x), strict=True)
        return self.join([part.complete(of_field, of_x, generator=generator) for part, of_field, of_x in pieces])

    def link(self, mean: Tensor) -> Tensor:
        """Return the field of each part that has this mean."""
        return self._elementwise("link", mean)

    def accumulate_grad(
        self, weight: Tensor | float, work: Tensor | float, x: Tensor, *, summed_out: bool = False
    ) -> None:
        """Add the gradients of each part's parameters."""
        works: Sequence[Tensor | float] = self.split(work) if isinstance(work, Tensor) else [work] * len(self.parts)
        for part, piece, value in zip(self._layers(), works, self.split(x), strict=True):
            part.accumulate_grad(weight, piece, value, summed_out=summed_out)

    def fit_parameters(self, x: Tensor) -> None:
        """Set the parameters of each part."""
        for part, piece in zip(self._layers(), self.split(x), strict=True):
            part.fit_parameters(piece)

    def project(self) -> None:
        """Project each part."""
        for part in self._layers():
            part.project()

    def check_support(self, x: Tensor, name: str) -> None:
        """Check the values of each part."""
        self.check_shape(x, name)
        for i, (part, piece) in enumerate(zip(self._layers(), self.split(x), strict=True)):
            part.check_support(piece, f"{name} (part {i} of {len(self.parts)})")

    def in_support(self, x: Tensor) -> Tensor:
        """Return whether each unit of each part has a value that it can take."""
        return self._per_unit("in_support", x)

    def check_values(self, x: Tensor, name: str) -> None:
        """Check the values of each part."""
        self.check_shape(x, name)
        for i, (part, piece) in enumerate(zip(self._layers(), self.split(x), strict=True)):
            part.check_values(piece, f"{name} (part {i} of {len(self.parts)})")

    def check_known(self, known: Tensor, name: str) -> None:
        """Check the mask of each part."""
        for part, piece in zip(self._layers(), self.split(known), strict=True):
            part.check_known(piece, name)

    def site(self, index: int) -> tuple[Any, ...]:
        """Return the columns of one unit."""
        start = 0
        for part, size in zip(self._layers(), self._sizes, strict=True):
            n_sites = math.prod(part.sites)
            if index < n_sites:
                width = size // n_sites
                return (..., slice(start + index * width, start + (index + 1) * width))
            index, start = index - n_sites, start + size
        raise IndexError(f"{self!r} has {math.prod(self.sites)} units. Got a larger index.")

    def n_configurations(self) -> int | None:
        """Return the product of the parts' counts, or None if one is infinite."""
        total = 1
        for part in self._layers():
            n = part.n_configurations()
            if n is None:
                return None
            total *= n
        return total

    def configurations(self, index: Tensor) -> Tensor:
        """Return the states with these numbers, the last part fastest."""
        pieces: list[Tensor] = []
        for part in reversed(self._layers()):
            n = part.n_configurations()
            pieces.insert(0, part.configurations(index if n is None else index % n))
            index = index // n if n else index
        return self.join(pieces)

    def arguments(self) -> dict[str, Any]:
        """Return nothing: the parts say it all."""
        return {}

    def extra_repr(self) -> str:
        """Return the parts, for `repr`."""
        return ", ".join(map(repr, self.parts))

    def _layers(self) -> list[Units]:
        return list(self.parts)  # type: ignore[arg-type]

    def _elementwise(self, method: str, x: Tensor) -> Tensor:
        pieces = zip(self._layers(), self.split(x), strict=True)
        return self.join([getattr(part, method)(piece) for part, piece in pieces])

    def _per_unit(self, method: str, x: Tensor) -> Tensor:
        values = [getattr(part, method)(piece) for part, piece in zip(self._layers(), self.split(x), strict=True)]
        flat = [value.flatten(value.ndim - len(part.sites)) for part, value in zip(self._layers(), values, strict=True)]
        return torch.cat(flat, dim=-1)
