"""One training run: everything that survives an update, and the loop."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from harmonium.couplings import Conv2d
from harmonium.draws import draw_permutation
from harmonium.learning.batches import Batches, Source, ends
from harmonium.learning.history import History, Record
from harmonium.learning.missing import MissingValues
from harmonium.learning.monitors.guard import Guard
from harmonium.learning.monitors.health import HealthWarning, messages
from harmonium.learning.monitors.monitors import Monitor
from harmonium.learning.objectives.contrastive import Phases
from harmonium.learning.optimizer_step import take_step
from harmonium.learning.transforms.transforms import Transform
from harmonium.models import DBN, RBM, BoltzmannMachine
from harmonium.types import State, keep_freed_memory
from harmonium.units import Units

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

    `phases` holds the two phases of the last update for those who look on, `good` the parameters at the start of the
    epoch, to which a run that diverges goes back.
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
            raise ValueError(
                f"`epochs` must be ≥ 0 and `batch_size` ≥ 1. Got epochs={epochs}, batch_size={batch_size}."
            )
        self.model, self.objective, self.optimizer = model, objective, optimizer
        self.batches = Batches(data)
        if not len(self.batches):
            raise ValueError("The data has no rows. Give at least one sample.")
        self.epochs, self.batch_size = epochs, batch_size
        self.validation, self.weights, self.transform = validation, weights, transform
        self.contrastive = hasattr(objective, "accumulate_grad") and isinstance(
            model, getattr(objective, "trains", BoltzmannMachine)
        )
        self._check_weights()
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
        self._checked = self._check_integers()
        self.stop = False
        self.good: State = {}
        self.good_chains: State = {}
        self._units = [module for module in model.modules() if isinstance(module, Units)]
        self._convolves = any(isinstance(module, Conv2d) for module in model.modules())
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._projected = [units for units in self._units if type(units).project is not Units.project]
        self._guards = self._find_guards()

    def run(self) -> History:
        """Train until the last epoch, or until `stop` is set."""
        keep_freed_memory()
        if not self.good:
            self._remember()
        for monitor in self.monitors:
            monitor.on_start(self)
        for callback in self.callbacks:
            callback.on_start(self)
        while self.epoch < self.epochs and not self.stop:
            started = time.perf_counter()
            self._run_epoch()
            self.seconds += time.perf_counter() - started
        return self.history

    def _run_epoch(self) -> None:
        hooks = [m.on_update for m in self.monitors if type(m).on_update is not Monitor.on_update]
        hooks += [c.on_update for c in self.callbacks if type(c).on_update is not Callback.on_update]
        for index, batch in self._epoch_batches():
            try:
                self._step(index, batch)
            except TrainingDiverged as trouble:
                self._call_guard(trouble)
                continue
            for look_on in hooks:
                look_on(self)
            if self.stop and (index is None or self.position < len(self.order)):
                return  # a stop at the last update of an epoch ends the epoch first
        self.epoch += 1
        self.position = 0
        self.order = self.order[:0]
        if self.schedule is not None:
            self.schedule.step()
        self._end_epoch()

    def _call_guard(self, trouble: TrainingDiverged) -> None:
        guard = next((monitor for monitor in self.monitors if isinstance(monitor, Guard)), None)
        if guard is None:
            raise trouble
        guard.recover(self, "the gradient is not finite")

    def _epoch_batches(self) -> Iterator[tuple[Tensor | None, Any]]:
        if self.batches.loader is not None:
            for batch in self.batches.loaded():
                yield None, batch
            return
        if not len(self.order):
            self.order = draw_permutation(len(self.batches), generator=self._cpu_generator())
        as_floats = self.transform is None and not self._convolves
        for index, batch in self.batches.in_turn(self.order[self.position :], self.batch_size, as_floats=as_floats):
            self.position += len(index)
            yield index, batch

    def _step(self, index: Tensor | None, batch: Any) -> None:
        x = self._prepared(index, batch)
        self.batch = x
        for parameter in self._parameters:
            parameter.grad = None
        if self.contrastive:
            with torch.no_grad():
                weight = None
                if self.weights is not None and index is not None:
                    weight = self.weights[index].to(x)
                self.phases = self.objective.accumulate_grad(self.model, x, weight=weight, generator=self.generator)
                self._apply_gradient()
        else:
            loss = self.objective(self.model, x, generator=self.generator)
            loss.backward()
            self._apply_gradient()
        self.update += 1

    def _apply_gradient(self) -> None:
        for transform in self.transforms:
            transform.before(self.model, self.phases)
        self._check_finite()
        take_step(self.optimizer)
        for units in self._projected:
            units.project()
        for transform in self.transforms:
            transform.after(self.model)

    def _prepared(self, index: Tensor | None, batch: Any) -> Any:
        x, *labels = batch if isinstance(batch, tuple) else (batch,)
        if self.transform is not None:
            x = self.transform(x, generator=self.generator)
        some = self._parameters[0]
        if self._convolves and x.ndim == 4:
            x = x.to(dtype=some.dtype, device=some.device, memory_format=torch.channels_last)
        else:
            x = x.to(some.device, some.dtype)
        if self.missing is not None and index is not None:
            x = self.missing.fill(index, x, generator=self.generator)
        if not self.contrastive:
            return (x, *(part.to(some.device) for part in labels)) if labels else x
        if self.epoch == 0 and not self._checked:  # it learns from the data alone
            units = self._data_units()
            if units is not None:
                units.check_support(x, "data")
        return x

    def _find_guards(self) -> list[nn.Parameter]:
        """Return the parameters whose gradients tell if anything is not finite: biases.

        A mean of bounded units cannot grow, and where it is NaN the fields of an RBM carry it to the hidden bias.
        """
        if isinstance(self.model, RBM) and all(math.isfinite(end) for end in self.model.visible.bounds()):
            return [p for p in self.model.couplings[2].parameters() if p.requires_grad]
        return [p for p in self._parameters if p.ndim == 1] or self._parameters[:1]

    def _check_finite(self) -> None:
        if not all(math.isfinite(p.grad.sum().item()) for p in self._guards if p.grad is not None):
            self._diverge(f"The gradient of update {self.update + 1} (epoch {self.epoch + 1}) is not finite")

    def _diverge(self, what: str) -> NoReturn:
        """Put the model and the chains back to the start of the epoch and say why."""
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(self.good[name])
        if hasattr(self.objective, "load_state_dict"):
            self.objective.load_state_dict(self.good_chains)
        raise TrainingDiverged(
            f"{what}: the parameters grew out of bounds or the data hold extreme values. The model is back at the "
            "start of this epoch. Lower the learning rate, clip the gradient (ClipGradient), or rescale the data."
        )

    def _end_epoch(self) -> None:
        if not all(bool(p.isfinite().all()) for p in self._parameters):
            self._diverge(f"A parameter is not finite after update {self.update} (epoch {self.epoch})")
        record: Record = {"epoch": self.epoch, "update": self.update}
        for monitor in self.monitors:
            record |= monitor(self)
        if not all(math.isfinite(record.get(name, 0.0)) for name in ("free_energy", "contrast")):
            self._diverge(f"The free energy of the data or of the chains is not finite after epoch {self.epoch}")
        self._remember()
        for text in messages(record, self.history.records):
            if text not in self.history.messages:
                self.history.messages.append(text)
                warnings.warn(text, HealthWarning, stacklevel=2)
        self.history.records.append(record)
        for callback in self.callbacks:
            callback.on_epoch(self, record)

    @torch.no_grad()
    def _remember(self) -> None:
        if hasattr(self.objective, "state_dict"):
            self.good_chains = {name: value.clone() for name, value in self.objective.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            if name in self.good:
                self.good[name].copy_(parameter)
            else:
                self.good[name] = parameter.detach().clone()

    def _check_integers(self) -> bool:
        """Check all rows at once where that is cheap, integers in memory; others are checked as they are first used."""
        x, units = self.batches.x, self._data_units()
        if x is None or x.is_floating_point() or self.transform is not None or units is None:
            return False
        units.check_support(torch.stack(ends(x.view(torch.uint8) if x.dtype == torch.bool else x)).float(), "data")
        return True

    def _data_units(self) -> Units | None:
        if isinstance(self.model, DBN):
            return self.model.visible
        return self.model.layer(self.model.data_layer) if isinstance(self.model, BoltzmannMachine) else None

    def _check_weights(self) -> None:
        if self.weights is None:
            return
        if self.batches.loader is not None or not self.contrastive:
            raise ValueError(
                "`weights` need rows with numbers and a contrastive objective on a Boltzmann machine. Give the data as "
                "a tensor, an array or a Dataset, or weight the loss in an objective of your own."
            )
        if self.weights.shape != (len(self.batches),) or not bool((self.weights >= 0).all()):
            raise ValueError(
                f"`weights` must have one value ≥ 0 for each of the {len(self.batches)} rows. "
                f"Got shape {tuple(self.weights.shape)}."
            )

    def _cpu_generator(self) -> torch.Generator | None:
        if self.generator is None or self.generator.device.type == "cpu":
            return self.generator
        raise ValueError("The order of the data is drawn on the CPU. Give `fit` a CPU generator.")
