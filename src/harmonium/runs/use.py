"""Use a trained run: draw from it, and score it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from harmonium.memory import check_room
from harmonium.models import RBM, BoltzmannMachine, ScaleMixture
from harmonium.partition import METHODS, log_z
from harmonium.partition.ais import Progress
from harmonium.runs.atomic import write_atomic
from harmonium.runs.folder import finite
from harmonium.runs.run import Run
from harmonium.runs.scores import at_machine
from harmonium.runs.values import complete
from harmonium.runs.words import as_dict
from harmonium.types import EnergyModel, Estimate

LOG_Z_METHODS = tuple(METHODS)
"""The ways to log Z by name."""


def draw(run: Run, n: int, *, n_steps: int = 1000, y: int | None = None, seed: int = 0) -> Tensor:
    """Return the ends of `n` chains as long as told, of class `y` if given, as images or rows of the data.

    The chains start and move as those of the run's training did, where its kind of model says how.
    """
    check_room(32 * n * math.prod(run.outline.data.shape), f"{n:,} samples")
    generator = torch.Generator().manual_seed(seed)
    return run.restored(run.kind.draw(run.trained(rows=False), n, n_steps=n_steps, y=y, generator=generator))


def draw_means(run: Run, n: int, *, n_steps: int = 1000, seed: int = 0) -> Tensor:
    """Return what an RBM expects of the pixels at the ends of `n` chains, `E[v | E[h | v]]`: smoother than draws."""
    trained, generator = run.trained(rows=False), torch.Generator().manual_seed(seed)
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


def estimate_log_z(
    run: Run,
    method: str | None = None,
    *,
    n_chains: int | None = None,
    n_betas: int | None = None,
    seed: int = 0,
    on_beta: Progress | None = None,
) -> Estimate:
    """Return log Z of a run's model by one of `LOG_Z_METHODS`; as the configuration says unless told.

    Chains and temperatures are as the configuration says unless given. Boltzmann machines are annealed from a reference
    that is fitted to the training data, and some of the chains start there.
    """
    trained, section = run.trained(), run.config.run
    if section.threads is not None:
        torch.set_num_threads(section.threads)
    if not isinstance(trained.model, EnergyModel):
        raise ValueError(f"A model of kind {run.config.model.kind!r} has no energy of its data, and so no log Z.")
    if isinstance(trained.model, BoltzmannMachine) and trained.model.given:
        raise ValueError(
            f"A model of kind {run.config.model.kind!r} has conditions ({', '.join(trained.model.given)}) and a log Z "
            "for each value of theirs, not one. Its scores average over them: harmonium evaluate RUN."
        )
    model, reference, samples = trained.model, None, None
    generator = torch.Generator().manual_seed(seed)
    if isinstance(model, BoltzmannMachine | ScaleMixture):
        rows = complete(trained.rows("train"))
        if rows is not None:
            machine, seen = at_machine(model, rows[:10_000], generator=generator)
            reference, samples = machine.layer(machine.data_layer).fitted_field(seen), seen[:64]
    return log_z(
        model,
        method=method or section.log_z,
        n_chains=n_chains or section.ais_chains,
        n_betas=n_betas or section.ais_betas,
        reference=reference,
        samples=samples,
        generator=generator,
        on_beta=on_beta,
    )


def write_log_z(run: Run, found: Mapping[str, Estimate]) -> None:
    """Write estimates of log Z by their methods to `log_z.json`."""
    plain = {kind: as_dict(estimate) for kind, estimate in found.items()}
    write_atomic(run.folder / "log_z.json", json.dumps(finite(plain), indent=2).encode() + b"\n")
