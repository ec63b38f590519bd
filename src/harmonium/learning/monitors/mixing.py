"""Whether persistent chains mix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from harmonium import workers
from harmonium.learning.history import Record
from harmonium.learning.monitors.base import Monitor
from harmonium.models.layers import machine_of
from harmonium.samplers import effective_sample_size, split_r_hat
from harmonium.types import State
from harmonium.workers import Part

if TYPE_CHECKING:
    from harmonium.learning.training import Training


class Mixing(Monitor):
    """R-hat and effective sample size of persistent chains, followed by the sum of their visible units.

    Looks back over the last `n_draws` updates; the parameters move meanwhile, so this is a symptom, not a proof.
    """

    def __init__(self, n_draws: int = 100) -> None:
        self.n_draws = n_draws
        self.trace: list[Tensor] = []
        self.is_divided = False

    def on_update(self, training: Training) -> None:
        """Note where the chains are."""
        machine = machine_of(training.model)
        if machine is None or training.phases is None or not training.objective.persistent:
            return
        now = training.phases.negative[machine.data_layer].flatten(1).sum(1)
        self.is_divided = training.division is not None and training.division.divides
        if self.is_divided and self.trace and len(self.trace[0]) != len(now):  # of all chains, from a checkpoint
            self.trace = [Part(workers.rank(), workers.world(), len(old)).take(old) for old in self.trace]
        self.trace.append(now)
        del self.trace[: -self.n_draws]

    def __call__(self, training: Training) -> Record:
        """Return R-hat and the effective sample size of the trace."""
        if len(self.trace) < 20:
            return {}
        draws = self._whole().T.contiguous()
        return {
            "r_hat": split_r_hat(draws).item(),
            "ess": effective_sample_size(draws).item(),
            "n_draws": len(self.trace),
        }

    def _whole(self) -> Tensor:
        """Return the trace of the chains of all workers, `(n_draws, n_chains)`."""
        trace = torch.stack(self.trace)
        return workers.gather(trace, axis=1) if self.is_divided else trace

    def state_dict(self) -> State:
        """Return the trace."""
        return {"trace": self._whole()} if self.trace else {}

    def load_state_dict(self, state: State) -> None:
        """Take up the trace."""
        self.trace = list(state["trace"].unbind(0)) if "trace" in state else []
        self.is_divided = False
