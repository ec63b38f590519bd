"""How often a trusted log Z is wrong, over machines with exact values: `python benchmarks/log_z_trust.py`.

The default settings of `hm.log_z` are tested, without counting: `method="sandwich"`, or another by `--method`. Rules
were made with machines from `--first 0`; the figures of docs/results.md come from another range of seeds, with the
rules as they are.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor

import harmonium as hm
from harmonium.data import load
from harmonium.testing import scatter

Case = tuple[str, hm.RBM, float]
"""The family, the machine, and its exact log Z."""

EASY = ("random 0.1 to 0.5", "spins 0.05 to 0.2")


def uniform(low: float, high: float, g: torch.Generator) -> float:
    return low + (high - low) * torch.rand((), generator=g).item()


def log_uniform(low: float, high: float, g: torch.Generator) -> float:
    return math.exp(uniform(math.log(low), math.log(high), g))


def whole(low: int, high: int, g: torch.Generator) -> int:
    return int(torch.randint(low, high + 1, (), generator=g))


def signs(*shape: int, g: torch.Generator) -> Tensor:
    return torch.randint(0, 2, shape, generator=g) * 2.0 - 1.0


def counted(machine: hm.RBM) -> tuple[hm.RBM, float]:
    return machine, hm.exact_log_z(machine).value


def random(visible: hm.units.Units, hidden: hm.units.Units, scale: float, g: torch.Generator) -> tuple[hm.RBM, float]:
    return counted(scatter(hm.RBM(visible, hidden), scale=scale, generator=g).float())


def binary(low: float, high: float, g: torch.Generator) -> tuple[hm.RBM, float]:
    sizes = hm.Bernoulli(whole(10, 24, g)), hm.Bernoulli(whole(6, 12, g))
    return random(*sizes, log_uniform(low, high, g), g)


def spins(low: float, high: float, g: torch.Generator) -> tuple[hm.RBM, float]:
    return random(hm.Spin(whole(10, 24, g)), hm.Spin(whole(6, 12, g)), log_uniform(low, high, g), g)


def ferromagnet(n: int, weight: float, bias: float) -> tuple[hm.RBM, float]:
    """One weight and bias: `Z = Σ_kl C(n,k) C(n,l) e^{b(k+l) + wkl}`, a transition of first order near b = -wn/2."""
    machine = hm.RBM(hm.Bernoulli(n), hm.Bernoulli(n))
    with torch.no_grad():
        machine.weight.fill_(weight)
        machine.visible_bias.fill_(bias)
        machine.hidden_bias.fill_(bias)
    b, w = machine.visible_bias[0].item(), machine.weight[0, 0].item()  # as single precision has them
    k = torch.arange(n + 1, dtype=torch.float64)
    choose = torch.tensor([math.log(math.comb(n, i)) for i in range(n + 1)], dtype=torch.float64)
    terms = choose[:, None] + choose + b * (k[:, None] + k) + w * k[:, None] * k
    return machine, terms.flatten().logsumexp(0).item()


def any_ferromagnet(g: torch.Generator) -> tuple[hm.RBM, float]:
    chance = uniform(0, 1, g)
    if chance < 0.1:
        return ferromagnet(40, 0.25, -4.9)
    if chance < 0.2:
        return ferromagnet(30, 0.5, -7.4)
    n, strength = (10, 20, 30, 40, 60)[whole(0, 4, g)], uniform(8, 16, g)
    return ferromagnet(n, strength / n, -strength / 2 * uniform(0.96, 1.04, g))


def patterns(n_modes: int, strength: float, tilt: float, zero_one: bool, g: torch.Generator) -> tuple[hm.RBM, float]:
    """A hidden spin for each stored pattern, 2 modes each; as 0/1 units, its biases alone point to none of them."""
    n = whole(20, 40, g)
    w, b = strength * signs(n, n_modes, g=g), tilt * torch.randn(n, generator=g)
    kind = hm.Bernoulli if zero_one else hm.Spin
    machine = hm.RBM(kind(n), kind(n_modes))
    with torch.no_grad():  # s = 2x - 1
        machine.weight.copy_(4 * w if zero_one else w)
        machine.visible_bias.copy_(2 * (b - w.sum(1)) if zero_one else b)
        machine.hidden_bias.copy_(-2 * w.sum(0) if zero_one else torch.zeros(n_modes))
    return counted(machine)


def components(g: torch.Generator) -> tuple[hm.RBM, float]:
    n, sigma, distance = whole(3, 6, g), log_uniform(0.01, 1.0, g), log_uniform(1.0, 100.0, g)
    machine = hm.RBM(hm.Gaussian(3, initial_sigma=sigma), hm.Bernoulli(n))
    with torch.no_grad():
        machine.weight.copy_(distance * sigma * torch.randn(3, n, generator=g))
        machine.hidden_bias.copy_(torch.randn(n, generator=g) - machine.weight.square().sum(0) / (2 * sigma**2))
    return counted(machine)


FAMILIES: dict[str, Callable[[torch.Generator], tuple[hm.RBM, float]]] = {
    "random 0.1 to 0.5": lambda g: binary(0.1, 0.5, g),
    "spins 0.05 to 0.2": lambda g: spins(0.05, 0.2, g),
    "random 0.5 to 3": lambda g: binary(0.5, 3.0, g),
    "random 3 to 10": lambda g: binary(3.0, 10.0, g),
    "spin glasses 0.3 to 1.2": lambda g: spins(0.3, 1.2, g),
    "ferromagnets": any_ferromagnet,
    "two modes of 0/1 units": lambda g: patterns(1, uniform(0.2, 1.5, g), uniform(0, 0.5, g), True, g),
    "stored patterns": lambda g: patterns(whole(2, 6, g), uniform(0.2, 0.6, g), 0.1, whole(0, 1, g) == 1, g),
    "Gaussian components": components,
    "categorical": lambda g: random(hm.Categorical(6, 4), hm.Categorical(whole(2, 4, g), 4), log_uniform(0.3, 3, g), g),
    "multinary": lambda g: random(hm.Multinary(8, levels=7, exact=True), hm.Bernoulli(8), log_uniform(0.05, 0.5, g), g),
}
"""Makers of machines whose log Z is exact, from easy ones to those that fool an annealing."""


def trained(first: int, n: int) -> Iterator[Case]:
    """Yield RBMs of 10 to 20 hidden units that learned static binarized MNIST for 10, 30 and 60 epochs."""
    x = load("binarized-mnist").train.flatten(1).float()
    for i in range((n + 2) // 3):
        g = torch.Generator().manual_seed(first + i)
        rbm = hm.RBM(hm.Bernoulli(784), hm.Bernoulli(whole(10, 20, g)), generator=g)
        for j, epochs in enumerate((10, 20, 30)[: n - 3 * i]):
            optimizer = torch.optim.SGD(rbm.parameters(), (0.05, 0.02, 0.01)[j])
            hm.fit(rbm, x, hm.PCD(n_chains=100), optimizer=optimizer, epochs=epochs, generator=g)
            yield "trained on MNIST", *counted(rbm)


def cases(first: int, n: int, n_trained: int) -> Iterator[Case]:
    """Yield machines family by family in turn, each from a seed of its own."""
    for i in range(n):
        name = list(FAMILIES)[i % len(FAMILIES)]
        yield name, *FAMILIES[name](torch.Generator().manual_seed(first + i))
    yield from trained(first, n_trained) if n_trained else ()


def judge(case: Case, seed: int, method: str) -> dict[str, object]:
    name, machine, exact = case
    started = time.process_time()
    found = hm.log_z(machine, method=method, generator=torch.Generator().manual_seed(seed))
    guaranteed = found.at_least - 1e-9 * abs(exact) <= exact <= found.at_most + 1e-9 * abs(exact)
    return {
        "family": name,
        "seed": seed,
        "exact": exact,
        "value": found.value,
        "error": found.error,
        "lower": found.lower,
        "upper": found.upper,
        "trusted": found.trusted,
        "misses": not found.lower <= exact <= found.upper,
        "off": not abs(found.value - exact) <= 3 * found.error + 1e-5 * max(1.0, abs(exact)),
        "violated": not guaranteed,
        "seconds": time.process_time() - started,
        "note": found.note,
    }


def table(rows: list[dict[str, object]]) -> str:
    """Return how many of each family are trusted, miss, and both."""
    lines = [
        "| family | machines | trusted | misses | trusted and misses | trusted, off by 3 errors | bound violated |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in [*FAMILIES, "trained on MNIST", "all"]:
        some = [row for row in rows if name in (row["family"], "all")]
        trusted = [row for row in some if row["trusted"]]
        numbers = [len(some), len(trusted), sum(bool(row["misses"]) for row in some)]
        numbers += [sum(bool(row[key]) for row in trusted) for key in ("misses", "off")]
        numbers.append(sum(bool(row["violated"]) for row in some))
        if some:
            lines.append(f"| {name} | " + " | ".join(map(str, numbers)) + " |")
    trusted = [row for row in rows if row["trusted"]]
    easy = [bool(row["trusted"]) for row in rows if row["family"] in EASY]
    wrong = sum(bool(row["misses"]) for row in trusted)
    seconds = sum(float(str(row["seconds"])) for row in rows)
    lines.append(
        f"\ntrusted {len(trusted) / len(rows):.1%} of all, {sum(easy) / max(1, len(easy)):.1%} of the easy ones; false "
        f"trust {wrong / max(1, len(trusted)):.2%}; {seconds:.0f} s of one core"
    )
    return "\n".join(lines)


def main() -> None:
    """Judge machines one by one, keep the rows, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=1001, help="machines of the families that need no data")
    parser.add_argument("--trained", type=int, default=24, help="RBMs trained on binarized MNIST")
    parser.add_argument("--method", default="sandwich", help="how log Z is estimated, e.g. tempering")
    parser.add_argument("--first", type=int, default=1_000_000, help="the first seed")
    parser.add_argument(
        "--output", type=Path, default=None, help="a file of JSON lines, a machine each; goes on with it"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    old = options.output is not None and options.output.exists()
    rows = [json.loads(line) for line in options.output.read_text().splitlines()] if old else []
    for i, case in enumerate(cases(options.first, options.machines, options.trained)):
        if i < len(rows):  # done before
            continue
        rows.append(judge(case, options.first + i, options.method))
        if options.output is not None:
            with options.output.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
        if (rows[-1]["trusted"] and (rows[-1]["misses"] or rows[-1]["off"])) or rows[-1]["violated"]:
            print(rows[-1], flush=True)
        if (i + 1) % 100 == 0:
            print(f"{i + 1} machines\n{table(rows)}\n", flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
