"""Models held open for plays: few of them, each as its run last saved it, with what it keeps of its data."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from harmonium.runs import KINDS, Run
from harmonium.runs.folder import MODEL
from harmonium.runs.plays import Play, Session
from harmonium.runs.trained import Trained
from harmonium.web.compute import deadline
from harmonium.web.folder import Folder
from harmonium.web.limits import MOVING_SECONDS, N_MODELS, N_SESSIONS
from harmonium.web.security import Refused


@dataclass
class Opened:
    """A run with its model in memory. `version` is that of the file that the parameters were read from."""

    run: Run
    trained: Trained
    version: Any
    plays: dict[str, Play]


class Look(NamedTuple):
    """What was seen last, of which version of the model, and when."""

    version: Any
    time: float
    seen: dict[str, Any]


class Models:
    """Opens models and keeps the last few. All of it is called from one thread."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._open: OrderedDict[tuple[str, str], Opened] = OrderedDict()
        self._sessions: OrderedDict[tuple[str, ...], Session] = OrderedDict()
        self._seen: dict[tuple[str, str], Look] = {}

    def plays(self, name: str) -> list[dict[str, Any]]:
        """Return the plays that suit a run, each with what it begins with."""
        opened = self.get(name)
        return [
            {"name": play.name, "live": play.live, **({} if play.live else {"opening": play.opening(opened.trained)})}
            for play in opened.plays.values()
        ]

    def look(self, name: str, play: str) -> dict[str, Any]:
        """Return what a play shows to those who watch: the same to all, and computed once for all of them."""
        opened = self.get(name)
        chosen = _chosen(opened, play)
        version, known = (id(opened), opened.version), self._seen.get((name, play))
        is_new = known is None or known.version != version
        if known is not None and not is_new and not (chosen.moving and time.monotonic() > known.time + MOVING_SECONDS):
            return known.seen
        session = self._session(name, str(id(opened)), play, "")  # that of all who watch: those of others have names
        move = chosen.watched(opened.trained, session, is_new)
        if move is None:
            raise Refused(404, f"{play} is not something to look at: it is played with moves.")
        session.until = deadline()
        seen = chosen.move(opened.trained, session, move)
        self._seen[name, play] = Look(version, time.monotonic(), seen)
        while len(self._seen) > N_SESSIONS:
            self._seen.pop(next(iter(self._seen)))
        return seen

    def move(self, name: str, play: str, session: str, move: dict[str, Any]) -> dict[str, Any]:
        """Return what is seen after a move of a play that goes on."""
        opened = self.get(name)
        chosen = _chosen(opened, play)
        carried = self._session(name, str(id(opened)), play, f"session {session}")
        carried.until = deadline()
        try:
            return chosen.move(opened.trained, carried, move)
        except ValueError:
            carried.state.clear()
            raise

    def _session(self, *key: str) -> Session:
        session = self._sessions.pop(key, None)
        if session is None:
            session = Session(torch.Generator().manual_seed(abs(hash(key)) % 2**63))
        self._sessions[key] = session
        while len(self._sessions) > N_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def get(self, name: str) -> Opened:
        """Return a run with the parameters that it saved last."""
        found = self.folder.open(name)
        if not isinstance(found, Run):
            raise Refused(409, "This is an experiment: it has curves to watch, and no model to play with here.")
        run = Run(found.folder, found.config)  # one that holds no data
        if run.kept() is None:
            raise Refused(409, "This run keeps nothing of its data yet. harmonium resume RUN writes what is needed.")
        key = (name, run.config.to_toml())
        path = run.folder / MODEL
        if not path.is_file():
            raise Refused(409, "There is no model yet: the first checkpoint comes after a second of training or more.")
        stamp = path.stat()
        version = f"{stamp.st_ino}-{stamp.st_mtime_ns}"
        opened = self._open.pop(key, None)
        if opened is None:
            opened = _opened(run, version)
        elif opened.version != version:
            opened.trained.model.load_state_dict(run.parameters())
            opened.version = version
        self._open[key] = opened
        while len(self._open) > N_MODELS:
            self._open.popitem(last=False)
        return opened


def _chosen(opened: Opened, play: str) -> Play:
    if play not in opened.plays:
        raise Refused(
            404, f"There is no play {play[:40]!r} for this run. There are: {', '.join(opened.plays) or 'none'}."
        )
    return opened.plays[play]


def _opened(run: Run, version: str) -> Opened:
    trained = run.trained(rows=False)
    kind = KINDS[run.config.model.kind]
    return Opened(run, trained, version, {play.name: play for play in kind.plays() if play.suits(trained)})
