"""log Z of one trained model by all methods: seconds against error, `python benchmarks/log_z_time.py RUN`.

Each estimate is measured with several efforts, the one that matters with several seeds, whose values are held against
their errors. Rows are kept as JSON lines, so that a stopped measurement goes on, and drawn at the end.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import torch
from matplotlib.figure import Figure

from harmonium.plots.style import COLORS, GRAY, chart, legend, new_figure
from harmonium.runs import Run, estimate_log_z

EFFORTS = {
    "tempering": (12_000, 12_000, 12_000, 12_000, 4_000, 2_000),
    "sandwich": (30_000, 7_500),
    "bounds": (1,),
}
"""Temperatures of each method; 160 chains, seeds from 0. The first of each is the one that matters."""


def measure(run: Run, method: str, n_betas: int, seed: int) -> dict[str, object]:
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = estimate_log_z(run, method, n_chains=160, n_betas=max(2, n_betas), seed=seed)
    row: dict[str, object] = {"method": method, "n_betas": n_betas, "seed": seed}
    names = ("value", "error", "lower", "upper", "at_least", "at_most", "trusted", "note")
    return row | {"seconds": time.process_time() - started} | {name: getattr(found, name) for name in names}


def picture(rows: list[dict[str, object]]) -> Figure:
    """Return the reported error and the interval's half width against seconds, for each method."""
    figure = new_figure(7.4, 3.0)
    first = chart(figure, 1, 2, 1, title="Error that is reported", x="seconds of one core", y="nats")
    second = chart(figure, 1, 2, 2, title="Estimates with their intervals", x="seconds of one core", y="log Z in nats")
    for color, method in zip(COLORS, ("tempering", "sandwich"), strict=False):
        own = [row for row in rows if row["method"] == method]
        for axes, key in ((first, "error"), (second, "value")):
            for trusted in (True, False):
                some = [row for row in own if row["trusted"] is trusted]
                axes.plot(
                    [row["seconds"] for row in some],
                    [row[key] for row in some],
                    "o",
                    color=color,
                    markerfacecolor=color if trusted else "white",
                    label=f"{method}, {'trusted' if trusted else 'not trusted'}" if some else None,
                )
        for row in own:
            second.plot([row["seconds"]] * 2, [row["lower"], row["upper"]], color=color, linewidth=1.2)
    first.axhline(0.1, color=GRAY, linestyle="--", linewidth=1.0)
    for axes in (first, second):
        axes.set_xscale("log")
        axes.set_xticks([10, 20, 50, 100, 200, 500], ["10", "20", "50", "100", "200", "500"])
        axes.minorticks_off()
    first.set_yscale("log")
    first.set_yticks([0.05, 0.1, 0.2, 0.4], ["0.05", "0.1", "0.2", "0.4"])
    first.minorticks_off()
    legend(first)
    return figure


def agreement(rows: list[dict[str, object]]) -> str:
    """Return how far the seeds of the tempering that matters lie from their mean, in their own errors."""
    own = [row for row in rows if row["method"] == "tempering" and row["n_betas"] == EFFORTS["tempering"][0]]
    numbers = [[float(str(row[key])) for row in own] for key in ("value", "error")]
    value, error = torch.tensor(numbers, dtype=torch.float64)
    weight = error**-2
    mean = (weight * value).sum() / weight.sum()
    square = (weight * (value - mean).square()).sum()
    together = f"mean {mean:.3f} ± {weight.sum() ** -0.5:.3f}, χ² {square:.1f} of {len(own) - 1} degrees of freedom"
    return f"tempering, {len(own)} seeds: {together}"


def main() -> None:
    """Measure what is not measured yet, print it, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--methods", nargs="*", default=list(EFFORTS), choices=list(EFFORTS))
    parser.add_argument("--output", type=Path, default=Path("log_z_time.jsonl"))
    parser.add_argument("--picture", type=Path, default=Path("log_z_time.png"))
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.output.read_text().splitlines()] if options.output.exists() else []
    run = Run.open(options.run)
    for method in options.methods:
        for seed, n_betas in enumerate(EFFORTS[method]):
            if not any(row["method"] == method and row["seed"] == seed for row in rows):
                rows.append(measure(run, method, n_betas, seed=seed))
                with options.output.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
                print(rows[-1], flush=True)
    print(agreement(rows))
    picture(rows).savefig(options.picture)


if __name__ == "__main__":
    main()
