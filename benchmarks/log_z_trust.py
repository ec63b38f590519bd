"""How often a trusted log Z is wrong: machines with exact values, `python benchmarks/log_z_trust.py 200`."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable

import torch

import harmonium as hm
from harmonium.partition.log_z import sandwich
from harmonium.testing import scatter

EASY = ("weak", "spin weak")


def rbm(visible: hm.units.Units, hidden: hm.units.Units, scale: float, generator: torch.Generator) -> hm.RBM:
    return scatter(hm.RBM(visible, hidden), scale=scale, generator=generator).float()


def ferromagnet(n: int, weight: float, bias: float) -> hm.RBM:
    machine = hm.RBM(hm.Bernoulli(n), hm.Bernoulli(n))
    with torch.no_grad():
        machine.weight.fill_(weight)
        machine.visible_bias.fill_(bias)
        machine.hidden_bias.fill_(bias)
    return machine


def patterns(n_modes: int, strength: float, generator: torch.Generator) -> hm.RBM:
    """Return spins with a few stored patterns, one hidden spin each: 2 n_modes modes."""
    machine = hm.RBM(hm.Spin(40), hm.Spin(n_modes))
    with torch.no_grad():
        machine.weight.copy_(strength * torch.randn(40, n_modes, generator=generator).sign())
        machine.visible_bias.copy_(0.05 * torch.randn(40, generator=generator))
    return machine


def components(distance: float, sigma: float, generator: torch.Generator) -> hm.RBM:
    machine = hm.RBM(hm.Gaussian(3, initial_sigma=sigma), hm.Bernoulli(4))
    with torch.no_grad():
        machine.weight.copy_(distance * sigma * torch.randn(3, 4, generator=generator))
        norm = machine.weight.square().sum(0) / (2 * sigma**2)
        machine.hidden_bias.copy_(-norm + torch.randn(4, generator=generator))
    return machine


FAMILIES: dict[str, Callable[[torch.Generator], hm.RBM]] = {
    "weak": lambda g: rbm(hm.Bernoulli(20), hm.Bernoulli(12), 0.3, g),
    "spin weak": lambda g: rbm(hm.Spin(20), hm.Spin(12), 0.1, g),
    "medium": lambda g: rbm(hm.Bernoulli(20), hm.Bernoulli(12), 1.0, g),
    "strong": lambda g: rbm(hm.Bernoulli(20), hm.Bernoulli(12), 3.0, g),
    "very strong": lambda g: rbm(hm.Bernoulli(20), hm.Bernoulli(12), 10.0, g),
    "spin glass": lambda g: rbm(hm.Spin(20), hm.Spin(12), 0.7, g),
    "ferromagnet": lambda g: ferromagnet(12, (w := 0.8 + torch.rand((), generator=g).item()), -w * 12 * 0.49),
    "patterns": lambda g: patterns(4, 0.3, g),
    "Gaussian near": lambda g: components(2.0, 0.5, g),
    "Gaussian far": lambda g: components(30.0, 0.1, g),
    "categorical": lambda g: rbm(hm.Categorical(6, 4), hm.Categorical(3, 4), 1.0, g),
    "multinary": lambda g: rbm(hm.Multinary(8, levels=7, exact=True), hm.Bernoulli(8), 0.3, g),
}
"""Makers of machines whose log Z is exact, from easy ones to those that fool an annealing."""


def main(n: int) -> None:
    """Print, for each family, how many are trusted, wrong, and wrongly trusted."""
    warnings.simplefilter("ignore")
    counts = {name: [0, 0, 0, 0, 0] for name in FAMILIES}
    started = time.perf_counter()
    for i in range(n):
        name = list(FAMILIES)[i % len(FAMILIES)]
        generator = torch.Generator().manual_seed(i)
        machine = FAMILIES[name](generator)
        exact, found = hm.exact_log_z(machine).value, sandwich(machine, generator=generator)
        slack = 1e-5 * max(1.0, abs(exact))  # single precision
        wrong = not found.lower - slack <= exact <= found.upper + slack
        row = counts[name]
        row[0] += 1
        row[1] += found.trusted
        row[2] += wrong
        row[3] += found.trusted and wrong
        row[4] += found.at_least > exact + slack
    print("family | machines | trusted | interval misses | trusted and misses | guaranteed bound violated")
    for name, row in counts.items():
        print(" | ".join([name, *map(str, row)]))
    total = [sum(row[k] for row in counts.values()) for k in range(5)]
    easy = [sum(counts[name][k] for name in EASY) for k in range(2)]
    print(" | ".join(["all", *map(str, total)]))
    print(f"trusted {total[1] / total[0]:.0%} of all, {easy[1] / max(1, easy[0]):.0%} of the easy ones; "
          f"false trust {total[3] / max(1, total[1]):.2%}; {time.perf_counter() - started:.0f} s")  # fmt: skip
    if math.isnan(total[0]):
        raise SystemExit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 120)
