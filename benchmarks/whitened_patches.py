"""Spike-and-slab and Gaussian RBMs on whitened color patches: `python -m benchmarks.whitened_patches`.

Nats of each model, log Z between bounds, and how much structure their samples have, beside that of held-out data:
lengths, tails of pixels, and tails that are left once each patch is divided by its length. What there is to choose is
chosen with seed 0 by validation nats. `--model NAME` scores one model, `--picture FILE` draws data, samples and
filters; results are kept in a file.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score
from torch import Tensor, nn

import harmonium as hm
from benchmarks.results_file import ResultsFile
from harmonium.data import Data, load
from harmonium.evaluation.baselines import gaussian_log_density, independent_log_likelihood
from harmonium.learning.callback import Callback
from harmonium.learning.objectives import ScaledContrast
from harmonium.learning.starts import independent_components, independent_filters
from harmonium.learning.training import Training
from harmonium.models import ScaleMixture
from harmonium.plots.grids import image_rows
from harmonium.runs import resolve
from harmonium.runs.kinds import KINDS

N_HIDDEN, EPOCHS, BATCH, N_PATCHES, N_PIXELS = 128, 8, 100, 60_000, 192
N_SCALED, N_SCALES, LOW, HIGH = 192, 20, 0.04, 5.0
N_CHAINS, N_BETAS, N_SCALED_BETAS, N_SHOWN, N_DRAWN, N_TOLD, N_START = 100, 500, 1000, 14, 2000, 1000, 20_000
RATES, SEEDS = (1e-3, 3e-3), (0, 1, 2)
SHAPES: tuple[dict[str, Any], ...] = (
    {"width": 3, "limit": 0.97, "rate": 3e-3},
    {"width": 6, "limit": 0.97, "rate": 3e-3},
    {"width": 3, "limit": 0.97, "rate": 5e-4},
)
SCALED_EPOCHS, SHARE_RATE = 2, 10


def spike_slab(data: Data, *, generator: torch.Generator) -> hm.BoltzmannMachine:
    """Return a spike-and-slab RBM as `harmonium train --model spike-slab-rbm` starts it."""
    settings = {"data": {"name": data.name}, "model": {"kind": "spike-slab-rbm", "n_hidden": N_HIDDEN}}
    return KINDS["spike-slab-rbm"].build(resolve(settings), data, generator=generator)  # type: ignore[return-value]


def gaussian(data: Data, *, generator: torch.Generator) -> hm.BoltzmannMachine:
    """Return a Gaussian RBM with σ and biases fitted to the data."""
    rbm = hm.RBM(hm.Gaussian(N_PIXELS), hm.Bernoulli(N_HIDDEN), generator=generator)
    hm.initialize(rbm, data.train.flatten(1))
    return rbm


def scaled(
    data: Data, width: int, limit: float, start: str = "independent", *, generator: torch.Generator
) -> ScaleMixture:
    """Return a scale mixture of spikes with `width` slabs, started at independent directions; scales say what σ is.

    The control is a start at filters drawn at random, as large.
    """
    machine = hm.SpikeSlabRBM(hm.Gaussian(N_PIXELS), N_SCALED // width, width, limit, generator=generator)
    machine.layer("visible").log_sigma.requires_grad_(False)  # type: ignore[operator, union-attr]
    mixture, x = ScaleMixture(machine, LOW, HIGH, N_SCALES), data.train.flatten(1)[:N_START]
    mixture.fit_share(x)
    independent_filters(machine, mixture.divided(x, generator=generator), generator=generator)
    if start == "random":
        machine.weight.detach().normal_(generator=generator)
        machine.weight.detach().mul_(limit / machine.largest_singular_value())
    mixture.fit_share(x)
    return mixture


def train(model: nn.Module, data: Data, rate: float, epochs: int, generator: torch.Generator) -> None:
    """Train by PCD-1 with 100 chains, Adam and a falling rate."""
    share = [p for name, p in model.named_parameters() if name == "log_share"]
    rest = [p for name, p in model.named_parameters() if name != "log_share" and p.requires_grad]
    groups = [{"params": rest}, {"params": share, "lr": SHARE_RATE * rate}] if share else [{"params": rest}]
    optimizer = torch.optim.Adam(groups, rate, fused=True)
    chains = hm.PCD(n_chains=100)
    hm.fit(
        model,
        data.train.flatten(1),
        ScaledContrast(chains) if share else chains,
        optimizer=optimizer,
        epochs=epochs,
        batch_size=BATCH,
        monitors=[],
        callbacks=[Falling(epochs)],
        generator=generator,
    )


class Falling(Callback):
    """A rate that falls to 0 with every update."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs
        self.rates: list[float] = []

    def on_update(self, training: Training) -> None:
        """Set the rate of the next update."""
        groups = training.optimizer.param_groups
        self.rates = self.rates or [group["lr"] for group in groups]
        done = training.update / (self.epochs * math.ceil(len(training.batches) / training.batch_size))
        for group, rate in zip(groups, self.rates, strict=True):
            group["lr"] = rate * (1 - done)


