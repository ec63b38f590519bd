"""What every loader returns: tensors by split, with the one line that says how they were made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from harmonium.data.column import Column
from harmonium.display import html_table

KINDS = ("binary", "levels", "real", "table", "counts", "ratings")
"""What a value is: 0 or 1; an integer in 0..levels; a real number; a column of a table; a count; a rating.

Ratings are a table users × items, NaN where there is none: the splits hold other ratings of the same users.
"""


@dataclass(frozen=True, eq=False)
class Data:
    """A data set: `(n, *shape)` tensors by split, and what their values are.

    Integer data keep their small dtype (a model wants `x.float()` of a batch, or `scale`). `levels` is the largest
    value of `"levels"` data (255 for 8-bit images), 1 for `"binary"` data, else None. `note` says in one line how
    values and splits were made; it belongs beside every likelihood, since nats of different binarizations or scalings
    cannot be compared. `transform`, when it is not None, must be applied to every training batch,
    `x = data.transform(x, generator=generator)` (binarization resampled each time); `valid` and `test` never need it.
    Missing values are NaN.

    >>> import torch
    >>> print(Data("tiny", torch.zeros(4, 2), None, None, shape=(2,), kind="real", note="zeros"))
    tiny: 4 train, shape (2,), real (zeros)
    """

    name: str
    train: Tensor
    valid: Tensor | None
    test: Tensor | None
    train_labels: Tensor | None = None
    valid_labels: Tensor | None = None
    test_labels: Tensor | None = None
    shape: tuple[int, ...] = ()
    kind: str = "real"
    levels: int | None = None
    columns: tuple[Column, ...] = ()
    note: str = ""
    transform: Callable[..., Tensor] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"`kind` must be one of {', '.join(KINDS)}. Got {self.kind!r}.")
        for split in ("train", "valid", "test"):
            x, labels = self.splits.get(split), self.labels.get(split)
            if x is not None and tuple(x.shape[1:]) != tuple(self.shape):
                raise ValueError(
                    f"`{split}` of {self.name} must have shape (n, {', '.join(map(str, self.shape))}). "
                    f"Got {tuple(x.shape)}. Reshape it, or give `shape` as one sample has it."
                )
            if labels is not None and (x is None or tuple(labels.shape) != (len(x),)):
                raise ValueError(
                    f"`{split}_labels` of {self.name} must hold one label for each sample. Got {tuple(labels.shape)} "
                    f"for {0 if x is None else len(x)} samples."
                )

    @property
    def splits(self) -> dict[str, Tensor]:
        """The samples of each split that there is, by its name."""
        parts = {"train": self.train, "valid": self.valid, "test": self.test}
        return {name: x for name, x in parts.items() if x is not None}

    @property
    def labels(self) -> dict[str, Tensor]:
        """The labels of each split that has some, by its name."""
        parts = {"train": self.train_labels, "valid": self.valid_labels, "test": self.test_labels}
        return {name: y for name, y in parts.items() if y is not None}

    @classmethod
    def of_splits(
        cls,
        name: str,
        splits: Sequence[Tensor | None],
        labels: Sequence[Tensor | None] = (None, None, None),
        *,
        kind: str,
        note: str,
        levels: int | None = None,
        columns: tuple[Column, ...] = (),
    ) -> Data:
        """Make data of the three splits (train, valid, test) and their labels; an empty valid or test is None."""
        train = splits[0]
        if train is None or len(train) == 0:
            raise ValueError(f"{name} must have training samples. Got none.")
        valid, test = (x if x is not None and len(x) else None for x in splits[1:])
        targets = [None if y is None or len(y) == 0 else y for y in labels]
        shape = tuple(train.shape[1:])
        return cls(name, train, valid, test, targets[0], targets[1], targets[2], shape, kind, levels, columns, note)

    def _repr_html_(self) -> str:
        """Return what it holds as a table, for notebooks."""
        rows = {name: f"{len(x):,} rows" for name, x in self.splits.items()}
        return html_table(rows | {"shape": tuple(self.shape), "kind": self.kind, "note": self.note}, self.name)

    def __str__(self) -> str:
        sizes = {name: x[~x.isnan()] if self.kind == "ratings" else x for name, x in self.splits.items()}
        counts = " / ".join(f"{len(x):,} {split}" for split, x in sizes.items())
        kind = f"levels 0..{self.levels}" if self.kind == "levels" else self.kind
        return f"{self.name}: {counts}, shape {tuple(self.shape)}, {kind}" + (f" ({self.note})" if self.note else "")
