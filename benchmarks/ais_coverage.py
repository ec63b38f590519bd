"""How often the error bar of annealed importance sampling holds the exact log Z, on random RBMs.

python benchmarks/ais_coverage.py [n_machines]
"""

from __future__ import annotations

import functools
import sys
import time

import torch

import harmonium as hm
from harmonium.testing.partition import measure_coverage


def main() -> None:
    n_machines = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for name, estimator in {
        "ais, 512 chains, 1000 temperatures (default)": hm.ais,
        "ais, 256 chains, 300 temperatures": functools.partial(hm.ais, n_chains=256, n_betas=300),
    }.items():
        started = time.perf_counter()
        coverage = measure_coverage(estimator, n_machines=n_machines, generator=torch.Generator().manual_seed(0))
        print(f"{name}: {coverage} ({time.perf_counter() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
