"""Spike-and-slab and Gaussian RBMs on whitened color patches: `python -m benchmarks.whitened_patches`.

As many hidden units, the same rates tried with seed 0 by validation nats, the same updates; log Z between bounds.
`--picture FILE` draws data, samples of both and filters of the best of each; results are kept in a file.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import harmonium as hm
from benchmarks.results_file import ResultsFile
from harmonium.data import Data, load
from harmonium.evaluation.baselines import gaussian_log_density, independent_log_likelihood
from harmonium.plots.grids import image_rows
from harmonium.runs import resolve
from harmonium.runs.kinds import KINDS

N_HIDDEN, EPOCHS, BATCH, N_PATCHES = 128, 8, 100, 60_000
N_CHAINS, N_BETAS, N_SHOWN = 100, 500, 14
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


class Benchmark:
    """The patches, what is known of them already, and the model trained last."""

    def __init__(self, path: Path) -> None:
        self.results, self.data = ResultsFile(path), load("cifar10-patches", n_samples=N_PATCHES)
        self.splits = {"valid": self.data.valid, "test": self.data.test}
        print(self.data)
        train = self.data.train.flatten(1)
        for split, x in self.held_out():
            single = gaussian_log_density(x, train, ridge=1e-6).mean().item()
            apart = independent_log_likelihood(hm.Gaussian(192), x, train).mean().item()
            print(f"{split}: a single Gaussian {single:.2f}, independent pixels {apart:.2f}", flush=True)

    def held_out(self) -> list[tuple[str, Tensor]]:
        """Return the held-out splits by their names, flat."""
        return [(split, x.flatten(1)) for split, x in self.splits.items() if x is not None]

    def score(self, name: str, rate: float, seed: int) -> dict[str, Any]:
        """Return the nats of one training on each split, with their bounds, from the file where they are known."""
        asked = {"model": name, "rate": rate, "seed": seed}
        return self.results.find(asked, self._score, name, rate, seed)  # type: ignore[no-any-return]

    def _score(self, name: str, rate: float, seed: int) -> dict[str, Any]:
        model, generator = train(MODELS[name], self.data, rate, seed), torch.Generator().manual_seed(1)
        z = hm.log_z(model, n_chains=N_CHAINS, n_betas=N_BETAS, generator=generator)
        nats = {split: hm.log_likelihood(model, x, log_z=z).mean() for split, x in self.held_out()}
        sigma = model.layer("visible").sigma.detach()  # type: ignore[operator, union-attr]
        said: dict[str, Any] = {split: str(estimate) for split, estimate in nats.items()}
        return said | {"value": nats["valid"].value, "sigma": [sigma.min().item(), sigma.max().item()]}


def draw(benchmark: Benchmark, chosen: dict[str, float], path: Path) -> None:
    """Train the models of seed 0 again and draw data, samples and the largest filters."""
    rows: dict[str, Tensor] = {"data": benchmark.held_out()[1][1][:N_SHOWN] / 6 + 0.5}
    for name, rate in chosen.items():
        model = train(MODELS[name], benchmark.data, rate, SEEDS[0])
        generator = torch.Generator().manual_seed(1)
        rows[f"{name}:\nsamples"] = hm.sample(model, N_SHOWN, n_steps=1000, generator=generator) / 6 + 0.5
        filters = model.couplings[0].weight.detach().t()  # type: ignore[operator]
        largest = filters[filters.norm(dim=1).argsort(descending=True)[:N_SHOWN]]
        rows[f"{name}:\nfilters"] = largest / (2 * largest.abs().amax(1, keepdim=True)) + 0.5
    shown = {label: x.reshape(-1, 3, 8, 8).clamp(0, 1) for label, x in rows.items()}
    image_rows(shown).savefig(path, dpi=110, bbox_inches="tight")


def main() -> None:
    """Print nats of all models; draw samples beside data if a name is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("whitened_patches.jsonl"))
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    benchmark, chosen = Benchmark(options.output), {}
    for name in MODELS:
        found = {rate: benchmark.score(name, rate, SEEDS[0])["value"] for rate in RATES}
        chosen[name] = max(found, key=found.__getitem__)
        for seed in SEEDS[1:]:
            benchmark.score(name, chosen[name], seed)
    if options.picture:
        draw(benchmark, chosen, options.picture)


if __name__ == "__main__":
    main()
