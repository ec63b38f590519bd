"""The paper's classifier as a recipe: a stack of convolutions with N-level units, max-pooled between."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StackRecipe:
    """Everything that decides the features of a data set, the units and where the filters come from excepted.

    Images get `border` black pixels on each side, are freed of local contrast (unless `contrast_floor` is None) and
    whitened by a filter (`eps`). Layer l has `groups[l]` groups of `sides[l]`² filters of `kernels[l]`² pixels. They
    are learned from patches of what the layer below gives, in the first `n_components[l]` principal components made
    white (0: as they are), times `contrast`. In each group at most one unit is not 0 (`MaxPooled`), so that a patch is
    explained by one filter of each group, at its level.

    In the network every filter is there with both signs, and neighbors in blocks of `pools[l]`² exclude each other. A
    filter of length 1 answers with z; its units are at `g((z - t)/r)` of their N levels, with t = `thresholds[l]` and
    r = `reaches[l]` standard deviations of z. Layers are read as averages over a `grid` x `grid` of cells, by the
    machine `svm`.
    """

    groups: tuple[int, ...] = (1, 1)
    sides: tuple[int, ...] = (6, 8)
    kernels: tuple[int, ...] = (5, 3)
    pools: tuple[int, ...] = (2, 1)
    n_components: tuple[int, ...] = (0, 100)
    thresholds: tuple[float, ...] = (0.7, 0.7)
    reaches: tuple[float, ...] = (8.0, 8.0)
    border: int = 0
    contrast_floor: float | None = 0.03
    eps: float = 0.1
    flatness: float = 0.1
    n_images: int = 2000
    n_patches: int = 30_000
    min_spread: float = 0.0
    contrast: float = 0.1
    epochs: int = 6
    batch_size: int = 256
    learning_rate: float = 3e-3
    grid: int = 2
    root: bool = False
    svm: str = "linear"
    width: float = 1.0
    costs: tuple[float, ...] = (1e-3, 3e-3, 1e-2)

    def __post_init__(self) -> None:
        parts = (self.groups, self.sides, self.kernels, self.pools, self.n_components, self.thresholds, self.reaches)
        if len({len(part) for part in parts}) != 1:
            raise ValueError(f"A stack needs as many values of each kind as it has layers. Got {self!r}.")

    @property
    def n_filters(self) -> tuple[int, ...]:
        """The number of filters of each layer."""
        return tuple(n * side**2 for n, side in zip(self.groups, self.sides, strict=True))
