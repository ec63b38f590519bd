"""Samples of a trained run, on the scale of its data."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.models import DBN, JEM
from harmonium.runs.run import Run
from harmonium.samplers import sample
from harmonium.types import EnergyModel


def draw(run: Run, n: int, *, n_steps: int = 1000, y: int | None = None, seed: int = 0) -> Tensor:
    """Return the ends of `n` chains as long as told, of class `y` if given, as images or rows of the data.

    The chains start and move as those of the run's training did, where its kind of model says how. Those of a deep
    belief network run in its top machine; the images are the means below their ends.
    """
    model: object = run.model()
    generator = torch.Generator().manual_seed(seed)
    labels = None
    if y is not None:
        if not isinstance(model, JEM):
            raise ValueError(f"A {run.config.model.kind} has no classes to draw from. Leave --class out.")
        if model.n_classes is not None and y >= model.n_classes:
            raise ValueError(f"The classes of {run.data().name} are 0..{model.n_classes - 1}. Got {y}.")
        model, labels = model.given_class(y), torch.full((n,), y)
    if isinstance(model, DBN):
        return run.restored(model.sample(n, n_steps=n_steps, generator=generator))
    if not isinstance(model, EnergyModel):
        raise ValueError(f"A {run.config.model.kind} cannot be sampled: it has no free energy.")
    start = run.start(n, labels, generator=generator)
    drawn = sample(model, n, sampler=run.sampler(), n_steps=n_steps, start=start, generator=generator)
    return run.restored(drawn)
