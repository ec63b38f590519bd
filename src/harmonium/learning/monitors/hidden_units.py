"""Hidden units that carry nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from harmonium.learning.history import Record
from harmonium.learning.monitors.base import Monitor
from harmonium.models.layers import machine_of

if TYPE_CHECKING:
    from harmonium.learning.training import Training


class HiddenUnits(Monitor):
    """Hidden units that never fire (mean below 1 % of the range) or are always on (99 %), on rows of all the epoch."""

    @torch.no_grad()
    def __call__(self, training: Training) -> Record:
        """Return the counts."""
        machine = machine_of(training.model)
        if machine is None or training.seen is None:
            return {}
        record: Record = {}
        for name in training.seen.hidden:
            units = machine.layer(name)
            low, high = units.bounds()
            if not math.isfinite(high - low):
                continue
            values = training.seen.positive[name].flatten(end_dim=-len(units.shape) - 1)
            most, least, mean = ((x - low) / (high - low) for x in (values.amax(0), values.amin(0), values.mean()))
            counts = {
                "n_hidden": most.numel(),
                "dead": int((most < 0.01).sum()),
                "saturated": int((least > 0.99).sum()),
            }
            record |= {key: record.get(key, 0) + n for key, n in counts.items()}
            record.setdefault("activity", mean.item())
            record["n_rows"] = len(values)
        return record
