"""Stop where validation data say so."""

from __future__ import annotations

import math
from typing import Any

from harmonium.learning.callback import Callback
from harmonium.learning.history import Record
from harmonium.types import State


class EarlyStopping(Callback):
    """Stops after `patience` epochs without a better `metric`, and gives the model back its best parameters.

    `fit(rbm, x, validation=v, monitors=[*default_monitors(), LikelihoodTrack()], callbacks=[EarlyStopping(5)])`. A
    metric that ends in "loss" or "energy" or "reconstruction" is better when it is lower, all others when higher. Which
    epoch was the best follows from the history, so that a run that is resumed decides as one that was never stopped.
    """

    def __init__(self, patience: int, metric: str = "validation_log_likelihood") -> None:
        if patience < 1:
            raise ValueError(f"`patience` must be at least 1 epoch. Got {patience}.")
        self.patience, self.metric = patience, metric
        self.best: State = {}

    def on_epoch(self, training: Any, record: Record) -> None:
        """Keep the parameters if they are the best so far; stop if there were none for too long."""
        if self.metric not in record:
            raise ValueError(
                f"Early stopping looks at {self.metric!r}, which this training does not measure. It measures "
                f"{', '.join(name for name, value in record.items() if isinstance(value, float))}."
            )
        best = best_epoch(training.history.records, self.metric)
        if best == record["epoch"]:
            self.best = {name: value.detach().clone() for name, value in training.model.state_dict().items()}
        training.stop = training.stop or record["epoch"] - best >= self.patience

    def on_end(self, training: Any) -> None:
        """Give the model its best parameters."""
        if self.best:
            training.model.load_state_dict(self.best)


def best_epoch(records: list[Record], metric: str) -> int:
    """Return the epoch with the best value of a metric, the first of equal ones; NaN is never the best.

    >>> best_epoch([{"epoch": 1, "loss": 2.0}, {"epoch": 2, "loss": 1.0}, {"epoch": 3, "loss": 1.5}], "loss")
    2
    """
    sign = -1.0 if metric.endswith(("loss", "energy", "reconstruction")) else 1.0

    def worth(record: Record) -> float:
        value = record.get(metric)
        return -math.inf if value is None or math.isnan(value) else sign * value

    return int(max(records, key=worth)["epoch"])
