"""From a trained stack of machines to a network that learns classes from there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from harmonium.learning.state import snapshot
from harmonium.models import DBM, DBN, RBM, ClassRBM
from harmonium.models.stored import describe
from harmonium.runs.build import build_training, prepare
from harmonium.runs.class_panels import class_labels
from harmonium.runs.config import merge, resolve
from harmonium.runs.kinds.network import ACTIVATIONS
from harmonium.runs.run import Run, next_folder, settled
from harmonium.runs.values import load_data
from harmonium.units import Multinary


def fine_tune(
    run: Run,
    given: Mapping[str, Any],
    *,
    folder: Path | None = None,
    root: Path = Path("runs"),
    overwrite: bool = False,
) -> Run:
    """Return a new run of kind "network" that starts at the weights of a trained one, ready to be trained.

    `given` are settings that differ: by default it learns from the data of the run, by the recipe of such networks. The
    weights are its first checkpoint, so that it can be resumed without the run that it came from.
    """
    model = run.model()
    if not isinstance(model, RBM | ClassRBM | DBN | DBM):
        raise ValueError(f"A {run.config.model.kind} cannot become a network. Use an rbm, class-rbm, dbn or dbm.")
    data = run.config.data.model_dump(exclude_none=True, exclude={"standardize"})
    if isinstance(model, DBN) and load_data(run.config.data).kind == "levels":
        data["binarize"] = "scale"
    same = {"data": data if "name" not in given.get("data", {}) else {}, "model": {"kind": "network"}}
    first = resolve(same, given)
    n_classes = int(class_labels(prepare(first).data, "network").max()) + 1
    network = model.to_network(n_classes)
    with torch.no_grad():
        first_layer(network).weight.mul_(levels_of(model))
    own = {"pretrained": str(run.folder.resolve()), **made_of(model, network)}
    config = settled(resolve(same, merge(given, {"network": own})))
    made = Run.create(next_folder(root, config) if folder is None else folder, config, overwrite=overwrite)
    training = build_training(config, made.prepared)
    training.model.load_state_dict(network.state_dict())
    made.checkpoints.save(*snapshot(training))
    return made


def levels_of(model: RBM | ClassRBM | DBN | DBM) -> float:
    """Return N where the data have levels 0..N for the model: for its network, whose first weights take N up, 0..1."""
    units = model.visible if isinstance(model, DBN) else model.layer(model.data_layer)
    return float(units.levels) if isinstance(units, Multinary) else 1.0


def first_layer(network: nn.Sequential) -> nn.Linear | nn.Conv2d:
    """Return the lowest layer of a network that has weights."""
    return next(module for module in network if isinstance(module, nn.Linear | nn.Conv2d))


def made_of(model: RBM | ClassRBM | DBN | DBM, network: nn.Sequential) -> dict[str, str]:
    """Return the settings that make the network again: widths and the activation of a plain one, else the stack."""
    layers = [module for module in network if isinstance(module, nn.Linear | nn.Conv2d)]
    kinds = {type(module) for module in network if not isinstance(module, nn.Linear)}
    names = [name for name, kind in ACTIVATIONS.items() if kinds == {kind}]
    widths = [layer.out_channels if isinstance(layer, nn.Conv2d) else layer.out_features for layer in layers[:-1]]
    made = {"widths": ", ".join(map(str, widths))}
    return made | ({"activation": names[0]} if names else {"stack": json.dumps(describe(model))})
