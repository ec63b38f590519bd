"""Train a model on data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from harmonium.learning.batches import Batches, Source
from harmonium.learning.callback import Callback
from harmonium.learning.history import History
from harmonium.learning.monitors import JointCurves, Monitor, default_monitors
from harmonium.learning.objectives import (
    CD,
    CrossEntropy,
    Hybrid,
    JointLikelihood,
    LeaveOneOut,
    Objective,
    ScaledContrast,
    SummedLayers,
)
from harmonium.learning.objectives.base import require_objective
from harmonium.learning.progress import Progress
from harmonium.learning.sparse_rows import SparseRows
from harmonium.learning.starts import initialize, initialize_layers, is_mixture, layer_rates, spread_components
from harmonium.learning.training import BatchTransform, Training
from harmonium.learning.transforms import Transform
from harmonium.models import DBN, RBM, BoltzmannMachine, ClassRBM, RatingRBM, ScaleMixture
from harmonium.types import Values, check_generator

N_UPDATES = 2000
"""How many updates the default number of epochs makes, about."""

_RATE, _N_START = 0.01, 512


def fit(
    model: nn.Module,
    data: Source,
    objective: Objective | None = None,
    *,
    optimizer: Optimizer | None = None,
    epochs: int | None = None,
    batch_size: int = 128,
    callbacks: Sequence[Callback] = (),
    generator: torch.Generator | None = None,
    validation: Values | Mapping[str, Values] | None = None,
    weights: Values | None = None,
    transform: BatchTransform | None = None,
    transforms: Sequence[Transform] = (),
    schedule: LRScheduler | None = None,
    monitors: Sequence[Monitor] | None = None,
    progress: bool = False,
) -> History:
    """Train a model by stochastic gradient descent on an objective and return its history.

    `data` is a mapping from the names of layers to their values, or the data layer alone: a tensor, a NumPy array, a
    DataFrame of numbers, a sparse matrix, a `Dataset` or a `DataLoader`. A layer that the data hold is observed, one
    that they leave out is hidden. Rows are shuffled each epoch, integers and booleans become floats batch by batch,
    class numbers one-hot vectors. NaN mark missing values: a layer that a row does not hold at all is summed out,
    single values are drawn from the model given the rest. Gray values of binary units, and others between those that
    units take, are learned from as means, and have no likelihood. `weights` has one value a row. `transform(x,
    generator=…)` changes the data layer of each batch (a fresh binarization), `transforms` gradients and parameters
    (decay, centering, averaging). `schedule` is any learning-rate schedule of PyTorch, stepped once an epoch.
    `callbacks` look on (`Callback`); `progress` shows a bar, in a terminal and in a notebook. A value that is not
    finite stops training at the last good state with `TrainingDiverged`.

    `fit(model, data)` alone learns: a machine by `CD()`, one with classes by `Hybrid()`, a deep belief network by
    `SummedLayers()`, a scale mixture by `ScaledContrast()`, a neural energy by `JointLikelihood()`, a network
    (`nn.Sequential`) by `CrossEntropy()`, with Adam at a rate of 0.01 (0.1 shared out by `layer_rates`; 1e-3 for
    networks and mixtures) and as many epochs as make about 2,000 updates. Without an optimizer of your own a machine
    starts at the data: `initialize`, and `spread_components` with a scale of ½ for an RBM of Gaussian units and,
    densely tied to them, hidden ones of finitely many states.

    Among two rules and three rates best by validation nats with 16 hidden units, two seeds (PCD with 5 steps at the
    same rate; independent units or a single Gaussian): digits −18.8 (−19.5; −25.0), bars and stripes −5.1 (−6.2;
    −11.1), Ising −4.6 (−5.1; −11.1), moons −1.7 (−1.8; −1.9), mixture −2.2 (−3.0; −3.5), pinwheel −3.2 (−3.4; −3.6).
    For the best likelihood go on with `PCD` and a falling rate.

    >>> rbm = RBM(Bernoulli(6), Bernoulli(3))
    >>> x = torch.eye(6).repeat(20, 1)
    >>> history = fit(rbm, x, CD(), optimizer=torch.optim.SGD(rbm.parameters(), 0.1), epochs=2, monitors=[])
    >>> len(history)
    2
    """
    check_generator(generator)
    objective = default_objective(model) if objective is None else objective
    require_objective(objective)
    batches = Batches(data, model)
    if epochs is None and isinstance(batch_size, int) and batch_size > 0:
        epochs = max(1, round(N_UPDATES / max(1, math.ceil(len(batches) / batch_size))))
    if optimizer is None:
        _start(model, batches, generator)
        optimizer = default_optimizer(model, objective)
    if monitors is None:
        monitors = [JointCurves()] if isinstance(objective, CrossEntropy) else default_monitors()
    training = Training(
        model,
        data,
        objective,
        optimizer=optimizer,
        epochs=0 if epochs is None else epochs,
        batch_size=batch_size,
        validation=validation,
        weights=weights,
        transform=transform,
        transforms=transforms,
        schedule=schedule,
        monitors=monitors,
        callbacks=[*callbacks, Progress()] if progress else callbacks,
        generator=generator,
    )
    return training.run()


def default_objective(model: nn.Module) -> Objective:
    """Return what a kind of model learns by unless told otherwise."""
    if isinstance(model, DBN):
        return SummedLayers()
    if isinstance(model, RatingRBM):
        return LeaveOneOut()
    if isinstance(model, ClassRBM):
        return Hybrid()
    if isinstance(model, ScaleMixture):
        return ScaledContrast()
    if isinstance(model, nn.Sequential):
        return CrossEntropy()
    return CD() if isinstance(model, BoltzmannMachine) else JointLikelihood()


def default_optimizer(model: nn.Module, objective: Objective) -> Optimizer:
    """Return Adam on the parameters of a model and of its objective."""
    own = [p for p in model.parameters() if p.requires_grad]
    if isinstance(model, DBN):
        return torch.optim.Adam(layer_rates(model, 10 * _RATE))
    rate = _RATE if isinstance(model, BoltzmannMachine) else _RATE / 10
    return torch.optim.Adam([*own, *objective.parameters()], rate)


def _sparse_column(batches: Batches) -> dict[str, SparseRows]:
    return {batches.layer: batches.dataset} if isinstance(batches.dataset, SparseRows) else {}


def _start(model: nn.Module, batches: Batches, generator: torch.Generator | None) -> None:
    """Start a model at the data, where they are in memory and its biases are still zero."""
    if isinstance(model, BoltzmannMachine):
        untouched = {
            name: column
            for name, column in (batches.columns or _sparse_column(batches)).items()
            if name in model.graph.biases and not bool(model.graph.biases[name].bias.any())
        }
        if untouched:
            initialize(model, untouched)
        if isinstance(model, RBM) and is_mixture(model) and model.data_layer in untouched:
            spread_components(model, 0.5, generator=generator)
    elif isinstance(model, DBN) and model.data_layer in batches.columns:
        initialize_layers(model, batches.columns[model.data_layer][:_N_START])
