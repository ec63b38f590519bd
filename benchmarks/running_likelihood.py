"""The running log Z of an RBM on binarized MNIST against annealed importance sampling at the same parameters.

    HARMONIUM_DATA=… python benchmarks/running_likelihood.py

Trains a 784–500 RBM as the shipped recipe begins and prints, every few epochs, log Z as `LikelihoodTrack` follows it
and as `log_z` measures it afresh with 5,000 temperatures. Takes about five minutes on 2 cores.
"""

from __future__ import annotations

import argparse
import copy
import time
from typing import Any

import torch

import harmonium as hm
from harmonium.data import load
from harmonium.evaluation.likelihood_track import LikelihoodTrack
from harmonium.learning import Training


class Compare(hm.learning.Callback):
    """Prints both values at the end of some epochs."""

    def __init__(self, average: hm.ParameterAverage, every: int, n_betas: int) -> None:
        self.average, self.every, self.n_betas = average, every, n_betas

    def on_epoch(self, training: Training, record: dict[str, Any]) -> None:
        """Measure log Z of the averaged model afresh."""
        if training.epoch % self.every:
            return
        model = copy.deepcopy(training.model)
        self.average.swap(model)  # the average goes into the copy, the copy's own values into the average
        fresh = hm.log_z(model, n_chains=100, n_betas=self.n_betas, generator=torch.Generator().manual_seed(7))
        self.average.swap(model)
        print(f"epoch {training.epoch}: followed {record['log_z']:.3f} ± {record['log_z_error']:.3f}, afresh {fresh}; "
              f"validation {record['validation_log_likelihood']:.2f} nats", flush=True)  # fmt: skip


class Timed(LikelihoodTrack):
    """Keeps the time that following takes."""

    seconds = 0.0

    def __call__(self, training: Training) -> dict[str, Any]:
        """Follow, by the clock."""
        started = time.perf_counter()
        record = super().__call__(training)
        self.seconds += time.perf_counter() - started
        return record


def main() -> None:
    """Train and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--every", type=int, default=6)
    parser.add_argument("--betas", type=int, default=5000)
    arguments = parser.parse_args()
    data = load("binarized-mnist")
    x, valid = data.train.flatten(1), data.valid.flatten(1)
    generator = torch.Generator().manual_seed(0)
    rbm = hm.RBM(hm.Bernoulli(784), hm.Bernoulli(500), generator=generator)
    hm.initialize(rbm, x[:10_000].float())
    average, track = hm.ParameterAverage(0.9998), Timed()
    started = time.perf_counter()
    hm.fit(rbm, x, hm.PCD(n_chains=100), optimizer=torch.optim.SGD(rbm.parameters(), 0.06, fused=True),
           epochs=arguments.epochs, batch_size=100, transforms=[hm.WeightDecay(0.001), average], monitors=[track],
           callbacks=[Compare(average, arguments.every, arguments.betas)], validation=valid.float(),
           generator=generator)  # fmt: skip
    print(f"following took {track.seconds:.1f} s of {time.perf_counter() - started:.0f} s, {arguments.epochs} epochs")


if __name__ == "__main__":
    main()
