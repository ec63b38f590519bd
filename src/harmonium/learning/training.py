"""One training run: everything that survives an update, and the loop."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from harmonium.learning.batches import Batches, Source
from harmonium.learning.contrastive import Phases
from harmonium.learning.health import HealthWarning, messages
from harmonium.learning.history import History, Record
from harmonium.learning.missing import MissingValues
from harmonium.learning.monitors import Monitor
from harmonium.learning.transforms import Transform
from harmonium.models import BoltzmannMachine
from harmonium.types import State, draw_permutation

BatchTransform = Callable[..., Tensor]


class TrainingDiverged(ArithmeticError):  # noqa: N818  (the name says what happened)
    """Training met a value that is not finite; the model is back at its last good state."""


class Callback:
    """Something that looks on: override what you need."""

    def on_start(self, training: Training) -> None:
        """Be called before the first update."""

    def on_update(self, training: Training) -> None:
        """Be called after each update."""

    def on_epoch(self, training: Training, record: Record) -> None:
        """Be called after each epoch with its metrics."""


class Training:
    """All that a run carries from update to update; `run` makes it go, `state_dict` can be saved at any update.

    `phases` holds the two phases of the last update for those who look on.
    """

    def __init__(
        self,
        model: nn.Module,
        data: Source,
        objective: Any,
        *,
        optimizer: Optimizer,
        epochs: int,
        batch_size: int = 128,
        validation: Tensor | None = None,
        weights: Tensor | None = None,
        transform: BatchTransform | None = None,
        transforms: Sequence[Transform] = (),
        schedule: LRScheduler | None = None,
        monitors: Sequence[Monitor] = (),
        callbacks: Sequence[Callback] = (),
        generator: torch.Generator | None = None,
    ) -> None:
        if epochs < 0 or batch_size < 1:
            raise ValueError(f"`epochs` must be ≥ 0 and `batch_size` ≥ 1. Got epochs={epochs}, batch_size={batch_size}.")
        self.model, self.objective, self.optimizer = model, objective, optimizer
        self.batches = Batches(data)
        if not len(self.batches):
            raise ValueError("The data has no rows. Give at least one sample.")
        self.epochs, self.batch_size = epochs, batch_size
        self.validation, self.weights, self.transform = validation, weights, transform
        self.transforms, self.schedule = tuple(transforms), schedule
        self.monitors, self.callbacks = tuple(monitors), tuple(callbacks)
        self.generator = generator
        self.history = History()
        self.epoch, self.update, self.position = 0, 0, 0
        self.order = torch.zeros(0, dtype=torch.int64)
        self.phases: Phases | None = None
        self.batch: Any = None
        self.seconds = 0.0
        self.missing = MissingValues.of(model, self.batches)
        self.stop = False
        self._good: State = {}
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._guards = [p for p in self._parameters if p.ndim == 1] or self._parameters[:1]

    def run(self) -> History:
        """Train until the last epoch, or until `stop` is set."""
        self._remember()
        for callback in self.callbacks:
            callback.on_start(self)
        while self.epoch < self.epochs and not self.stop:
            started = time.perf_counter()
            self._run_epoch()
            self.seconds += time.perf_counter() - started
        return self.history

    def _run_epoch(self) -> None:
        for index, batch in self._epoch_batches():
            self._step(index, batch)
            for monitor in self.monitors:
                monitor.on_update(self)
            for callback in self.callbacks:
                callback.on_update(self)
            if self.stop:
                return
        self.epoch += 1
        self.position = 0
        self.order = self.order[:0]
        if self.schedule is not None:
            self.schedule.step()
        self._end_epoch()

    def _epoch_batches(self) -> Iterator[tuple[Tensor | None, Any]]:
        if self.batches.loader is not None:
            for batch in self.batches.loaded():
                yield None, batch
            return
        if not len(self.order):
            self.order = draw_permutation(len(self.batches), generator=self._cpu_generator())
        while self.position < len(self.order):
            index = self.order[self.position : self.position + self.batch_size]
            self.position += len(index)
            yield index, self.batches.rows(index)

    def _step(self, index: Tensor | None, batch: Any) -> None:
        x = self._prepared(index, batch)
        self.batch = x
        self.optimizer.zero_grad(set_to_none=False)
        if hasattr(self.objective, "accumulate_grad") and isinstance(self.model, BoltzmannMachine):
            weight = None
            if self.weights is not None and index is not None:
                weight = self.weights[index].to(x)
            self.phases = self.objective.accumulate_grad(self.model, x, weight=weight, generator=self.generator)
        else:
            loss = self.objective(self.model, x, generator=self.generator)
            loss.backward()
        for transform in self.transforms:
            transform.before(self.model, self.phases)
        self._check_finite()
        self.optimizer.step()
        if isinstance(self.model, BoltzmannMachine):
            for units in self.model.units.values():
                units.project()
        for transform in self.transforms:
            transform.after(self.model)
        self.update += 1

    def _prepared(self, index: Tensor | None, batch: Any) -> Any:
        some = self._parameters[0]
        if isinstance(batch, tuple):
            return (batch[0].to(some), *(part.to(some.device) for part in batch[1:]))
        if self.transform is not None:
            batch = self.transform(batch, generator=self.generator)
        x = batch.to(dtype=some.dtype, device=some.device)
        return x if self.missing is None or index is None else self.missing.fill(index, x, generator=self.generator)

    def _check_finite(self) -> None:
        total = sum(p.grad.sum() for p in self._guards if p.grad is not None)
        if isinstance(total, Tensor) and not math.isfinite(total.item()):
            with torch.no_grad():
                for name, parameter in self.model.named_parameters():
                    parameter.copy_(self._good[name])
            raise TrainingDiverged(
                f"The gradient of update {self.update + 1} (epoch {self.epoch + 1}) is not finite: the parameters grew out "
                "of bounds or the data hold extreme values. The model is back at the start of this epoch. Lower the "
                "learning rate, clip the gradient (ClipGradient), or rescale the data."
            )

    def _end_epoch(self) -> None:
        self._remember()
        record: Record = {"epoch": self.epoch, "update": self.update}
        for monitor in self.monitors:
            record |= monitor(self)
        for text in messages(record, self.history.records):
            if text not in self.history.messages:
                self.history.messages.append(text)
                warnings.warn(text, HealthWarning, stacklevel=2)
        self.history.records.append(record)
        for callback in self.callbacks:
            callback.on_epoch(self, record)

    @torch.no_grad()
    def _remember(self) -> None:
        for name, parameter in self.model.named_parameters():
            if name in self._good:
                self._good[name].copy_(parameter)
            else:
                self._good[name] = parameter.detach().clone()

    def _cpu_generator(self) -> torch.Generator | None:
        if self.generator is None or self.generator.device.type == "cpu":
            return self.generator
        raise ValueError("The order of the data is drawn on the CPU. Give `fit` a CPU generator.")
