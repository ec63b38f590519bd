"""One column of a table: what its values are, and the scale on which a model sees them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
from torch import Tensor

Value = str | int | float | bool | datetime.datetime
"""A cell of a table; a missing cell is None."""

Cells = Sequence[Value | None]

NUMERIC = ("real", "positive", "count", "date")
LISTED = ("binary", "categorical", "ordinal")
LEFT_OUT = ("constant", "identifier", "empty", "skip", "copy")
COLUMN_TYPES = (*NUMERIC, *LISTED, *LEFT_OUT)

EPOCH = datetime.datetime(1970, 1, 1)

KNOTS = tuple(i / 20 for i in range(-70, 71))
"""Where the quantiles of a column are kept: at the shares Φ(z) of its values."""

_TINY = 1e-9  # the least argument of a power: what lies outside the domain is as improbable as the model can say
_FAR = 1e8  # standard deviations, the most that a value is away: so that its square is a number


@dataclass(frozen=True)
class Column:
    """One column of a table and how it is encoded.

    Numbers (`real`; `positive`, none below 0; `count`, whole ones from 0; `date`, in days) become one value,
    `y = (T(u) - mean)/std` with `u = (x - center)/unit` and T the `scale`: `linear`, `power` (Box and Cox 1964,
    `(u^λ - 1)/λ`, a logarithm for λ = 0) or `signed power` (Yeo and Johnson 2000, for both signs). `log_slope` is
    `log dy/dx`, which makes a density of y one of x. `decimals`, `low` and `high` are those of the data, which are
    multiples of `step` in the last decimal: decoded values keep to them. `quantiles` are those of the training values
    at the shares `Φ(KNOTS)`, for rows drawn to be distributed alike. Columns with `levels` become one 0/1 value
    (`binary`: the index into the two) or a one-hot block (`categorical`, `ordinal`).
    `constant`, `identifier`, `empty` and `skip` columns are not modeled, nor is a `copy`, whose levels stand for those
    of the column `of` in their order. `note` says why, `place` where the column stands in the file.

    >>> Column("color", "categorical", ("blue", "green", "red")).width
    3
    """

    name: str
    type: str
    levels: tuple[Value, ...] = ()
    scale: str = "linear"
    power: float = 1.0
    center: float = 0.0
    unit: float = 1.0
    mean: float = 0.0
    std: float = 1.0
    decimals: int | None = None
    step: int = 1
    low: float = -math.inf
    high: float = math.inf
    quantiles: tuple[float, ...] = ()
    note: str = ""
    place: int = 0
    of: str = ""

    def __post_init__(self) -> None:
        if self.type not in COLUMN_TYPES:
            raise ValueError(
                f"the type of column {self.name!r} must be one of {', '.join(COLUMN_TYPES)}. Got {self.type!r}."
            )

    @property
    def width(self) -> int:
        """The number of encoded values: that of the levels of a one-hot block, none if left out, else 1."""
        if self.type in LEFT_OUT:
            return 0
        return len(self.levels) if self.type in ("categorical", "ordinal") else 1

    @property
    def is_numeric(self) -> bool:
        """Whether the values are numbers on a line."""
        return self.type in NUMERIC

    def forward(self, x: Tensor) -> Tensor:
        """Return y of numbers x, in float64."""
        t = raised((x.double() - self.center) / self.unit, self.scale, self.power)
        return ((t - self.mean) / self.std).clamp(-_FAR, _FAR)

    def inverse(self, y: Tensor) -> Tensor:
        """Return x of y, rounded as the data are and within their range."""
        x = self.unrounded(y).clamp(self.low, self.high)
        if self.decimals is None:
            return x
        grid = 10.0**self.decimals / self.step
        return x.mul(grid).round().div(grid)

    def unrounded(self, y: Tensor) -> Tensor:
        """Return x of y, whatever the data are like."""
        return lowered(y.double() * self.std + self.mean, self.scale, self.power) * self.unit + self.center

    def log_slope(self, y: Tensor) -> Tensor:
        """Return `log dy/dx` at the x of y."""
        u = lowered(y.double() * self.std + self.mean, self.scale, self.power)
        bend = {
            "linear": torch.zeros_like(u),
            "power": (self.power - 1) * u.clamp_min(_TINY).log(),
            "signed power": (self.power - 1) * u.sign() * u.abs().log1p(),
        }[self.scale]
        return bend - math.log(self.unit) - math.log(self.std)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        kept = {key: value for key, value in asdict(self).items() if value != getattr(type(self), key, None)}
        if "levels" in kept:
            kept["levels"] = [["date", x.isoformat()] if isinstance(x, datetime.datetime) else x for x in self.levels]
        return kept

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> Column:
        """Return the column that `to_dict` wrote."""
        known = {field.name for field in fields(cls)}
        values = {key: value for key, value in kept.items() if key in known}
        if "levels" in values:
            values["levels"] = tuple(
                datetime.datetime.fromisoformat(x[1]) if isinstance(x, list) else x for x in values["levels"]
            )
        if "quantiles" in values:
            values["quantiles"] = tuple(values["quantiles"])
        return cls(**values)


def raised(u: Tensor, scale: str, power: float) -> Tensor:
    """Return `T(u)`: u, Box and Cox's power of it, or Yeo and Johnson's.

    >>> raised(torch.tensor([1.0, 4.0]), "power", 0.5).tolist()
    [0.0, 2.0]
    """
    if scale == "linear":
        return u
    if scale == "power":
        u = u.clamp_min(_TINY)
        return u.log() if power == 0 else (u.pow(power) - 1) / power
    size = u.abs()
    above = size.log1p() if power == 0 else ((size + 1).pow(power) - 1) / power
    other = 2 - power
    below = size.log1p() if other == 0 else ((size + 1).pow(other) - 1) / other
    return torch.where(u >= 0, above, -below)


def lowered(t: Tensor, scale: str, power: float) -> Tensor:
    """Return u with `T(u) = t`; where there is none, the end of the domain.

    >>> lowered(torch.tensor([0.0, 2.0, -9.0]), "power", 0.5).tolist()
    [1.0, 4.0, 0.0]
    """
    if scale == "linear":
        return t
    if scale == "power":
        return t.exp() if power == 0 else (t * power + 1).clamp_min(0).pow(1 / power)
    size, other = t.abs(), 2 - power
    above = size.expm1() if power == 0 else (size * power + 1).pow(1 / power) - 1
    below = size.expm1() if other == 0 else (size * other + 1).pow(1 / other) - 1
    return torch.where(t >= 0, above, -below)
