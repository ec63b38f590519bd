"""From a configuration to data, a model and its training, at their start."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from harmonium.data import Data
from harmonium.learning import Callback, Training
from harmonium.learning.transforms import (
    ClipGradient,
    L1Decay,
    NormLimit,
    ParameterAverage,
    Sparsity,
    Transform,
    WeightDecay,
)
from harmonium.memory import check_room
from harmonium.models import BoltzmannMachine
from harmonium.runs.kinds import KINDS
from harmonium.runs.outline import check_same, digest_of_path, digest_of_values
from harmonium.runs.settings import Config, TrainingSection
from harmonium.runs.values import Prepared, load_data


def prepare(config: Config, sha256: str | None = None) -> Prepared:
    """Load the data and make the values that the model wants, or say what must be chosen first.

    Data with another fingerprint than `sha256`, where that is known, are refused: a file before it is read.
    """
    found = digest_of_path(config.data)
    check_same(config.data.name, found, sha256)
    kind, data = KINDS[config.model.kind], load_data(config.data)
    if data.kind not in kind.takes:
        able = [name for name, other in KINDS.items() if data.kind in other.takes]
        raise ValueError(
            f"{data.name} holds {data.kind} data, which model {kind.name!r} does not take. Choose --model "
            f"{' or '.join(able)}, or other data."
        )
    if found is None:
        found = digest_of_values(data)
        check_same(config.data.name, found, sha256)
    return dataclasses.replace(kind.values(config, data), sha256=found)


def build_model(config: Config, data: Data, *, generator: torch.Generator) -> nn.Module:
    """Return the model of the configuration, untrained."""
    device = checked_device(config.run.own_device)
    return KINDS[config.model.kind].build(config, data, generator=generator).to(device)


def checked_device(name: str) -> torch.device:
    """Return the device, or say that it cannot be used here."""
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"The device {str(device)!r} cannot be used here: there are {torch.cuda.device_count()} GPUs. Use --device "
            "cpu, or start at most one worker a GPU (--nproc-per-node)."
        )
    return device


def check_memory(config: Config, data: Data, model: nn.Module) -> None:
    """Raise unless the numbers that training holds at once find room, by a rough count.

    Eight for each parameter: its gradient, two moments, an average, the state to go back to, and copies while a
    checkpoint is written. Eight for each unit in a row of the batch or a chain.
    """
    section = config.training
    n_parameters = sum(p.numel() for p in model.parameters())
    n_rows = min(section.batch_size, len(data.train)) + section.n_chains + config.run.ais_chains
    layers = [model.layer(name).shape for name in model.units] if isinstance(model, BoltzmannMachine) else []
    n_units = sum(map(math.prod, layers)) or math.prod(data.shape)
    check_room(
        32 * (n_parameters + n_rows * n_units),
        f"A model of {n_parameters:,} parameters with {n_rows:,} rows and chains of {n_units:,} units",
    )


def build_transforms(section: TrainingSection, centering: Callable[[], Transform]) -> list[Transform]:
    """Return what is done to gradients and parameters, in order."""
    table: list[tuple[float, Callable[[], Transform]]] = [
        (section.centering, centering),
        (section.sparsity_rate, lambda: Sparsity(section.sparsity_target, section.sparsity_rate)),
        (section.weight_decay, lambda: WeightDecay(section.weight_decay)),
        (section.l1_decay, lambda: L1Decay(section.l1_decay)),
        (section.clip, lambda: ClipGradient(section.clip)),
        (section.norm_limit, lambda: NormLimit(section.norm_limit)),
        (section.average, lambda: ParameterAverage(section.average)),
    ]
    return [make() for wanted, make in table if wanted]


def build_schedule(section: TrainingSection, optimizer: torch.optim.Optimizer, turns: int = 1) -> LambdaLR | None:
    """Return the schedule of the learning rate, from `learning_rate` towards `final_learning_rate` over the epochs.

    With several turns it starts anew at each, and so it does at the `restarts` of a run that was made longer.
    """
    if section.schedule == "constant":
        return None
    final = section.final_learning_rate / section.learning_rate

    ends = [0, *section.restarts, section.epochs]

    def factor(epoch: int) -> float:
        start = max(end for end in ends[:-1] if end <= epoch)
        n = max(1, ends[ends.index(start) + 1] - start)
        share = min(1.0, (epoch - start) / n) if turns == 1 else (epoch - start) * turns % n / n
        if section.schedule == "cosine":
            share = (1 - math.cos(math.pi * share)) / 2
        return 1 + (final - 1) * share

    return LambdaLR(optimizer, factor)


def build_training(config: Config, prepared: Prepared, callbacks: Sequence[Callback] = ()) -> Training:
    """Return the training of a configuration, at its start."""
    kind, section = KINDS[config.model.kind], config.training
    generator = torch.Generator().manual_seed(config.run.seed)
    model = build_model(config, prepared.data, generator=generator)
    check_memory(config, prepared.data, model)
    optimizer = kind.optimizer(config, model)
    task = kind.task(config, prepared, model, generator=generator)
    if own := list(task.objective.parameters()):
        optimizer.add_param_group({"params": own})
    return Training(
        model,
        task.source,
        task.objective,
        optimizer=optimizer,
        epochs=section.epochs,
        batch_size=section.batch_size,
        validation=task.validation,
        transform=prepared.data.transform,
        transforms=build_transforms(section, kind.centering),
        schedule=build_schedule(section, optimizer, task.turns),
        monitors=task.monitors,
        callbacks=callbacks,
        generator=generator,
    )
