"""A play: something to do with a trained model, move by move, and to see what it makes of it. Plain values in and out.

What a person does is a move, a mapping of plain values; what is seen is another. Pictures are bytes in base64.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from harmonium.runs.trained import Trained
from harmonium.types import State

Move = Mapping[str, Any]
Seen = dict[str, Any]

MAX_STEPS, MAX_CHAINS = 1000, 1024
"""The most steps and chains of one move."""


@dataclass
class Session:
    """What a play carries from move to move: its chains, its random numbers, and what it was shown last.

    No step begins after `until`, as `time.monotonic` counts: a move that takes too long ends where it is.
    """

    generator: torch.Generator
    state: State = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    until: float = float("inf")

    def has_time(self) -> bool:
        """Return whether another step may begin."""
        return time.monotonic() < self.until


class Play(ABC):
    """A play. `name` is what a page knows it by; a `live` one shows the model as it is, again after each checkpoint.

    One that is not live may be watched, too: `watched` names the move that all who watch see together, after each
    checkpoint, or, where it is `moving`, a few times a second.
    """

    name: ClassVar[str]
    live: ClassVar[bool] = False
    moving: ClassVar[bool] = False

    @abstractmethod
    def suits(self, trained: Trained) -> bool:
        """Return whether it can be played with this model."""

    def opening(self, trained: Trained) -> Seen:
        """Return what is seen before the first move."""
        return {}

    def watched(self, trained: Trained, session: Session, is_new: bool) -> Move | None:
        """Return the next move for those who watch, `is_new` after a checkpoint; None where there is nothing to watch.

        A live play shows what it shows without a move.
        """
        return {} if self.live else None

    @abstractmethod
    def move(self, trained: Trained, session: Session, move: Move) -> Seen:
        """Return what is seen after a move; a move that makes no sense is a `ValueError`."""


def number(move: Move, name: str, low: float, high: float, default: float) -> float:
    """Return a number of a move, or say what it must be."""
    value = move.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"`{name}` must be a number from {low:g} to {high:g}. Got {str(value)[:40]!r}.")
    return value


def count(move: Move, name: str, low: int, high: int, default: int) -> int:
    """Return a whole number of a move, or say what it must be."""
    value = number(move, name, low, high, default)
    if not isinstance(value, int):
        raise ValueError(f"`{name}` must be a whole number. Got {value}.")
    return value


def flag(move: Move, name: str) -> bool:
    """Return whether a move asks for something."""
    value = move.get(name, False)
    if not isinstance(value, bool):
        raise ValueError(f"`{name}` must be true or false. Got {str(value)[:40]!r}.")
    return value


def choice(move: Move, name: str, known: tuple[str, ...]) -> str:
    """Return one of a few words of a move; the first where it is left out."""
    value = move.get(name, known[0])
    if value not in known:
        raise ValueError(f"`{name}` must be one of {', '.join(known)}. Got {str(value)[:40]!r}.")
    return str(value)
