"""One training run: everything that survives an update, and the loop."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NoReturn

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from harmonium import workers
from harmonium.couplings import Coupling
from harmonium.draws import HALF
from harmonium.learning.batches import Batches, Source
from harmonium.learning.callback import Callback as Callback
from harmonium.learning.diverged import TrainingDiverged
from harmonium.learning.division import Division
from harmonium.learning.epoch_rows import EpochRows
from harmonium.learning.history import History, Record
from harmonium.learning.missing import MissingValues
from harmonium.learning.monitors import Monitor
from harmonium.learning.monitors.health import HealthWarning, Setup, messages
from harmonium.learning.objectives import Objective, Phases
from harmonium.learning.objectives.base import require_objective
from harmonium.learning.optimizer_step import take_step
from harmonium.learning.small_updates import SmallUpdates
from harmonium.learning.state import learned, restore_learned
from harmonium.learning.transforms import Transform
from harmonium.models import DBN, RBM, BoltzmannMachine
from harmonium.models.layers import machine_of
from harmonium.types import State, Values, as_tensor, keep_freed_memory
from harmonium.units import Units

BatchTransform = Callable[..., Tensor]
"""`transform(x, generator=…)` changes the data layer of a batch."""

N_VALIDATION = 2048
"""The most rows of the validation data that monitors look at."""


class Training:
    """All that a run carries from update to update; `run` makes it go, `learning.state` saves it at any update.

    `batch` is the state at hand, `phases` the two phases of the last update for those who look on, `seen` rows of them
    from the whole epoch for monitors, once it is over, `seen_fields` the fields on their hidden layers, `good` what was
    learned at the start of the epoch, to which a run that diverges goes back. Inside a process group rows and chains
    are shared out (`division`): `batch` and `phases` are then those of this worker, what monitors see is of all.
    """

    def __init__(
        self,
        model: nn.Module,
        data: Source,
        objective: Objective,
        *,
        optimizer: Optimizer,
        epochs: int,
        batch_size: int = 128,
        validation: Values | Mapping[str, Values] | None = None,
        weights: Values | None = None,
        transform: BatchTransform | None = None,
        transforms: Sequence[Transform] = (),
        schedule: LRScheduler | None = None,
        monitors: Sequence[Monitor] = (),
        callbacks: Sequence[Callback] = (),
        generator: torch.Generator | None = None,
    ) -> None:
        require_objective(objective)
        self.model, self.objective, self.optimizer = model, objective, optimizer
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._learning = [*self._parameters, *objective.parameters()]
        self.epochs, self.batch_size, self.generator = epochs, batch_size, generator
        self.batches = Batches(data, model)
        self.transform, self.transforms, self.schedule = transform, tuple(transforms), schedule
        self.monitors, self.callbacks = tuple(monitors), tuple(callbacks)
        self._check_arguments()
        self.weights = None if weights is None else as_tensor(weights)
        self._check_weights()
        self.units = self._find_units()
        self._conditions = model.given if isinstance(model, BoltzmannMachine) else ()
        self._formats = {m.memory_format for m in model.modules() if isinstance(m, Coupling)}
        self.validation: State | None = None
        if validation is not None:
            few = {name: value[:N_VALIDATION] for name, value in self.batches.as_state(validation).items()}
            self.validation = self._floats(few)
        self.history = History()
        self.epoch, self.update, self.position = 0, 0, 0
        self.order = torch.zeros(0, dtype=torch.int64)
        self.phases: Phases | None = None
        self.rows = EpochRows()
        self.seen: Phases | None = None
        self.seen_fields: State = {}
        self.batch: State = {}
        self.seconds, self.stop = 0.0, False
        self.missing = MissingValues(model, self.batches, drawn=not objective.sums_out_holes)
        self._checked = transform is None and self.batches.check_integers(self.units, like=self._parameters[0])
        self.good: State = {}
        layers = (module for module in model.modules() if isinstance(module, Units))
        self._projected: list[Units | BoltzmannMachine] = [
            units for units in layers if type(units).project is not Units.project
        ]
        self._projected += [
            machine
            for machine in model.modules()
            if isinstance(machine, BoltzmannMachine) and type(machine).project is not BoltzmannMachine.project
        ]
        self._telltales = self._find_telltales()
        self.division = Division.of(self)
        self.small: SmallUpdates | None = None  # its numbers are the same up to rounding only: whoever asks for it

    @property
    def measured(self) -> dict[str, float]:
        """What the objective measured in the last update, of all workers."""
        return self.objective.measured() if self.division is None else self.division.measured

    @property
    def has_seen_all(self) -> bool:
        """Whether every row of the epoch had its turn; what a loader still has, nobody knows."""
        return self.batches.loader is None and self.position >= len(self.batches)

    def run(self) -> History:
        """Train until the last epoch, or until `stop` is set; in full precision, under `torch.autocast` too."""
        with torch.autocast(self._parameters[0].device.type, enabled=False), torch.inference_mode(False):
            return self._run()

    def _run(self) -> History:
        keep_freed_memory()
        if self.division is not None:
            self.division.start(self)
        self.good = self.good or learned(self, copy=True)
        for monitor in self.monitors:
            monitor.on_start(self)
        for callback in self.callbacks:
            callback.on_start(self)
        while self.epoch < self.epochs and not self._asked_to_stop():
            started = time.perf_counter()
            self._run_epoch()
            self.seconds += time.perf_counter() - started
        for callback in self.callbacks:
            callback.on_end(self)
        return self.history

    def _run_epoch(self) -> None:
        hooks = [m.on_update for m in self.monitors if type(m).on_update is not Monitor.on_update]
        hooks += [c.on_update for c in self.callbacks if type(c).on_update is not Callback.on_update]
        if not self.position:  # not within an epoch that is gone on with
            self.rows.clear()
        for index, batch in self._epoch_batches():
            try:
                self._step(index, batch)
            except TrainingDiverged:
                if not any(monitor.recover(self, "the gradient is not finite") for monitor in self.monitors):
                    raise
                continue
            for look_on in hooks:
                look_on(self)
            stop = self.stop if self.division is None else self.division.stop
            if stop and not self.has_seen_all:
                return  # a stop at the last update of an epoch ends the epoch first
        self.epoch += 1
        self.position = 0
        self.order = self.order[:0]
        if self.schedule is not None:
            self.schedule.step()
        self._end_epoch()

    def _epoch_batches(self) -> Iterator[tuple[Tensor | None, State]]:
        if self.batches.loader is not None:
            for batch in self.batches.loaded(self.position):
                self.position += 1
                yield None, batch
            return
        if not len(self.order):
            self.order = self.batches.draw_order(generator=self.generator)
        if self.small is not None and self.small.run():
            return
        mine = None if self.division is None or self.missing.values else self.division.mine
        for index, batch in self.batches.in_turn(
            self.order,
            self.batch_size,
            position=self.position,
            as_floats=self.transform is None and self.batches.holds_values(self.units),
            channels_last=torch.channels_last in self._formats,
            mine=mine,
        ):
            self.position += len(index)
            yield index, batch

    def _step(self, index: Tensor | None, batch: State) -> None:
        self.batch, self.phases = {}, None  # the memory of the last update is at hand for this one
        with torch.no_grad():
            if self.division is None or index is None:
                self.batch = self._prepared(index, batch)
                self._add_gradient(index)
                n = len(next(iter(self.batch.values())))
            else:
                self.division.add_shares(self, index, batch)
                n = len(index)
            self._apply_gradient()
        self._keep_rows(n)
        self.update += 1

    def _add_gradient(self, index: Tensor | None) -> None:
        for parameter in self._learning:
            parameter.grad = None
        weight = None
        if self.weights is not None and index is not None:
            weight = self.weights[index].to(self._parameters[0])
        self.phases = self.objective.accumulate_grad(
            self.model, self.batch, weight=weight, index=index, generator=self.generator
        )

    def _asked_to_stop(self) -> bool:
        return self.stop if self.division is None else self.division.agreed(self.stop)

    def _keep_rows(self, n: int) -> None:
        """Keep some rows of the phases, or of the batch where there are none, for the end of the epoch.

        Chains that are carried on are looked at where they end; others started at the data, row by row.
        """
        positive, negative = (self.batch, {}) if self.phases is None else self.phases[:2]
        part = None if self.division is None else self.division.rows(n)
        self.rows.add(positive, {} if self.objective.persistent else negative, n, len(self.batches), part=part)

    def _apply_gradient(self) -> None:
        phases = self.phases
        if self.division is not None and any(transform.sees_phases for transform in self.transforms):
            phases = self.division.phases(phases)
        for transform in self.transforms:
            transform.before(self.model, phases)
        self._check_finite()
        take_step(self.optimizer)
        for module in self._projected:
            module.project()
        for transform in self.transforms:
            transform.after(self.model)

    def _prepared(self, index: Tensor | None, batch: State) -> State:
        """Return a batch as the model takes it: transformed, as floats, on its device, with missing values drawn."""
        if self.transform is not None:
            layer = self.batches.layer
            batch = batch | {layer: self.transform(batch[layer], generator=self.generator)}
        batch = self._floats(batch)
        if self.missing.values and index is not None:
            batch = self.missing.fill(index, batch, generator=self.generator)
        if self.epoch == 0 and not self._checked:  # later epochs hold the same rows
            for name, value in batch.items():
                if name in self.units:
                    # A row may lack a layer as a whole where there are others; never a condition.
                    may_lack = len(batch) > 1 and name not in self._conditions
                    rows = value[~value.flatten(1).isnan().all(1)] if may_lack else value
                    if self.objective.sums_out_holes:
                        rows = torch.where(rows.isnan(), self.units[name].mean(torch.zeros_like(rows[:1])), rows)
                    if index is None and bool(rows.isnan().any()):
                        raise ValueError(
                            f"Layer {name!r} of a batch of the DataLoader holds NaN. Missing values are carried from "
                            "epoch to epoch by the number of their row, which a loader does not tell. Give the data as "
                            "a tensor, an array or a mapping of them, or fill the values in first."
                        )
                    self.units[name].check_support(rows, name)
        return batch

    def _floats(self, batch: State) -> State:
        """Return the layers on the device of the model, those of units as floats."""
        some = self._parameters[0]
        result = {}
        for name, value in batch.items():
            units = self.units.get(name)
            if units is not None:
                if not value.is_floating_point():
                    value = units.encoded(value, like=some)
            elif not value.is_floating_point() and name != self.batches.layer:
                result[name] = value.to(some.device)  # labels of a neural energy
                continue
            if value.ndim == 4 and torch.channels_last in self._formats:
                result[name] = value.to(dtype=some.dtype, device=some.device, memory_format=torch.channels_last)
            else:
                result[name] = value.to(some.device, some.dtype)
        return result

    def _find_units(self) -> dict[str, Units]:
        """Return the units of each layer, where the model has units."""
        if isinstance(self.model, DBN):
            return {self.model.data_layer: self.model.visible}
        if isinstance(self.model, BoltzmannMachine):
            return dict(self.model.graph.all_layers)
        return {}

    def _find_telltales(self) -> list[nn.Parameter]:
        """Return the parameters whose gradients tell if anything is not finite: biases.

        A mean of bounded units cannot grow, and where it is NaN the fields of an RBM carry it to the hidden bias.
        """
        if isinstance(self.model, RBM) and all(math.isfinite(end) for end in self.model.visible.bounds()):
            return [p for p in self.model.couplings[2].parameters() if p.requires_grad]
        return [p for p in self._parameters if p.ndim == 1] or self._parameters[:1]

    def _check_finite(self) -> None:
        if not all(math.isfinite(p.grad.sum().item()) for p in self._telltales if p.grad is not None):
            self._diverge(f"The gradient of update {self.update + 1} (epoch {self.epoch + 1}) is not finite")

    def _diverge(self, what: str) -> NoReturn:
        """Put back what was learned by the start of the epoch and say why."""
        restore_learned(self, self.good)
        raise TrainingDiverged(
            f"{what}: the parameters grew out of bounds or the data hold extreme values. The model is back at the "
            "start of this epoch. Lower the learning rate, clip the gradient (ClipGradient), or rescale the data."
        )

    def _end_epoch(self) -> None:
        if not all(bool(p.isfinite().all()) for p in self._parameters):
            self._diverge(f"A parameter is not finite after update {self.update} (epoch {self.epoch})")
        if self.division is not None:
            self.division.require_same_draws(self)
        if self.monitors or self.callbacks:  # somebody looks
            self.phases = self.phases if self.division is None else self.division.phases(self.phases)
            self.seen = self._look_back()
        record: Record = {"epoch": self.epoch, "update": self.update}
        for monitor in self.monitors:
            record |= monitor(self)
        if not all(math.isfinite(record.get(name, 0.0)) for name in ("free_energy", "contrast")):
            self._diverge(f"The free energy of the data or of the chains is not finite after epoch {self.epoch}")
        self.good = learned(self, copy=True)
        for text in messages(record, self.history.records, Setup.of(self)):
            if text not in self.history.messages:
                self.history.messages.append(text)
                if workers.is_first():
                    warnings.warn(text, HealthWarning, stacklevel=2)
        self.history.records.append(record)
        for callback in self.callbacks:
            callback.on_epoch(self, record)

    @torch.no_grad()
    def _look_back(self) -> Phases | None:
        """Return rows of the whole epoch, hidden layers at their means now where these have a closed form."""
        positive, negative = (self.rows if self.division is None else self.division.seen(self.rows)).joined()
        if not positive:
            return None
        hidden = () if self.phases is None else self.phases.hidden
        machine = machine_of(self.model)
        if machine is not None:
            observed = {name: value for name, value in positive.items() if name not in hidden}
            try:
                positive, self.seen_fields = machine.fill(machine.state(observed))
            except ValueError:  # tied layers: they stay where the updates had them
                positive, self.seen_fields = dict(positive), {}
            hidden = hidden or tuple(name for name in machine.layers if name not in observed)
        negative = negative or ({} if self.phases is None else self.phases.negative)
        return Phases(positive, negative, hidden)

    def _check_arguments(self) -> None:
        """Raise where something would be ignored, or could not work."""
        for name, value, least in (("epochs", self.epochs, 0), ("batch_size", self.batch_size, 1)):
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"`{name}` must be a whole number, at least {least}. Got {value!r}.")
        if not self._parameters:
            raise ValueError("The model has no parameter that learns: all are frozen (requires_grad=False).")
        if self._parameters[0].dtype in HALF or self._parameters[0].is_inference():
            raise TypeError(
                f"A model learns in single or double precision, outside of torch.inference_mode. Got parameters of "
                f"{self._parameters[0].dtype}, whose last bits are larger than an update. Learn with model.float(), "
                "then draw samples with model.half() if you like."
            )
        self.objective.check(self.model)
        if not len(self.batches):
            raise ValueError("The data has no rows. Give at least one sample.")
        own = {id(p) for p in (*self.model.parameters(), *self.objective.parameters())}
        moved = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
        if not moved <= own:
            raise ValueError(
                f"The optimizer moves {len(moved - own)} parameters that are not those of this model. Build it from "
                "model.parameters() of the model that is trained, after the model was moved to its device."
            )

    def _check_weights(self) -> None:
        if self.weights is None:
            return
        if self.batches.loader is not None or not self.objective.weighs_rows:
            raise ValueError(
                "`weights` need rows with numbers and a contrastive objective. Give the data as a tensor, an array, a "
                "mapping or a Dataset, or weight the loss in an objective of your own."
            )
        if self.weights.shape != (len(self.batches),) or not bool((self.weights >= 0).all()):
            raise ValueError(
                f"`weights` must have one value ≥ 0 for each of the {len(self.batches)} rows. "
                f"Got shape {tuple(self.weights.shape)}."
            )