def trained(make: Callable[..., nn.Module], data: Data, rate: float, epochs: int, seed: int) -> nn.Module:
    """Return a model, trained."""
    generator = torch.Generator().manual_seed(seed)
    model = make(data, generator=generator)
    if epochs:
        train(model, data, rate, epochs, generator)
    return model


class GaussianScales:
    """`p(x) = Σ_m π_m N(x; μ, z_m² C)` with one covariance: what a scale mixture is without hidden units."""

    def __init__(self, x: Tensor, n_scales: int, n_steps: int = 60) -> None:
        self.mean, x = x.mean(0), x - x.mean(0)
        self.covariance = x.t() @ x / len(x)
        self.z = torch.logspace(math.log10(0.2), math.log10(4), n_scales).to(x)
        self.share = torch.full_like(self.z, 1 / n_scales)
        for _ in range(n_steps):
            p, distance = self._joint(x)
            p = p.softmax(1)
            self.share = p.mean(0)
            self.z = ((p * distance[:, None]).sum(0) / p.sum(0) / x.shape[1]).sqrt()
            self.covariance = (x * (p / self.z**2).sum(1, keepdim=True)).t() @ x / len(x)

    def _joint(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return `log π_m N(x; 0, z_m² C)` of centered rows, and their squared distances by C."""
        factor, n = torch.linalg.cholesky(self.covariance), x.shape[1]
        distance = torch.linalg.solve_triangular(factor, x.t(), upper=False).square().sum(0)
        volume = factor.diagonal().log().sum() + n / 2 * math.log(2 * math.pi)
        return self.share.log() - distance[:, None] / (2 * self.z**2) - n * self.z.log() - volume, distance

    def log_density(self, x: Tensor) -> Tensor:
        """Return `log p(x)`."""
        return self._joint(x - self.mean)[0].logsumexp(1)

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """Draw n samples."""
        z = self.z[torch.multinomial(self.share, n, replacement=True, generator=generator)]
        noise = torch.randn(n, len(self.mean), generator=generator, dtype=z.dtype)
        return self.mean + z[:, None] * (noise @ torch.linalg.cholesky(self.covariance).t())


def kurtosis(x: Tensor) -> float:
    """Return the kurtosis of each column on average: 3 for a Gaussian."""
    x = x - x.mean(0)
    return (x.pow(4).mean(0) / x.square().mean(0).square()).mean().item()


class Benchmark:
    """The patches, the directions along which structure is measured, and what is known already."""

    def __init__(self, path: Path) -> None:
        self.results, self.data = ResultsFile(path), load("cifar10-patches", n_samples=N_PATCHES)
        self.splits = {"valid": self.data.valid, "test": self.data.test}
        print(self.data)
        generator = torch.Generator().manual_seed(0)
        flat = self.data.train.flatten(1)[:N_START]
        self.directions = independent_components(self.unit(flat), generator=generator)
        self.test = self.held_out()[1][1]

    def held_out(self) -> list[tuple[str, Tensor]]:
        """Return the held-out splits by their names, flat."""
        return [(split, x.flatten(1)) for split, x in self.splits.items() if x is not None]

    @staticmethod
    def unit(x: Tensor) -> Tensor:
        """Return patches divided by their lengths: what is left has no contrast."""
        return x / x.norm(dim=1, keepdim=True)

    def structure(self, x: Tensor) -> dict[str, Any]:
        """Return the lengths and tails of patches, and tails once each is divided by its length.

        `responses` are those to the independent components of the training patches, `neighbors` differences of two
        pixels side by side. `told_apart` is how often a classifier tells such responses from those of test patches.
        """
        lengths, u = x.norm(dim=1), self.unit(x)
        grid = u.reshape(-1, 3, 8, 8)
        return {
            "lengths": [round(lengths.mean().item(), 2), round(lengths.std().item(), 2)],
            "pixels": round(kurtosis(x.reshape(-1, 1)), 2),
            "pixels, divided": round(kurtosis(u), 2),
            "neighbors, divided": round(kurtosis((grid[..., 1:] - grid[..., :-1]).flatten(1)), 2),
            "responses, divided": round(kurtosis(u @ self.directions), 2),
            "told apart": [round(number, 3) for number in self.told_apart(x)],
        }

    def told_apart(self, x: Tensor) -> tuple[float, float]:
        """Return the accuracy of a forest that tells x from test patches, with lengths and without, by responses."""
        found = []
        for prepare in (lambda rows: rows, self.unit):
            rows = torch.cat([prepare(self.test[-N_TOLD:]), prepare(x[:N_TOLD])]) @ self.directions
            seen = torch.cat([rows.abs().sort(1).values, rows.abs()], 1)
            label = [0] * N_TOLD + [1] * N_TOLD
            forest = RandomForestClassifier(50, random_state=0)
            found.append(float(cross_val_score(forest, seen.numpy(), label, cv=3).mean()))
        return found[0], found[1]

    def laws(self) -> None:
        """Print what data look like, and laws without hidden units."""
        train = self.data.train.flatten(1)
        self.results.find({"data": "test"}, self.structure, self.test[:N_DRAWN])
        self.results.find({"law": "a single Gaussian"}, self._single, train)
        for n_scales in (8, N_SCALES):
            self.results.find({"law": "Gaussian scales", "scales": n_scales}, self._scales, train, n_scales)

    def _single(self, train: Tensor) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for split, x in self.held_out():
            found[split] = gaussian_log_density(x, train, ridge=1e-6).mean().item()
            found[f"{split}, independent pixels"] = (
                independent_log_likelihood(hm.Gaussian(N_PIXELS), x, train).mean().item()
            )
        drawn = torch.randn(N_DRAWN, N_PIXELS, generator=torch.Generator().manual_seed(1))
        factor = torch.linalg.cholesky(torch.cov(train.t()))
        return found | self.structure(train.mean(0) + drawn @ factor.t())

    def _scales(self, train: Tensor, n_scales: int) -> dict[str, Any]:
        law = GaussianScales(train, n_scales)
        found: dict[str, Any] = {split: law.log_density(x).mean().item() for split, x in self.held_out()}
        return found | self.structure(law.sample(N_DRAWN, torch.Generator().manual_seed(1)))

    def score(self, name: str, seed: int, epochs: int, **chosen: Any) -> dict[str, Any]:
        """Return the nats of one training on each split, with their bounds, and the structure of its samples."""
        asked = {"model": name, "seed": seed, "epochs": epochs} | chosen
        return self.results.find(asked, self._score, name, seed, epochs, chosen)  # type: ignore[no-any-return]

    def model(self, name: str, seed: int, epochs: int, chosen: dict[str, Any]) -> nn.Module:
        """Return a trained model by its name."""
        how = dict(chosen)
        rate = how.pop("rate")
        return trained(partial(MODELS[name], **how), self.data, rate, epochs, seed)

    def _score(self, name: str, seed: int, epochs: int, chosen: dict[str, Any]) -> dict[str, Any]:
        model, generator = self.model(name, seed, epochs, chosen), torch.Generator().manual_seed(1)
        n_betas = N_SCALED_BETAS if name == "scaled" else N_BETAS
        z = hm.log_z(model, n_chains=N_CHAINS, n_betas=n_betas, generator=generator)
        nats = {split: hm.log_likelihood(model, x, log_z=z).mean() for split, x in self.held_out()}
        said: dict[str, Any] = {split: str(estimate) for split, estimate in nats.items()}
        said["value"] = nats["valid"].value
        return said | self.structure(hm.sample(model, N_DRAWN, n_steps=300, generator=generator))


MODELS: dict[str, Callable[..., nn.Module]] = {
    "scaled": scaled,
    "spike and slab": spike_slab,
    "Gaussian RBM": gaussian,
}


def draw(benchmark: Benchmark, rows: dict[str, nn.Module], path: Path) -> None:
    """Draw test patches, samples of Gaussians of many scales, and those of models with their largest filters."""
    law = GaussianScales(benchmark.data.train.flatten(1), N_SCALES)
    scales = law.sample(N_SHOWN, torch.Generator().manual_seed(1))
    shown = {"test patches": benchmark.test[:N_SHOWN] / 6 + 0.5, "Gaussian scales:\nsamples": scales / 6 + 0.5}
    for name, model in rows.items():
        drawn = hm.sample(model, N_SHOWN, n_steps=300, generator=torch.Generator().manual_seed(1))
        shown[f"{name}:\nsamples"] = drawn / 6 + 0.5
        machine = model.machine if isinstance(model, ScaleMixture) else model
        filters = machine.couplings[0].weight.detach().t()  # type: ignore[operator, union-attr]
        largest = filters[filters.norm(dim=1).argsort(descending=True)[:N_SHOWN]]
        shown[f"{name}:\nfilters"] = largest / (2 * largest.abs().amax(1, keepdim=True)) + 0.5
    image_rows({label: x.reshape(-1, 3, 8, 8).clamp(0, 1) for label, x in shown.items()}).savefig(
        path, dpi=110, bbox_inches="tight"
    )


def main() -> None:
    """Print nats and structure of all models; draw samples beside data if a name is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("whitened_patches.jsonl"))
    parser.add_argument("--model", choices=("laws", *MODELS), help="only this one")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    benchmark, chosen = Benchmark(options.output), {}
    names = [options.model] if options.model else ["laws", *MODELS]
    for name in names:
        if name == "laws":
            benchmark.laws()
            continue
        choices: tuple[dict[str, Any], ...] = SHAPES if name == "scaled" else tuple({"rate": rate} for rate in RATES)
        epochs = SCALED_EPOCHS if name == "scaled" else EPOCHS
        best = max(choices, key=lambda choice: benchmark.score(name, SEEDS[0], epochs, **choice)["value"])
        chosen[name] = (SEEDS[0], epochs, best)
        if name == "scaled":
            benchmark.score(name, SEEDS[0], 0, **best)  # before learning: what the start alone does
            benchmark.score(name, SEEDS[0], epochs, start="random", **best)
        for seed in SEEDS[1:]:
            benchmark.score(name, seed, epochs, **best)
    if options.picture:
        draw(benchmark, {name: benchmark.model(name, *rest) for name, rest in chosen.items()}, options.picture)


if __name__ == "__main__":
    main()
