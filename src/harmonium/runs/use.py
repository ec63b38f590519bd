"""Use a trained run: draw from it, and score it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from harmonium.models import RBM
from harmonium.runs.run import Run


def draw(run: Run, n: int, *, n_steps: int = 1000, y: int | None = None, seed: int = 0) -> Tensor:
    """Return the ends of `n` chains as long as told, of class `y` if given, as images or rows of the data.

    The chains start and move as those of the run's training did, where its kind of model says how.
    """
    generator = torch.Generator().manual_seed(seed)
    return run.restored(run.kind.draw(run.trained(rows=False), n, n_steps=n_steps, y=y, generator=generator))


def draw_means(run: Run, n: int, *, n_steps: int = 1000, seed: int = 0) -> Tensor:
    """Return what an RBM expects of the pixels at the ends of `n` chains, `E[v | E[h | v]]`: smoother than draws."""
    trained, generator = run.trained(), torch.Generator().manual_seed(seed)
    if not isinstance(trained.model, RBM):
        raise TypeError(f"Only an RBM has such means. Got {run.config.model.kind}.")
    drawn = run.kind.draw(trained, n, n_steps=n_steps, generator=generator)
    with torch.no_grad():
        return run.restored(trained.model.reconstruct(drawn))


def evaluate(run: Run, *, n_chains: int | None = None, n_betas: int | None = None) -> dict[str, Any]:
    """Return the scores of a run, as its kind of model has them.

    log Z is exact where it can be counted, else estimated by `n_chains` annealed chains over `n_betas` temperatures, as
    the configuration says unless given.
    """
    if run.config.run.threads is not None:
        torch.set_num_threads(run.config.run.threads)
    return run.kind.scores(run.trained(), n_chains=n_chains, n_betas=n_betas)
