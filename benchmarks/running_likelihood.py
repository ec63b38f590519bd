"""log Z as finished runs followed it, and as it was measured at their end.

    python benchmarks/running_likelihood.py RUN …

`LikelihoodTrack` follows log Z from the first epoch to the last; the evaluation of a run measures it afresh, from its
parameters alone. Where that is trusted, it says how far the followed value is off, and whether its error covers. The
runs of the recipe, three times half an hour, are made by

    for S in 0 1 2; do harmonium train examples/binarized_mnist.toml --threads 1 --seed $S --output runs/bm-$S; done
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from harmonium.runs import Run


def line(folder: Path) -> str:
    """Return the row of a run: both values, and their difference in units of the error of both."""
    run = Run.open(folder)
    last, measured = run.metrics()[-1], (run.evaluation() or {})["log_z"]
    followed, error = last["log_z"], last["log_z_error"]
    off, both = followed - measured["value"], math.hypot(error, measured["error"])
    trusted = "trusted" if measured["trusted"] else f"**not trusted**: {measured['note']}"
    return (
        f"| {folder.name} | {last['epoch']} | {followed:.2f} ± {error:.2f} | {measured['text']}, {trusted} | "
        f"{off:+.2f}, {abs(off) / both:.2f} errors |"
    )


def main() -> None:
    """Print a table of the runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    print("| run | epochs | followed | measured at the end | off |\n|---|---|---|---|---|")
    for folder in parser.parse_args().runs:
        print(line(folder))


if __name__ == "__main__":
    main()
