"""The score of what a run draws: images against images of its data."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import torch

from harmonium.data import load
from harmonium.evaluation.images.choose_network import choose_network
from harmonium.evaluation.images.generation import generation_score
from harmonium.runs.run import Run
from harmonium.runs.use import draw

NETWORKS = "feature-networks"
"""The folder beside the runs that keeps the classifiers trained for scores: all runs there use the same ones."""

_N_REAL = 10_000


def score_samples(
    run: Run,
    n: int,
    *,
    n_steps: int = 1000,
    inception: str | os.PathLike[str] | None = None,
    seed: int = 0,
    say: Callable[[str], None] = lambda message: None,
) -> dict[str, Any]:
    """Return Fréchet distance, precision and recall of `n` samples, as plain values with the lines that print them.

    The real images are the first 10,000 for training, as the model sees them: binarized where the run binarizes. The
    feature network is chosen by the data set itself, or Inception-v3 with the weights in the file `inception`.
    """
    if n < 20:
        raise ValueError(f"A score needs at least 20 samples. Got {n}.")
    if run.config.run.threads is not None:
        torch.set_num_threads(run.config.run.threads)
    data, section = run.data(), run.config.data
    whole = load(section.name, data_dir=section.data_dir, **section.options)
    say("getting the feature network (for gray images with labels it is trained here, the first time)")
    network = choose_network(whole, inception=inception, folder=run.folder.parent / NETWORKS)
    generator = torch.Generator().manual_seed(seed)
    real = data.train[:_N_REAL]
    if data.transform is not None:
        real = data.transform(real, generator=generator)
    real = run.restored(real.float())
    say(f"{n:,} samples and {len(real):,} real images on {network.name}")
    samples = draw(run, n, n_steps=n_steps, seed=seed)
    score = generation_score(real, samples, network, generator=generator)
    return {
        "frechet": dataclasses.asdict(score.frechet) | {"text": str(score.frechet)},
        "shares": dataclasses.asdict(score.shares) | {"text": str(score.shares)},
        "n_steps": n_steps,
    }
