"""Units for the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence

from harmonium.data.column import Column
from harmonium.units import Bernoulli, Categorical, Gaussian, Mixed, MultivariateGaussian, Units


def table_units(columns: Sequence[Column], *, correlated: bool = False) -> Mixed:
    """Return units for encoded columns, side by side: numbers Gaussian, 0/1 Bernoulli, one-hot blocks Categorical.

    `correlated` numbers are one vector with a covariance; otherwise they are independent given the hidden units.

    >>> table_units([Column("age", "real"), Column("color", "categorical", ("red", "blue"))])
    Mixed(Gaussian(1), Categorical(n=1, classes=2))
    """
    parts: list[Units] = []
    kept = [column for column in columns if column.width]
    n_numbers = sum(column.is_numeric for column in kept)
    if [column.is_numeric for column in kept] != [True] * n_numbers + [False] * (len(kept) - n_numbers):
        raise ValueError("the columns of numbers must come first, as `infer_columns` has them.")
    if n_numbers:
        parts.append(MultivariateGaussian(n_numbers) if correlated else Gaussian(n_numbers))
    n_binary = 0
    for column in [*kept[n_numbers:], None]:
        if column is not None and column.type == "binary":
            n_binary += 1
            continue
        if n_binary:  # neighbors share a layer
            parts.append(Bernoulli(n_binary))
            n_binary = 0
        if column is not None:
            parts.append(Categorical(1, column.width))
    return Mixed(*parts)
