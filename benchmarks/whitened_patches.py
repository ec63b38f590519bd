"""Spike-and-slab and Gaussian RBMs on whitened color patches: `python -m benchmarks.whitened_patches [PICTURE]`.

As many hidden units, the same rates tried with seed 0 by validation nats, the same updates; log Z between bounds.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable

import torch
from torch import Tensor

import harmonium as hm
from harmonium.data import Data, load
from harmonium.evaluation.baselines import gaussian_log_density
from harmonium.plots.grids import image_rows
from harmonium.runs import resolve
from harmonium.runs.kinds import KINDS

N_HIDDEN, EPOCHS, BATCH, N_PATCHES = 128, 8, 100, 30_000
RATES, SEEDS = (1e-3, 3e-3), (0, 1, 2)


def spike_slab(data: Data, *, generator: torch.Generator) -> hm.BoltzmannMachine:
    """Return a spike-and-slab RBM as `harmonium train --model spike-slab-rbm` starts it."""
    settings = {"data": {"name": data.name}, "model": {"kind": "spike-slab-rbm", "n_hidden": N_HIDDEN}}
    return KINDS["spike-slab-rbm"].build(resolve(settings), data, generator=generator)  # type: ignore[return-value]


def gaussian(data: Data, *, generator: torch.Generator) -> hm.BoltzmannMachine:
    """Return a Gaussian RBM with σ and biases fitted to the data."""
    rbm = hm.RBM(hm.Gaussian(192), hm.Bernoulli(N_HIDDEN), generator=generator)
    hm.initialize(rbm, data.train.flatten(1))
    return rbm


MODELS: dict[str, Callable[..., hm.BoltzmannMachine]] = {"spike and slab": spike_slab, "Gaussian RBM": gaussian}


def train(make: Callable[..., hm.BoltzmannMachine], data: Data, rate: float, seed: int) -> hm.BoltzmannMachine:
    """Return a model trained by PCD-1 with 100 chains."""
    generator = torch.Generator().manual_seed(seed)
    model = make(data, generator=generator)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], rate, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch / EPOCHS)
    hm.fit(
        model,
        data.train.flatten(1),
        hm.PCD(n_chains=100),
        optimizer=optimizer,
        schedule=schedule,
        epochs=EPOCHS,
        batch_size=BATCH,
        monitors=[],
        generator=generator,
    )
    return model


def main() -> None:
    """Print nats of all models; draw samples beside data if a name is given."""
    warnings.simplefilter("ignore")
    data = load("cifar10-patches", n_samples=N_PATCHES)
    valid, test = (x.flatten(1) for x in (data.valid, data.test) if x is not None)
    simple = [gaussian_log_density(x, data.train.flatten(1), ridge=1e-6).mean().item() for x in (valid, test)]
    print(f"{data}\na single Gaussian: valid {simple[0]:.2f}, test {simple[1]:.2f}", flush=True)
    rows: dict[str, Tensor] = {"data": test[:14]}
    for name, make in MODELS.items():
        chosen, best = RATES[0], -float("inf")
        for seed in SEEDS:
            for rate in RATES if seed == SEEDS[0] else (chosen,):
                started = time.process_time()
                model = train(make, data, rate, seed)
                seconds, generator = time.process_time() - started, torch.Generator().manual_seed(1)
                z = hm.log_z(model, n_chains=100, n_betas=1000, generator=generator)
                nats = [hm.log_likelihood(model, x, log_z=z).mean() for x in (valid, test)]
                print(
                    f"{name}, rate {rate:g}, seed {seed}: valid {nats[0]}, test {nats[1]} ({seconds:.0f} s)", flush=True
                )
                if seed == SEEDS[0] and nats[0].value > best:
                    chosen, best = rate, nats[0].value
                    rows[name] = hm.sample(model, 14, n_steps=1000, generator=generator)
    if len(sys.argv) > 1:
        top = 3.0
        shown = {label: (x.reshape(-1, 3, 8, 8) / (2 * top) + 0.5).clamp(0, 1) for label, x in rows.items()}
        image_rows(shown).savefig(sys.argv[1], dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main()
