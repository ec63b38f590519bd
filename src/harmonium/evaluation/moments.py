"""Do synthetic rows have the means, the spreads and the levels of the data?"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from harmonium.data.column import Column


def moments_apart(samples: Tensor, x: Tensor, columns: Sequence[Column]) -> dict[str, float]:
    """Return how far encoded samples are from encoded rows at most over the columns, in the units of the table.

    `mean` is the difference of means in standard deviations of the data, `spread` the ratio of standard deviations (1
    is best, never below), both of numbers; `share` the largest difference of the shares of a level.
    """
    worst, start = {"mean": 0.0, "spread": 1.0, "share": 0.0}, 0
    for column in columns:
        ours, theirs = (y[:, start : start + column.width].double() for y in (samples, x))
        theirs = theirs[~theirs.isnan().any(1)]
        start += column.width
        if not column.width or len(theirs) < 2:
            continue
        if not column.is_numeric:
            worst["share"] = max(worst["share"], float((ours.mean(0) - theirs.mean(0)).abs().max()))
            continue
        a, b = column.inverse(ours[:, 0]), column.inverse(theirs[:, 0])
        std = b.std(correction=0).clamp_min(1e-12)
        worst["mean"] = max(worst["mean"], float((a.mean() - b.mean()).abs() / std))
        ratio = float((a.std() / std).clamp_min(1e-12))
        worst["spread"] = max(worst["spread"], ratio, 1 / ratio)
    return worst
