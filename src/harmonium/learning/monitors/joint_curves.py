"""The curves of a joint model, or of another classifier, while it learns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, nll_loss

from harmonium.learning.history import Record
from harmonium.learning.monitors.base import Monitor
from harmonium.models.class_log_probabilities import class_log_probabilities
from harmonium.models.frozen import frozen
from harmonium.models.jem import JEM
from harmonium.models.layers import X, Y
from harmonium.types import State

if TYPE_CHECKING:
    from harmonium.learning.training import Training


class JointCurves(Monitor):
    """The parts of `L = L_clf + L_gen`, averaged over each epoch, and on validation data (figure 6.2 of the chapter).

    `validation` is `(x, y)`; its `validation_generation_loss` contrasts it with the samples of the last update, so that
    no random numbers are drawn, and `validation_accuracy` is the share of right classes. Of a classifier that is no
    joint model there is L_clf alone. Without `validation` it is that of the training, if it has one with classes.
    """

    def __init__(self, validation: tuple[Tensor, Tensor] | None = None) -> None:
        self.validation = validation
        self.sums: dict[str, float] = {}
        self.n_updates = 0

    def on_update(self, training: Training) -> None:
        """Add the parts of an update; one with a part that is not finite was taken back by a guard."""
        metrics = training.measured
        if not all(map(math.isfinite, metrics.values())):
            return
        self.n_updates += 1
        for name, value in metrics.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    @torch.no_grad()
    def __call__(self, training: Training) -> Record:
        """Return the means of the epoch and the validation curves."""
        record: Record = {name: self.sums[name] / max(self.n_updates, 1) for name in sorted(self.sums)}
        if isinstance(training.model, JEM):
            record["loss"] = record.get("classification_loss", 0.0) + record.get("generation_loss", 0.0)
        self.sums, self.n_updates = {}, 0
        model = training.model
        validation = self.validation or _held_out(training.validation)
        if validation is None:
            return record
        x, y = validation
        if not isinstance(model, JEM):
            log_p = class_log_probabilities(model, x)
            accuracy, loss = (log_p.argmax(-1) == y).float().mean().item(), nll_loss(log_p, y).item()
            return record | {"validation_accuracy": accuracy, "validation_classification_loss": loss}
        with frozen(model):
            logits = torch.cat([model.class_logits(rows) for rows in x.split(1024)])
            record["validation_accuracy"] = (logits.argmax(-1) == y).float().mean().item()
            loss = record["validation_classification_loss"] = cross_entropy(logits, y).item()
            if training.phases is not None:
                gap = model.free_energy_of(logits, x).mean() - model.free_energy(training.phases.negative[X]).mean()
                record["validation_generation_loss"] = gap.item()
                loss += gap.item()
        record["validation_loss"] = loss
        return record

    def state_dict(self) -> State:
        """Return the sums of the epoch under way."""
        sums = {name: torch.tensor(value, dtype=torch.float64) for name, value in self.sums.items()}
        return {**sums, "n_updates": torch.tensor(self.n_updates)}

    def load_state_dict(self, state: State) -> None:
        """Take them up again."""
        self.n_updates = int(state.get("n_updates", torch.tensor(0)))
        self.sums = {name: value.item() for name, value in state.items() if name != "n_updates"}


def _held_out(state: State | None) -> tuple[Tensor, Tensor] | None:
    """Return data and classes of the rows of a state whose class is known, None if there are none."""
    if state is None or not {X, Y} <= set(state):
        return None
    known = state[Y] >= 0
    return (state[X][known], state[Y][known].long()) if bool(known.any()) else None
