"""A deep belief network at the paper's rate, with one rate for all and with `layer_rates`.

    python benchmarks/dbn_rates.py

MNIST averaged to 16×16, 2,560 images, three layers with 255 levels in mean field, all machines at once by Adam at 0.03.
Prints how much of what each machine sees it leaves unexplained, `Σ(v-v')²/Σ(v-v̄)²`, 1 being no better than the mean:
the median over seeds, and each of them.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Callable

import torch
from torch.nn.functional import avg_pool2d, pad

import harmonium as hm
from harmonium.data import load
from harmonium.learning.objectives import SummedLayers
from harmonium.learning.starts import initialize_layers, layer_rates

SPEC, LEVELS, N_LAYERS = "conv 64 4x4/2, conv 128 4x4/2, dense 200", 255, 3
SETTINGS: dict[str, tuple[float | None, Callable[[hm.DBN], list[dict[str, object]]]]] = {
    "Adam 0.03 for all, k = 4/N": (None, lambda dbn: [{"params": list(dbn.parameters()), "lr": 0.03}]),
    "Adam 0.03 for all, k = 1/N": (1 / LEVELS, lambda dbn: [{"params": list(dbn.parameters()), "lr": 0.03}]),
    "layer_rates(dbn, 0.03)": (None, lambda dbn: layer_rates(dbn, 0.03)),
}
"""The steepness k and the rates of each setting."""


def left(name: str, x: torch.Tensor, epochs: int, seed: int) -> list[float]:
    """Return what each machine leaves unexplained after training."""
    generator = torch.Generator().manual_seed(seed)
    k, rates = SETTINGS[name]
    dbn = hm.DBN.from_spec(SPEC, shape=(1, 16, 16), levels=LEVELS, k=k, generator=generator)
    initialize_layers(dbn, x[:500])
    last = hm.fit(
        dbn, x, SummedLayers(), optimizer=torch.optim.Adam(rates(dbn)), epochs=epochs, batch_size=128,
        generator=generator,
    ).last  # fmt: skip
    return [last[f"unexplained_{i + 1}"] for i in range(N_LAYERS)]


def main() -> None:
    """Train with each setting and every seed, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=10)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    images = pad(load("mnist").train[:2560].float(), (2, 2, 2, 2))
    x = avg_pool2d(images, 2)
    print("| setting | layer 1 | layer 2 | layer 3 |\n|---|---|---|---|")
    for name in SETTINGS:
        found = zip(*(left(name, x, arguments.epochs, seed) for seed in range(arguments.seeds)), strict=True)
        cells = (f"{statistics.median(part):.3g} ({', '.join(f'{value:.3g}' for value in part)})" for part in found)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
