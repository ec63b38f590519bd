"""Deep belief networks by configuration: a stack of machines, what they learn from, what each depth knows."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from harmonium.data import Data
from harmonium.learning import JointCD, LayerFit, MeanFieldCD, Monitor, initialize_layers, layer_rates
from harmonium.learning.monitors.layer_turns import LayerTurns, network
from harmonium.models import DBN
from harmonium.models.dbn_spec import stack_of_spec, units_with_levels
from harmonium.runs.config import Config
from harmonium.runs.prepare import SPLITS, Prepared
from harmonium.runs.task import Task
from harmonium.units import Bernoulli

if TYPE_CHECKING:
    from harmonium.runs.run import Run

UNUSED_DEEP = (
    "joint",
    "data.binarize",
    "data.standardize",
    "model.n_hidden",
    "model.hidden",
    "model.options",
    "training.optimizer",
    "training.momentum",
    "training.sparsity_target",
    "training.sparsity_rate",
    "training.track_likelihood",
    "run.ais_chains",
    "run.ais_betas",
)
"""Settings of other models that a deep belief network does not read."""

NO_LIKELIHOOD = "none: that of a deep belief network is a sum over all of its hidden layers, which is not done here"
"""What is said where other models have their nats."""

_SMALL, _FIRST_CHANNELS = 14, 16  # images are halved while they are at least so wide
_N_START, _N_SCORED, _N_ROWS = 512, 10_000, 500


def deep_values(data: Data, config: Config) -> Prepared:
    """Return images with levels 0..N, stored as they are where these are their own; restored they are on [0, 1]."""
    if data.kind not in ("levels", "binary") or data.levels is None or len(data.shape) != 3:
        raise ValueError(
            f"A deep belief network is for images with levels, or 0 and 1. {data.name} holds {data.kind} data of shape "
            f"{tuple(data.shape)}. Choose --model rbm, whose visible units follow the data."
        )
    levels = config.deep.levels or data.levels
    if levels != data.levels:
        factor = levels / data.levels
        parts: dict[str, Any] = {s: x.float() * factor for s in SPLITS if (x := getattr(data, s)) is not None}
        note = f"carried to 0..{levels}; {data.note}"
        data = dataclasses.replace(data, kind="levels", levels=levels, note=note, **parts)
    return Prepared(data, torch.tensor(0.0), torch.tensor(1.0 / levels))


def default_spec(shape: tuple[int, ...]) -> str:
    """Return a network for images of this shape: each convolution halves them, while that leaves at least 7 pixels.

    >>> default_spec((1, 28, 28))
    'conv 16 4x4/2, conv 32 4x4/2, dense 200, dense 500'
    >>> default_spec((1, 8, 8))
    'dense 128, dense 64, dense 128'
    """
    _, height, width = shape
    layers: list[str] = []
    while min(height, width) >= _SMALL and height % 2 == 0 and width % 2 == 0:
        layers.append(f"conv {_FIRST_CHANNELS * 2 ** len(layers)} 4x4/2")
        height, width = height // 2, width // 2
    return ", ".join([*layers, "dense 200, dense 500"] if layers else ["dense 128, dense 64, dense 128"])


def build_dbn(config: Config, data: Data, *, generator: torch.Generator) -> nn.Module:
    """Return the network of the configuration at the start of its learning.

    All units have the levels of the data but those of the top machine, which are binary: with 255 levels a draw hardly
    differs from its mean, and all chains of the top would end at one image.
    """
    spec = config.deep.spec or default_spec(data.shape)
    *lower, top = spec.split(",")
    if top.split()[:1] == ["conv"]:
        raise ValueError(f"The last layer of the spec must be dense: samples are drawn there. Got {spec!r}.")
    make = units_with_levels(data.levels or 1)
    visible = make(math.prod(data.shape)) if spec.split()[:1] == ["dense"] else make(*data.shape)
    stack = []
    if lower:
        stack = stack_of_spec(",".join(lower), visible, make, generator=generator)
        visible = Bernoulli(math.prod(DBN(stack).shapes[-1]))
    dbn = DBN([*stack, *stack_of_spec(top, visible, Bernoulli, generator=generator)])
    initialize_layers(dbn, data.train[:_N_START].reshape(-1, *dbn.visible.shape), spread=config.deep.spread)
    return dbn


def deep_optimizer(config: Config, model: nn.Module) -> torch.optim.Optimizer:
    """Return Adam with a rate for each layer from `learning_rate` (see `layer_rates`)."""
    return torch.optim.Adam(layer_rates(network(model), config.training.learning_rate))


def deep_task(config: Config, prepared: Prepared, model: nn.Module, *, generator: torch.Generator) -> Task:
    """Return the summed contrastive free energies on the training images; the top machine learns by its chains.

    With `[deep] order` "top-last" the machines below the top learn at once for half of the epochs, then the top does on
    what they have settled at; "joint" lets all learn at once, "greedy" one after another.
    """
    from harmonium.runs.build import OBJECTIVES  # it needs this module

    dbn, section = network(model), config.training
    chains = OBJECTIVES[section.objective](section)
    objective = JointCD(members=[*(MeanFieldCD() for _ in range(len(dbn) - 1)), chains])
    below, every = tuple(range(len(dbn) - 1)), tuple((i,) for i in range(len(dbn)))
    orders = {"joint": ((*below, len(below)),), "top-last": (below, every[-1]) if below else every, "greedy": every}
    groups = orders[config.deep.order]
    if 0 < section.epochs < len(groups):
        raise ValueError(
            f"`epochs` must be at least {len(groups)}, one for each turn of order {config.deep.order!r}. "
            f'Got {section.epochs}. Give more, or use order "joint".'
        )
    monitors: list[Monitor] = [LayerFit(), *([LayerTurns(groups, config.deep.spread)] if len(groups) > 1 else [])]
    return Task(prepared.rows("train", dbn.visible.shape), objective, monitors, turns=len(groups))


def deep_scores(run: Run, *, n_chains: int | None = None, n_betas: int | None = None) -> dict[str, Any]:
    """Return the share of each split that reconstructions from each depth leave unexplained; there is no likelihood.

    The first 10,000 images of a split are taken; v̄ is the mean of all training images.
    """
    dbn, data = network(run.model()), run.data()
    scores: dict[str, Any] = {"data": str(data), "note": data.note, "likelihood": NO_LIKELIHOOD, "unexplained": {}}
    total = torch.stack([rows.double().sum(0) for rows in data.train.split(_N_ROWS)]).sum(0)
    mean = (total / len(data.train)).reshape(dbn.visible.shape)
    for split in SPLITS:
        x = run.prepared.rows(split, dbn.visible.shape)
        if x is not None:
            x = x[:_N_SCORED]
            scores["unexplained"][split] = {"value": unexplained(dbn, x, mean), "n": len(x)}
    return scores


@torch.no_grad()
def unexplained(dbn: DBN, x: Tensor, mean: Tensor) -> list[float]:
    """Return `Σ(v - v')² / Σ(v - v̄)²` for v' from depth 1, 2, …: 0 is perfect, 1 no better than the mean image v̄.

    >>> dbn = DBN.from_spec("dense 4, dense 2", shape=(6,))
    >>> len(unexplained(dbn, torch.eye(6), torch.full((6,), 0.5)))
    2
    """
    errors, total = [0.0] * len(dbn), 0.0
    for rows in x.split(_N_ROWS):
        v = rows.to(dbn[0].weight)
        total += (v.cpu() - mean).square().sum().item()
        for i in range(len(dbn)):
            errors[i] += (dbn.reconstruct(v, i + 1) - v).square().sum().item()
    return [error / max(total, 1e-12) for error in errors]
