"""A memory: store what is drawn, spoil it, and watch it come back with its energy."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from harmonium.draws import draw_uniform
from harmonium.models.associative_memory import AssociativeMemory
from harmonium.runs.plays.base import Move, Play, Seen, Session, choice, number
from harmonium.runs.plays.images import read, shown
from harmonium.runs.trained import Trained

MAX_PATTERNS, N_FRAMES = 100, 24
"""The most patterns of a play, and pictures of one sweep."""

Store = Callable[[Trained, Tensor], AssociativeMemory]
"""From patterns to a network that holds them, by the rule of the run."""


class Memory(Play):
    """A Hopfield network that begins with the patterns of the run and takes in those that are drawn."""

    name = "memory"

    def __init__(self, store: Store) -> None:
        self.store = store

    def suits(self, trained: Trained) -> bool:
        """Return whether patterns are images."""
        return trained.image is not None

    def opening(self, trained: Trained) -> Seen:
        """Return the patterns that are stored."""
        return {"patterns": shown(trained, stored(trained)), "n_units": math.prod(trained.shape)}

    @torch.no_grad()
    def move(self, trained: Trained, session: Session, move: Move) -> Seen:
        """Return the state after a move: `look` at it, `store` it, `forget` a pattern, `spoil` it, or `recall` by a
        sweep over the units at inverse temperature `beta` (none: zero temperature)."""
        patterns: Tensor = session.memory.setdefault("patterns", stored(trained))
        action = choice(move, "action", ("look", "store", "forget", "spoil", "recall"))
        x = read(trained, move, "x")
        if action == "store":
            if len(patterns) >= MAX_PATTERNS:
                raise ValueError(f"There are {MAX_PATTERNS} patterns already. Forget one first.")
            session.memory["patterns"] = patterns = torch.cat([patterns, x])
            session.memory.pop("network", None)
        if action == "forget":
            if len(patterns) < 2:
                raise ValueError("One pattern must stay.")
            which = int(number(move, "which", 0, len(patterns) - 1, 0))
            session.memory["patterns"] = patterns = torch.cat([patterns[:which], patterns[which + 1 :]])
            session.memory.pop("network", None)
        if action == "spoil":
            share = number(move, "share", 0.0, 1.0, 0.25)
            x = torch.where(draw_uniform(x, generator=session.generator) < share, -x, x)
        network = self._network(trained, session, patterns)
        frames = self._recalled(network, x, session, move) if action == "recall" else [x]
        path = torch.cat(frames)
        overlaps = (path[-1:] * patterns).flatten(1).mean(1)
        nearest = int(overlaps.argmax())
        return {
            "images": shown(trained, path),
            "energies": [round(e, 6) for e in network.energy(path).tolist()],
            "rests": len(frames) == 1 and action == "recall",
            "patterns": shown(trained, patterns),
            "overlaps": [round(m, 4) for m in overlaps.tolist()],
            "nearest": nearest,
        }

    def _network(self, trained: Trained, session: Session, patterns: Tensor) -> AssociativeMemory:
        if "network" not in session.memory:
            is_own = torch.equal(patterns, stored(trained))
            session.memory["network"] = trained.model if is_own else self.store(trained, patterns)
        network: AssociativeMemory = session.memory["network"]
        return network

    def _recalled(self, network: AssociativeMemory, x: Tensor, session: Session, move: Move) -> list[Tensor]:
        """Return the states along one sweep, each different from the one before."""
        beta = math.inf if move.get("beta") is None else number(move, "beta", 0.0, 1000.0, 1.0)
        n, frames = x.numel(), [x]

        def look(unit: int, state: Tensor) -> None:
            often = max(1, n // N_FRAMES)
            if (unit % often == often - 1 or unit == n - 1) and not torch.equal(state, frames[-1]):
                frames.append(state.clone())

        network.recall(x, beta=beta, n_steps=1, generator=session.generator, on_unit=look)
        return frames


def stored(trained: Trained) -> Tensor:
    """Return the patterns of the run."""
    patterns = trained.rows("train")
    if patterns is None:
        raise ValueError(f"{trained.data.name} holds no patterns.")
    return patterns
