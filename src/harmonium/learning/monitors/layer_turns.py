"""The machines of a deep belief network one after another: whose turn it is to learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from harmonium.learning.history import Record
from harmonium.learning.monitors.base import Monitor
from harmonium.learning.objectives import SummedLayers
from harmonium.learning.starts.initialize_layers import initialize_layers
from harmonium.models import DBN, RBM

if TYPE_CHECKING:
    from harmonium.learning.training import Training

_N_START = 512


class LayerTurns(Monitor):
    """Lets groups of machines of a DBN learn one after another within one training, each for as many epochs.

    At epoch e of E the machines of group `⌊e G / E⌋` of G have the weight 1 in `SummedLayers`, the others 0. When a
    turn begins, its machines and those above start anew at what the machines below, now trained, make of the data. One
    machine a group is greedy learning (Hinton et al. 2006). `fitted`, `(i, fit)`, says that machine i, in no group, has
    a closed form, `fit(z)` of all the data that it sees, found when the turn of those above it begins; they start as
    they are.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[int]],
        spread: float | None = 0.1,
        fitted: tuple[int, Callable[[Tensor], RBM]] | None = None,
    ) -> None:
        self.groups, self.spread, self.fitted = groups, spread, fitted

    def on_start(self, training: Training) -> None:
        """Give the turn to the machines of this epoch, also after a resume."""
        self._give(training, training.epoch)

    @torch.no_grad()
    def __call__(self, training: Training) -> Record:
        """Pass the turn on at the end of an epoch; return the number of the group that had it, from 1."""
        dbn = network(training.model)
        rows = training.batches.columns.get(dbn.data_layer)
        had, has = self._give(training, training.epoch - 1), self._give(training, training.epoch)
        if has > had and rows is not None:
            self._start(dbn, min(self.groups[has]), rows)
        return {"turn": had + 1}

    def _start(self, dbn: DBN, first: int, rows: Tensor) -> None:
        end = len(dbn) if self.fitted is None else self.fitted[0]
        if first < end:
            x = dbn.up(rows[:_N_START].to(dbn[0].weight), first)
            initialize_layers(DBN([*dbn][first:end]), dbn.enter(first, x), spread=self.spread)
        elif self.fitted is not None:
            i, fit = self.fitted
            z = torch.cat([dbn.enter(i, dbn.up(part.to(dbn[0].weight), i)) for part in rows.split(_N_START)])
            dbn[i].load_state_dict(fit(z).state_dict())

    def _give(self, training: Training, epoch: int) -> int:
        if not isinstance(training.objective, SummedLayers):
            raise TypeError(f"LayerTurns goes with SummedLayers. Got {training.objective!r}.")
        n = len(self.groups)
        turn = min(n - 1, epoch * n // max(1, training.epochs))
        members = range(len(network(training.model)))
        training.objective.weights = tuple(float(i in self.groups[turn]) for i in members)
        return turn


def network(model: nn.Module) -> DBN:
    """Return the model if it is a deep belief network."""
    if not isinstance(model, DBN):
        raise TypeError(f"This is for a deep belief network. Got {type(model).__name__}.")
    return model
