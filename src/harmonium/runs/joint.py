"""Joint energy models by configuration: a network, how its chains run, what they learn from."""

from __future__ import annotations

import dataclasses
import inspect
import math
from typing import Any

import torch
from torch import Tensor, nn

from harmonium.data import Data
from harmonium.draws import draw_permutation
from harmonium.laws import ClassGaussians, cloud_starts
from harmonium.learning import Guard, JointCurves, JointLikelihood, ReplayBuffer
from harmonium.models import JEM
from harmonium.runs.config import Config
from harmonium.runs.networks import NETWORKS
from harmonium.runs.prepare import SPLITS, Prepared, real_values, scaled
from harmonium.runs.task import Task
from harmonium.samplers import Langevin

UNUSED = (
    "data.binarize",
    "model.n_hidden",
    "model.hidden",
    "training.objective",
    "training.betas",
    "training.centering",
    "training.sparsity_target",
    "training.sparsity_rate",
    "training.track_likelihood",
)
"""Settings of Boltzmann machines that a joint model does not read."""

_BASE_STD = 3.0  # of the base measure where the data are not images: in units of their spread
_STARTS_FLOOR = 0.1


def joint_values(data: Data, standardized: bool) -> Prepared:
    """Return images on [-1, 1], as the chapter has them, and other real values standardized if wanted."""
    if data.train_labels is None:
        raise ValueError(f"A joint model learns classes, and {data.name} has no labels. Choose --model gaussian-rbm.")
    if data.kind not in ("levels", "binary"):
        return real_values(data, standardized)
    unit = scaled(data).data
    parts: dict[str, Any] = {split: 2 * x - 1 for split in SPLITS if (x := getattr(unit, split)) is not None}
    note = f"scaled to [-1, 1]; {data.note}" if data.kind == "levels" else f"-1 and 1; {data.note}"
    half = torch.tensor(0.5)
    return Prepared(dataclasses.replace(unit, note=note, **parts), half, half)


def build_jem(config: Config, data: Data, *, generator: torch.Generator) -> nn.Module:
    """Return the joint model of a network whose outputs are the classes of the data.

    Chains of images start in the box [-1, 1]; other data get a Gaussian base measure, and a box as wide as they are.
    """
    if data.train_labels is None:
        raise ValueError(f"{data.name} has no labels, and a joint model learns classes. Choose other data.")
    n_classes = int(data.train_labels.max()) + 1
    network, options = NETWORKS[config.joint.network], dict(config.model.options)
    known = [name for name in inspect.signature(network).parameters if name not in ("shape", "n_outputs", "generator")]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise ValueError(
            f"A {config.joint.network} network does not take {', '.join(unknown)}. It takes {', '.join(known)}."
        )
    net = network(data.shape, n_classes, generator=generator, **options)
    if len(data.shape) > 1:
        return JEM(net)
    reach = float(math.ceil(data.train.abs().max().item()))
    return JEM(net, box=(-reach, reach), base_std=_BASE_STD)


def langevin(config: Config) -> Langevin:
    """Return the steps of the chains: those of eq. 6.28 of Tomczak's chapter, clipped if `limit` is not 0."""
    section = config.joint
    return Langevin(section.step_size, section.noise, section.limit or None)


def class_gaussians(config: Config, data: Data) -> ClassGaussians | None:
    """Return where chains start: a Gaussian for each class (one for all where few labels are known), or None."""
    if config.joint.starts == "uniform" or data.train_labels is None:
        return None
    groups = torch.zeros_like(data.train_labels) if config.joint.labels else data.train_labels
    return ClassGaussians.fitted(data.train.to(config.run.device), groups, floor=_STARTS_FLOOR)


def training_starts(config: Config, data: Data) -> ClassGaussians | None:
    """Return where new chains of the buffer start: as `class_gaussians`, or of all kinds of `cloud_starts`."""
    if config.joint.starts != "clouds":
        return class_gaussians(config, data)
    if config.joint.class_chains:
        raise ValueError('`starts = "clouds"` have no class. Leave `class_chains` out, or use "class-gaussians".')
    return cloud_starts(data.train.to(config.run.device))


def first_points(
    config: Config, data: Data, n: int, y: Tensor | None = None, *, generator: torch.Generator
) -> Tensor | None:
    """Return where `n` chains start, of classes `y` if given; None leaves it to the model."""
    laws = class_gaussians(config, data)
    if laws is None:
        return None
    anything = torch.full((n,), -1, device=laws.mean.device)
    return laws.initial(anything if y is None or config.joint.labels else y.to(anything), generator=generator)


def known_labels(labels: Tensor, n: int, *, generator: torch.Generator) -> Tensor:
    """Return the numbers of `n` rows, as many of each class, drawn at random.

    >>> from harmonium.runs.joint import known_labels
    >>> len(known_labels(torch.arange(100) % 10, 20, generator=torch.Generator()))
    20
    """
    classes = labels.unique().tolist()
    if n % len(classes) or min((labels == y).sum().item() for y in classes) < n // len(classes):
        raise ValueError(
            f"`labels` must be a multiple of the {len(classes)} classes, as many of each, and no more than there are. "
            f"Got {n}. Try {10 * len(classes)}."
        )
    order = draw_permutation(len(labels), generator=generator)
    return torch.cat([order[labels[order] == y][: n // len(classes)] for y in classes])


def joint_task(config: Config, prepared: Prepared, model: nn.Module, *, generator: torch.Generator) -> Task:
    """Return the objective of eqs. 6.26 to 6.31 on the training data, with its curves and a guard."""
    section, training, data = config.joint, config.training, prepared.data
    if data.train_labels is None or not isinstance(model, JEM):
        raise ValueError(f"{data.name} has no labels, and a joint model learns classes. Choose other data.")
    x, y, labeled = data.train, data.train_labels, None
    if section.labels:
        known = known_labels(y, section.labels, generator=generator)
        labeled = (x[known].to(config.run.device), y[known].to(config.run.device))
        y = torch.full_like(y, -1)
    buffer = None
    if section.buffer and not section.baseline:
        n_classes = model.n_classes if section.class_chains else None
        buffer = ReplayBuffer(training.n_chains, section.renewal, n_classes, training_starts(config, data))
    objective = JointLikelihood(
        n_steps=training.n_steps,
        sampler=langevin(config),
        buffer=buffer,
        box=model.box if section.clamp else None,
        classification_weight=section.classification_weight,
        generation_weight=0.0 if section.baseline else section.generation_weight,
        input_noise=section.input_noise,
        energy_penalty=section.energy_penalty,
        labeled=labeled,
        n_labeled=min(section.n_labeled, section.labels or section.n_labeled),
    )
    valid = None
    if data.valid is not None and data.valid_labels is not None:
        valid = (data.valid.to(config.run.device), data.valid_labels.to(config.run.device))
    return Task((x, y), objective, [JointCurves(valid), Guard(n_tries=section.n_tries)])
