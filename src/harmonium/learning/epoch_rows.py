"""Rows of an epoch, from its beginning to its end: what monitors look at when it is over."""

from __future__ import annotations

from collections.abc import Callable

import torch

from harmonium.types import State

_FEWEST, _MOST = 128, 256
_AT_ONCE = 8  # rows that are due before some are taken: a copy costs as much for one row as for eight
_MOST_NUMBERS = 2**22


First = Callable[[State, int, int], State]


class EpochRows:
    """Two rows of each update of an epoch, at least 128 and at most 256 of them, fewer where rows are large.

    The rows of a batch are in random order already, so that its first ones are a fair sample. `positive` is the state
    that an update learned from, `negative` what the model drew for the same rows.
    """

    def __init__(self) -> None:
        self.positive: list[State] = []
        self.negative: list[State] = []
        self.n_wanted, self.n_seen, self.n_taken = 0, 0, 0

    def clear(self) -> None:
        """Forget the rows, for a new epoch."""
        self.positive, self.negative = [], []
        self.n_wanted, self.n_seen, self.n_taken = 0, 0, 0

    def add(self, positive: State, negative: State, n: int, n_total: int, *, first: First | None = None) -> None:
        """See an update of n rows, of `n_total` in the epoch, and copy as many as are due.

        `first(state, due, n)` returns the first rows of a batch of n that is divided among workers.
        """
        if not self.n_wanted:
            n_numbers = sum(value[0].numel() for value in (*positive.values(), *negative.values()))
            self.n_wanted = min(max(_FEWEST, min(_MOST, 2 * n_total // n)), n_total, max(1, _MOST_NUMBERS // n_numbers))
        self.n_seen += n
        due = min(n, self.n_wanted * min(self.n_seen, n_total) // n_total - self.n_taken)
        if due < 1 or (due < min(n, _AT_ONCE) and self.n_seen < n_total):
            return
        self.n_taken += due
        first = first or _first
        self.positive.append(first(positive, due, n))
        if negative:
            self.negative.append(first(negative, due, n))

    def joined(self) -> tuple[State, State]:
        """Return the rows of both states so far."""
        return _joined(self.positive), _joined(self.negative)

    def state_dict(self) -> State:
        """Return the rows and the counts."""
        positive, negative = self.joined()
        rows = {f"positive.{name}": value for name, value in positive.items()}
        rows |= {f"negative.{name}": value for name, value in negative.items()}
        return {**rows, "counts": torch.tensor([self.n_wanted, self.n_seen, self.n_taken])}

    def load_state_dict(self, state: State) -> None:
        """Take them up again."""
        self.clear()
        if "counts" in state:
            self.n_wanted, self.n_seen, self.n_taken = state["counts"].tolist()
        for prefix, parts in (("positive.", self.positive), ("negative.", self.negative)):
            rows = {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
            if rows:
                parts.append(rows)


def _first(state: State, n: int, _total: int) -> State:
    return {name: value[:n].clone() for name, value in state.items()}


def _joined(parts: list[State]) -> State:
    """Return the parts one below the other; a layer that one of them lacks is left out."""
    names = [name for name in parts[0] if all(name in part for part in parts)] if parts else []
    return {name: torch.cat([part[name] for part in parts]) for name in names}
