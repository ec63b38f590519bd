"""Transformations told from the hidden units of gated RBMs: `python -m benchmarks.transformations [shifted-dots]`.

Settings are those of the recipe, the same for both sets and all seeds. Prints a line for each training.
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor

import harmonium as hm
from harmonium.data import load
from harmonium.evaluation.classify.softmax_regression import softmax_regression
from harmonium.runs.kinds.gated_rbm import accuracy

SETS, SEEDS = ("shifted-dots", "turned-dots"), (0, 1, 2)
N_HIDDEN, N_FACTORS, EPOCHS, RATE = 100, 300, 10, 0.003


def train(x: Tensor, seed: int) -> tuple[hm.GatedRBM, hm.GatedRBM]:
    """Return a machine trained on pairs `(n, 2, n_pixels)`, and the machine that it started as."""
    machines = []
    for epochs in (0, EPOCHS):
        generator = torch.Generator().manual_seed(seed)
        n = x.shape[2]
        machine = hm.GatedRBM(n, hm.Spin(n), hm.Bernoulli(N_HIDDEN), N_FACTORS, generator=generator)
        optimizer = torch.optim.Adam([p for p in machine.parameters() if p.requires_grad], RATE, fused=True)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch / EPOCHS)
        data = {"input": x[:, 0], "output": x[:, 1]}
        options = {"optimizer": optimizer, "schedule": schedule, "batch_size": 100, "monitors": []}
        hm.fit(machine, data, hm.CD(), epochs=epochs, generator=generator, **options)  # type: ignore[arg-type]
        machines.append(machine)
    return machines[1], machines[0]


def main() -> None:
    """Print accuracies on validation and test pairs, with random weights, and of a line through the pixels."""
    for name in sys.argv[1:] or SETS:
        data = load(name)
        x, valid, test = (2.0 * part.flatten(2) - 1 for part in (data.train, data.valid, data.test) if part is not None)
        y, v, t = (labels for labels in (data.train_labels, data.valid_labels, data.test_labels) if labels is not None)
        pixels = softmax_regression((x.flatten(1), y), (test.flatten(1), t))
        print(f"{data}\npixels of both images: test {(pixels == t).double().mean():.2%}", flush=True)
        for seed in SEEDS:
            model, untrained = train(x, seed)
            told = ", ".join(
                f"{n} {accuracy(model, (x, y), s):.2%}" for n, s in (("valid", (valid, v)), ("test", (test, t)))
            )
            print(
                f"{name}, seed {seed}: {told}; random weights {accuracy(untrained, (x, y), (test, t)):.2%}", flush=True
            )


if __name__ == "__main__":
    main()
