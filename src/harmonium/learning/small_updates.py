"""Updates of a small RBM, many in one compiled call: PyTorch's calls cost it several times what its products do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor
from torch.optim import SGD

from harmonium import native
from harmonium.learning.callback import Callback
from harmonium.learning.monitors import Monitor
from harmonium.learning.objectives import PCD, Phases
from harmonium.learning.objectives.dense_pair import DensePair
from harmonium.learning.optimizer_step import is_watched
from harmonium.learning.transforms import ParameterAverage
from harmonium.models import RBM
from harmonium.types import without_gradient
from harmonium.units import Bernoulli

if TYPE_CHECKING:
    from harmonium.learning.training import Training

_MOST_ROWS = 32  # in a batch, and chains: with more the products outweigh the calls, and PyTorch has several cores
_MOST_WORK = 2**22  # multiplications of a product, for the same reason
_MOST_UPDATES, _MOST_NUMBERS = 512, 2**19  # in one call: a moment, for somebody who wants to stop it
_NOT_PLAIN = ("momentum", "dampening", "weight_decay", "nesterov", "maximize", "differentiable")


class SmallUpdates:
    """Persistent contrastive divergence of a dense RBM of binary units by plain SGD, averaged or not.

    The updates are those of `Training`, made from the same random numbers, up to rounding. What is not as plain, and
    what somebody looks at after each update, stays with `Training`; so does one that is not finite, which says so.
    `training.small = SmallUpdates.of(training)` asks for them: a run that is interrupted within an epoch and resumed
    would not find the same last bits, so that `fit` and the command line do not.
    """

    def __init__(self, training: Training, objective: PCD, average: ParameterAverage | None) -> None:
        self.training, self.objective, self.average = training, objective, average

    @staticmethod
    def of(training: Training) -> SmallUpdates | None:
        """Return them for a training that is small and plain enough."""
        objective, optimizer, transforms = training.objective, training.optimizer, training.transforms
        if not (type(objective) is PCD and objective.sampler is None and type(optimizer) is SGD):
            return None
        watched = [type(m).on_update is not Monitor.on_update for m in training.monitors]
        watched += [type(c).on_update is not Callback.on_update for c in training.callbacks]
        averages = [t for t in transforms if type(t) is ParameterAverage and not t.start]
        groups = optimizer.param_groups
        is_plain = (
            native.LIBRARY is not None
            and max(training.batch_size, objective.n_chains) <= _MOST_ROWS
            and len(groups) == 1
            and len(groups[0]["params"]) == 3
            and not any(groups[0][word] for word in _NOT_PLAIN)
            and len(averages) == len(transforms) <= 1
            and training.weights is None
            and training.transform is None
            and bool(training.batches.columns)  # rows in memory, by their numbers
            and not training.missing.values
            and training.division is None
            and not any(watched)
        )
        return SmallUpdates(training, objective, averages[0] if averages else None) if is_plain else None

    @without_gradient
    def run(self) -> bool:
        """Make the updates that are left of this epoch; return whether none is left for the training to make."""
        training = self.training
        while training.position < len(training.order):
            if training.stop or is_watched(training.optimizer) or not self._make_some():
                return False
        return True

    def _make_some(self) -> bool:
        """Make as many as one call should; return False if that is none."""
        training, objective, size = self.training, self.objective, self.training.batch_size
        for parameter in training.model.parameters():
            parameter.grad = None
        width = math.prod(training.units[training.batches.layer].shape)
        n_updates = min(_MOST_UPDATES, 1 + _MOST_NUMBERS // (size * width))
        index = training.order[training.position :][: n_updates * size]
        batch = training._prepared(index, training.batches.rows(index, as_floats=True))
        pair = DensePair.of(training.model, batch)
        if pair is None or not (type(pair.visible) is Bernoulli and type(pair.hidden) is Bernoulli):
            return False
        if max(size, objective.n_chains) * pair.weight.numel() > _MOST_WORK:
            return False
        (v, h), theta = pair.names, (pair.weight, pair.visible_bias, pair.hidden_bias)
        if {id(p) for p in theta} != {id(p) for p in training.optimizer.param_groups[0]["params"]}:
            return False
        parts = batch[v].split(size)
        started = objective.started(cast("RBM", training.model), generator=training.generator)
        chains = {name: x.clone() for name, x in started.items()}
        means = [pair.weight.new_empty(n, *pair.hidden.shape) for n in (size, objective.n_chains)]
        average, shares = self._average_of(theta, len(parts))
        done = native.pcd_updates(
            theta,
            average,
            shares,
            batch[v],
            (chains[v], chains[h]),
            means,
            rate=float(training.optimizer.param_groups[0]["lr"]),
            batch_size=size,
            n_steps=objective.n_steps,
            generator=training.generator,
        )
        if not done:
            return False
        objective.chains = chains
        training.batch = {v: parts[done - 1]}
        of_data = {v: parts[done - 1], h: means[0][: len(parts[done - 1])]}
        training.phases = Phases(of_data, {v: chains[v], h: means[1]}, (h,))
        for part in parts[:done]:
            training.rows.add({v: part}, {}, len(part), len(training.batches))
            training.position += len(part)
        training.update += done
        if self.average is not None:
            self.average.n_updates += done
        return True

    def _average_of(self, theta: tuple[Tensor, ...], n_updates: int) -> tuple[list[Tensor], Tensor]:
        """Return the average of each parameter, there from now on, and what these count in it at the coming updates."""
        if self.average is None:
            return [], torch.empty(0)
        names = {id(p): name for name, p in self.training.model.named_parameters()}
        kept, first = self.average.average, self.average.n_updates + 1
        shares = [self.average.share(first + i) for i in range(n_updates)]
        if not kept:
            kept |= {names[id(p)]: p.detach().clone() for p in theta}
            shares[0] = 1.0  # it begins at the first parameters that it sees
        return [kept[names[id(p)]] for p in theta], torch.tensor(shares, dtype=torch.float32)
