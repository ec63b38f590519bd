"""What to watch while a deep belief network learns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from harmonium.learning.history import Record
from harmonium.learning.monitors.base import Monitor
from harmonium.learning.objectives.summed_layers import layer_phases
from harmonium.models import DBN, RBM

if TYPE_CHECKING:
    from harmonium.learning.training import Training


class Depths(Monitor):
    """How each machine of a DBN meets its data, on rows of the whole epoch; machines are counted from 1.

    `unexplained_l` is `Σ(v - v')² / Σ(v - v̄)²` of machine l, with v' one step of mean field: 1 is no better than the
    mean image. `activity_l` is the mean of the hidden layer as a share of its range. `reconstruction` is the mean
    squared error of the lowest machine, `free_energy` and `contrast` are summed over the machines. `dead` and
    `saturated` count hidden units (channels of images) below 1 % or above 99 % of their range on all of them. A network
    that learns as a whole (`Reconstruction`) has what its last update measured.
    """

    @torch.no_grad()
    def __call__(self, training: Training) -> Record:
        """Return the metrics."""
        model, phases = training.model, training.seen
        if not isinstance(model, DBN):
            return {}
        if phases is None or not phases.negative:
            return dict(training.measured)
        record: Record = {"free_energy": 0.0, "contrast": 0.0, "n_hidden": 0, "dead": 0, "saturated": 0}
        for i, rbm in enumerate(model):
            both = layer_phases(phases, i)
            below, above = rbm.layers
            v, h = both.positive[below], both.positive[above]
            free = rbm.energy(v).mean().item()
            record["free_energy"] += free
            record["contrast"] += free - rbm.energy(both.negative[below]).mean().item()
            error = (rbm.mean(below, {above: h}) - v).square().sum()
            if i == 0:
                record["reconstruction"] = (error / v.numel()).item()
            record[f"unexplained_{i + 1}"] = (error / (v - v.mean(0)).square().sum().clamp_min(1e-12)).item()
            record |= {name: record.get(name, 0) + n for name, n in _activity(rbm, h, i, record).items()}
        return record


def _activity(rbm: RBM, h: Tensor, i: int, record: Record) -> dict[str, int]:
    low, high = rbm.hidden.bounds()
    if not math.isfinite(high - low):
        return {}
    share = (h - low) / (high - low)
    record[f"activity_{i + 1}"] = share.mean().item()
    others = tuple(d for d in range(share.ndim) if d != 1)
    dead, full = (share.amax(others) < 0.01).sum(), (share.amin(others) > 0.99).sum()
    return {"n_hidden": share.shape[1], "dead": int(dead), "saturated": int(full)}
