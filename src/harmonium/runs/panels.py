"""What a report shows, as plain data: a heading, a text and pictures that `harmonium.plots` knows how to draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from harmonium.evaluation.classify.calibration import Reliability
from harmonium.models import BoltzmannMachine


@dataclass(frozen=True, eq=False)
class Shown:
    """Something to be drawn into a file with this name, with a caption that says how to read it."""

    name: str
    caption: str


@dataclass(frozen=True, eq=False)
class ImageGrid(Shown):
    """Images `(n, channels, height, width)` side by side, `n_columns` in a row (as square as can be if None).

    `limits` are the values that are black and white, those of the training data if None.
    """

    images: Tensor
    n_columns: int | None = None
    limits: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class ImageRows(Shown):
    """Rows of as many images each in [0, 1], one below the other, by their names."""

    rows: Mapping[str, Tensor]


@dataclass(frozen=True, eq=False)
class Film(Shown):
    """Films `(n, n_frames, channels, height, width)` in [0, 1] side by side, in motion."""

    films: Tensor


@dataclass(frozen=True, eq=False)
class Filters(Shown):
    """The weights between the images that a machine sees and each of its hidden units, all on one scale.

    `shape` is that of the images, where the machine has them flat.
    """

    machine: BoltzmannMachine
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class Lines(Shown):
    """Curves over `x` by their names; `levels` are level lines to compare with."""

    x: Sequence[float]
    series: Mapping[str, Sequence[float]]
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    levels: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Bars(Shown):
    """A bar for each value, by its name; `errors` are standard errors by the same names."""

    values: Mapping[str, float]
    title: str = ""
    y_label: str = ""
    errors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class GroupedBars(Shown):
    """Bars side by side at each of some names, one of each series."""

    names: Sequence[str]
    series: Mapping[str, Sequence[float]]
    title: str = ""
    y_label: str = ""


@dataclass(frozen=True, eq=False)
class Heatmap(Shown):
    """A matrix in colors; signed values are white at zero."""

    values: Tensor
    title: str = ""
    x_label: str = ""
    y_label: str = ""


@dataclass(frozen=True, eq=False)
class Histograms(Shown):
    """The histograms of values by their names, scaled to area one."""

    values: Mapping[str, Tensor]
    title: str = ""
    x_label: str = ""


@dataclass(frozen=True, eq=False)
class Calibration(Shown):
    """Accuracy over confidence: a calibrated model lies on the diagonal."""

    bins: Reliability


@dataclass(frozen=True, eq=False)
class Panel:
    """A section of a report: a heading, text, each line a paragraph, and pictures."""

    title: str
    text: str
    pictures: list[Shown] = field(default_factory=list)
