"""From a trained stack of machines to a network that learns classes from there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from harmonium.learning.state import snapshot
from harmonium.models import DBM, DBN, RBM, ClassRBM
from harmonium.runs.build import build_training, prepare
from harmonium.runs.class_panels import class_labels
from harmonium.runs.config import merge, resolve
from harmonium.runs.kinds.network import ACTIVATIONS
from harmonium.runs.run import Run, next_folder, settled


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
    same = {"data": data if "name" not in given.get("data", {}) else {}, "model": {"kind": "network"}}
    first = resolve(same, given)
    n_classes = int(class_labels(prepare(first).data, "network").max()) + 1
    network = model.to_network(n_classes)
    own = {"widths": widths(network), "activation": activation(network), "pretrained": str(run.folder.resolve())}
    config = settled(resolve(same, merge(given, {"network": own})))
    made = Run.create(next_folder(root, config) if folder is None else folder, config, overwrite=overwrite)
    training = build_training(config, made.prepared)
    training.model.load_state_dict(network.state_dict())
    made.checkpoints.save(*snapshot(training))
    return made


def widths(network: nn.Sequential) -> str:
    """Return the widths of the hidden layers of a dense network, as its settings name them."""
    linear = [module for module in network if not isinstance(module, tuple(ACTIVATIONS.values()))]
    if not all(isinstance(module, nn.Linear) for module in linear):
        raise ValueError(
            "Only dense layers can be tuned from the command line. In Python: fit(model.to_network(n), (x, y))."
        )
    return ", ".join(str(module.out_features) for module in linear[:-1])


def activation(network: nn.Sequential) -> str:
    """Return the name of the one activation of a network."""
    kinds = {type(module) for module in network} - {nn.Linear}
    names = [name for name, kind in ACTIVATIONS.items() if {kind} == kinds]
    if not names:
        raise ValueError(
            f"A network from the command line has one activation of {', '.join(ACTIVATIONS)}. Got {kinds}."
        )
    return names[0]
