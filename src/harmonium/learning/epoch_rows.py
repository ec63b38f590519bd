"""Rows of an epoch, from its beginning to its end: what monitors look at when it is over."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium import workers
from harmonium.types import State
from harmonium.workers import Part

_FEWEST, _MOST = 128, 256
_AT_ONCE = 8  # rows that are due before some are taken: a copy costs as much for one row as for eight
_MOST_NUMBERS = 2**21  # 8 MB; images of that size have many places that share their filters


class EpochRows:
    """Two rows of each update of an epoch, at least 128 and at most 256 of them, fewer where rows are large.

    The rows of a batch are in random order already, so that its first ones are a fair sample. `positive` is the state
    that an update learned from, `negative` what the model drew for the same rows. Where batches are divided each worker
    keeps its own rows and their places among all, until `gathered` brings them together.
    """

    def __init__(self) -> None:
        self.positive: list[State] = []
        self.negative: list[State] = []
        self.places: list[Tensor] = []
        self.n_wanted, self.n_seen, self.n_taken = 0, 0, 0

    def clear(self) -> None:
        """Forget the rows, for a new epoch."""
        self.positive, self.negative, self.places = [], [], []
        self.n_wanted, self.n_seen, self.n_taken = 0, 0, 0

    def add(self, positive: State, negative: State, n: int, n_total: int, *, part: Part | None = None) -> None:
        """See an update of n rows, of `n_total` in the epoch, and copy as many as are due.

        With a part the states hold the rows of one worker, who keeps those of the first of the batch that it has.
        """
        if not self.n_wanted:
            n_numbers = sum(value[0].numel() for value in (*positive.values(), *negative.values()))
            self.n_wanted = min(max(_FEWEST, min(_MOST, 2 * n_total // n)), n_total, max(1, _MOST_NUMBERS // n_numbers))
        self.n_seen += n
        due = min(n, self.n_wanted * min(self.n_seen, n_total) // n_total - self.n_taken)
        if due < 1 or (due < min(n, _AT_ONCE) and self.n_seen < n_total):
            return
        first, here = (0, due) if part is None else (part.first, min(max(due - part.first, 0), part.count))
        if part is not None and part.repeated and part.rank > 0:
            here = 0  # all have the same rows
        self.places.append(torch.arange(here) + self.n_taken + first)
        self.n_taken += due
        self.positive.append({name: value[:here].clone() for name, value in positive.items()})
        if negative:
            self.negative.append({name: value[:here].clone() for name, value in negative.items()})

    def gathered(self) -> EpochRows:
        """Return the rows of all workers, each in its place."""
        positive, negative = self.joined()
        both = {f"positive.{name}": value for name, value in positive.items()}
        both |= {f"negative.{name}": value for name, value in negative.items()}
        result = EpochRows()
        if both:
            both = workers.gather_all(both | {"places": torch.cat(self.places)})
            order = both.pop("places").argsort()
            both = {name: value[order.to(value.device)] for name, value in both.items()}
        result.load_state_dict(both | {"counts": self._counts()})
        return result

    def joined(self) -> tuple[State, State]:
        """Return the rows of both states so far."""
        return _joined(self.positive), _joined(self.negative)

    def state_dict(self) -> State:
        """Return the rows and the counts."""
        positive, negative = self.joined()
        rows = {f"positive.{name}": value for name, value in positive.items()}
        rows |= {f"negative.{name}": value for name, value in negative.items()}
        return {**rows, "counts": self._counts()}

    def load_state_dict(self, state: State, *, part: Part | None = None) -> None:
        """Take up all rows again; with a part the first worker has them, the others none."""
        self.clear()
        if "counts" in state:
            self.n_wanted, self.n_seen, self.n_taken = state["counts"].tolist()
        n = 0 if part is not None and part.rank > 0 else self.n_taken
        for prefix, parts in (("positive.", self.positive), ("negative.", self.negative)):
            rows = {key.removeprefix(prefix): value[:n] for key, value in state.items() if key.startswith(prefix)}
            if rows:
                parts.append(rows)
        self.places = [torch.arange(n)] if self.positive else []

    def _counts(self) -> Tensor:
        return torch.tensor([self.n_wanted, self.n_seen, self.n_taken])


def _joined(parts: list[State]) -> State:
    """Return the parts one below the other; a layer that one of them lacks is left out."""
    names = [name for name in parts[0] if all(name in part for part in parts)] if parts else []
    return {name: torch.cat([part[name] for part in parts]) for name in names}
