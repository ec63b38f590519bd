"""From a configuration to a model, an objective and a training run. New kinds are registered in the tables here."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from harmonium.data import Column, Data
from harmonium.draws import draw_normal
from harmonium.evaluation.likelihood_track import LikelihoodTrack
from harmonium.learning import (
    CD,
    PCD,
    Callback,
    Centering,
    ClipGradient,
    EachLayer,
    Monitor,
    NormLimit,
    ParameterAverage,
    Sparsity,
    TemperedPCD,
    Training,
    Transform,
    WeightDecay,
    default_monitors,
    initialize,
)
from harmonium.models import DBN, RBM, BoltzmannMachine
from harmonium.runs.config import Config, TrainingSection
from harmonium.runs.deep import UNUSED_DEEP, build_dbn, deep_optimizer, deep_scores, deep_task, deep_values
from harmonium.runs.joint import UNUSED, build_jem, first_points, joint_task, joint_values, langevin
from harmonium.runs.joint_scores import joint_scores
from harmonium.runs.prepare import Prepared, complete
from harmonium.runs.task import Task
from harmonium.samplers import Sampler
from harmonium.units import (
    Bernoulli,
    Binomial,
    Categorical,
    Gaussian,
    Mixed,
    NReLU,
    Poisson,
    Spin,
    Units,
)

Builder = Callable[..., nn.Module]
"""`builder(config, data, *, generator)` returns a model, untrained."""


@dataclass(frozen=True)
class Kind:
    """A kind of model: what builds it, and whether it wants real values (levels are then scaled and standardized).

    Where a kind has ways of its own, they are here; None stands for those of a Boltzmann machine. `values(data,
    config)` makes what the model sees, `task(config, prepared, model, generator=…)` what it learns from,
    `optimizer(config, model)` what moves it, `sampler(config)` how its chains run and `start(config, data, n, y,
    generator=…)` where from. `evaluate(run, n_chains=…, n_betas=…)` returns what `evaluation.json` holds. `unused` are
    the settings that the kind does not read.
    """

    build: Builder
    real: bool = False
    evaluate: Callable[..., dict[str, Any]] | None = None
    values: Callable[[Data, Config], Prepared] | None = None
    task: Callable[..., Task] | None = None
    optimizer: Callable[[Config, nn.Module], torch.optim.Optimizer] | None = None
    sampler: Callable[[Config], Sampler] | None = None
    start: Callable[..., Tensor | None] | None = None
    unused: tuple[str, ...] = ("joint", "deep")


def hidden_units(config: Config) -> Units:
    """Return the hidden layer that the configuration asks for."""
    return HIDDEN[config.model.hidden](config.model.n_hidden, config.model.options)


HIDDEN: dict[str, Callable[[int, dict[str, Any]], Units]] = {
    "bernoulli": lambda n, _options: Bernoulli(n),
    "spin": lambda n, _options: Spin(n),
    "nrelu": lambda n, _options: NReLU(n),
    "gaussian": lambda n, _options: Gaussian(n),
    "binomial": lambda n, options: Binomial(n, levels=int(options.get("levels", 10))),
    "categorical": lambda n, options: Categorical(n, int(options.get("classes", 10))),
}
"""Hidden units by their name, `(n_hidden, options) -> units`."""


_PIXEL_SIGMA = 0.05  # a pixel that never varies would get σ = 0.001, and x/σ² a million times what others put on h


def visible_units(data: Data) -> Units:
    """Return the visible units that fit the values: 0/1 Bernoulli, real Gaussian, counts Poisson, a table a mixture."""
    n = math.prod(data.shape)
    if data.kind == "table":
        return table_units(data.columns)
    if data.kind == "real":
        return Gaussian(n, floor=_PIXEL_SIGMA) if len(data.shape) > 1 else Gaussian(n)
    return {"binary": Bernoulli, "counts": Poisson}[data.kind](n)


def table_units(columns: Sequence[Column]) -> Units:
    """Return units for the columns of a table, side by side; neighbors of one type share a layer."""
    parts: list[Units] = []
    for type_, group in itertools.groupby(columns, key=lambda column: column.type):
        members = list(group)
        if type_ == "categorical":
            parts += [Categorical(1, column.width) for column in members]
        else:
            parts.append((Bernoulli if type_ == "binary" else Gaussian)(len(members)))
    return Mixed(*parts)


def build_rbm(config: Config, data: Data, *, generator: torch.Generator) -> nn.Module:
    """Return an RBM whose visible units fit the data, its biases fitted to the training split."""
    if data.kind == "real" and config.data.binarize == "scale":
        visible: Units = Bernoulli(math.prod(data.shape))
    else:
        visible = visible_units(data)
    rbm = RBM(visible, hidden_units(config), generator=generator)
    rows = data.train[:10_000].reshape(-1, *visible.shape)
    initialize(rbm, rows if data.transform is None else data.transform(rows, generator=generator))
    if "weight_scale" in config.model.options:
        spread_components(rbm, float(config.model.options["weight_scale"]), generator=generator)
    return rbm


@torch.no_grad()
def spread_components(rbm: RBM, scale: float, *, generator: torch.Generator | None = None) -> None:
    """Start a Gaussian RBM as a mixture whose components lie apart: `W_ij ~ scale · σ_i N(0, 1)`.

    Given z, `x ~ N(b + Wz, (scale σ)²)`, and `c_j = -(bᵀW_j + ½‖W_j‖²)/σ²` makes one active unit as probable as none.
    """
    if not isinstance(rbm.visible, Gaussian):
        raise ValueError(f"`weight_scale` is for Gaussian visible units. Got {rbm.visible!r}. Leave it out.")
    visible = rbm.visible
    spread = visible.sigma.clone().flatten()
    rbm.weight.copy_(scale * spread[:, None] * draw_normal(rbm.weight, generator=generator))
    visible.log_sigma.add_(math.log(scale))
    bias, variance = rbm.visible_bias.flatten(), visible.sigma.square().flatten()
    rbm.hidden_bias.copy_(-(((bias[:, None] + rbm.weight / 2) * rbm.weight) / variance[:, None]).sum(0))


MODELS: dict[str, Kind] = {
    "rbm": Kind(build_rbm),
    "gaussian-rbm": Kind(build_rbm, real=True),
    "jem": Kind(
        build_jem,
        evaluate=joint_scores,
        values=lambda data, config: joint_values(data, config.data.standardize),
        task=joint_task,
        sampler=langevin,
        start=first_points,
        unused=(*UNUSED, "deep"),
    ),
    "dbn": Kind(
        build_dbn,
        evaluate=deep_scores,
        values=deep_values,
        task=deep_task,
        optimizer=deep_optimizer,
        unused=UNUSED_DEEP,
    ),
}
"""Kinds of models by their name."""

OBJECTIVES: dict[str, Callable[[TrainingSection], Any]] = {
    "cd": lambda t: CD(n_steps=t.n_steps),
    "pcd": lambda t: PCD(n_chains=t.n_chains, n_steps=t.n_steps),
    "tempered-pcd": lambda t: TemperedPCD(n_chains=t.n_chains, n_steps=t.n_steps, betas=tuple(t.betas)),
}
"""Objectives by their name."""


def build_model(config: Config, data: Data, *, generator: torch.Generator) -> nn.Module:
    """Return the model of the configuration, untrained."""
    return MODELS[config.model.kind].build(config, data, generator=generator).to(torch.device(config.run.device))


def sample_shape(model: nn.Module, data: Data) -> tuple[int, ...]:
    """Return the shape of one sample as the model takes it."""
    if isinstance(model, DBN):
        return model.visible.shape
    return model.layer(model.data_layer).shape if isinstance(model, BoltzmannMachine) else tuple(data.shape)


def build_transforms(section: TrainingSection, model: nn.Module) -> list[Transform]:
    """Return what is done to gradients and parameters, in order; of a deep network the top alone is centered."""
    deep = isinstance(model, DBN)
    table: list[tuple[float, Callable[[], Transform]]] = [
        (section.centering, lambda: EachLayer(Centering(), layers=(-1,)) if deep else Centering()),
        (section.sparsity_rate, lambda: Sparsity(section.sparsity_target, section.sparsity_rate)),
        (section.weight_decay, lambda: WeightDecay(section.weight_decay)),
        (section.clip, lambda: ClipGradient(section.clip)),
        (section.norm_limit, lambda: NormLimit(section.norm_limit)),
        (section.average, lambda: ParameterAverage(section.average)),
    ]
    return [make() for wanted, make in table if wanted]


def build_optimizer(config: Config, model: nn.Module) -> torch.optim.Optimizer:
    """Return the optimizer."""
    own, section = MODELS[config.model.kind].optimizer, config.training
    if own is not None:
        return own(config, model)
    parameters = [p for p in model.parameters() if p.requires_grad]
    if section.optimizer == "adam":
        return torch.optim.Adam(parameters, section.learning_rate, fused=True)
    return torch.optim.SGD(parameters, section.learning_rate, momentum=section.momentum, fused=True)


def build_schedule(section: TrainingSection, optimizer: torch.optim.Optimizer, turns: int = 1) -> LambdaLR | None:
    """Return the schedule of the learning rate, from `learning_rate` towards `final_learning_rate` over the epochs.

    With several turns it starts anew at each.
    """
    if section.schedule == "constant":
        return None
    final = section.final_learning_rate / section.learning_rate

    def factor(epoch: int) -> float:
        n = max(1, section.epochs)
        share = min(1.0, epoch / n) if turns == 1 else epoch * turns % n / n
        if section.schedule == "cosine":
            share = (1 - math.cos(math.pi * share)) / 2
        return 1 + (final - 1) * share

    return LambdaLR(optimizer, factor)


def build_monitors(config: Config, model: nn.Module) -> list[Monitor]:
    """Return what is watched."""
    track = config.training.track_likelihood and isinstance(model, BoltzmannMachine)
    likelihood: list[Monitor] = [LikelihoodTrack(seed=config.run.seed)] if track else []
    return [*default_monitors(), *likelihood]


def build_training(config: Config, prepared: Prepared, callbacks: Sequence[Callback] = ()) -> Training:
    """Return the training run of a configuration, at its start."""
    data, section = prepared.data, config.training
    generator = torch.Generator().manual_seed(config.run.seed)
    model = build_model(config, data, generator=generator)
    shape = sample_shape(model, data)
    optimizer = build_optimizer(config, model)
    own = MODELS[config.model.kind].task
    if own is not None:
        task = own(config, prepared, model, generator=generator)
    else:
        valid = complete(prepared.rows("valid", shape))
        objective = OBJECTIVES[section.objective](section)
        task = Task(prepared.rows("train", shape), objective, build_monitors(config, model), valid)
    return Training(
        model,
        task.source,
        task.objective,
        optimizer=optimizer,
        epochs=section.epochs,
        batch_size=section.batch_size,
        validation=task.validation,
        transform=data.transform,
        transforms=build_transforms(section, model),
        schedule=build_schedule(section, optimizer, task.turns),
        monitors=task.monitors,
        callbacks=callbacks,
        generator=generator,
    )
