"""The guided tours that go on, each with machines of its own; `harmonium.runs.plays.lesson` computes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from harmonium.runs.plays.lesson import Lesson
from harmonium.web.limits import N_SESSIONS


class Tours:
    """The lessons by their sessions; the one that rested longest is forgotten first."""

    def __init__(self) -> None:
        self._lessons: OrderedDict[str, Lesson] = OrderedDict()

    def move(self, session: str, move: dict[str, Any]) -> dict[str, Any]:
        """Make a move of one tour."""
        lesson = self._lessons.pop(session, None) or Lesson()
        self._lessons[session] = lesson
        while len(self._lessons) > N_SESSIONS:
            self._lessons.popitem(last=False)
        return lesson.move(move)
