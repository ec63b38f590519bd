"""What happens in the folder, told to all who watch: one task reads for everybody, each client has its own place."""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import json
import os
import re
import stat
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from harmonium.runs.folder import METRICS, finite
from harmonium.web.folder import Folder, Row
from harmonium.web.limits import LOG_BYTES, N_STREAMS
from harmonium.web.security import Refused

INTERVAL = 0.5
"""Seconds between two looks at the folder."""

PING = 15.0
"""Seconds after which a client that has nothing to hear hears that the line is open."""

_BATCH = 500  # lines in one event
_MARK = re.compile(r"(\d{1,15})-(\d{1,10})")


class Lines:
    """Lines as events, and where each ends: bytes so far, and their checksum. It only grows."""

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.ends = [(0, 0)]

    def take(self, content: bytes) -> bool:
        """Add the whole lines of what was read; return whether there was one."""
        whole = content[: content.rfind(b"\n") + 1]
        offset, checksum = self.ends[-1]
        for line in whole.splitlines(keepends=True):
            offset, checksum = offset + len(line), zlib.crc32(line, checksum)
            try:
                record = json.dumps(finite(json.loads(line)), allow_nan=False).encode()
            except (ValueError, RecursionError):
                record = b"null"  # a line that is damaged
            self.ends.append((offset, checksum))  # before its record: clients read meanwhile
            self.records.append(record)
        return bool(whole)

    def place(self, mark: str) -> int | None:
        """Return how many lines a client has heard that names this place, or None if it heard another file."""
        found = _MARK.fullmatch(mark)
        if found is None:
            return None
        wanted = int(found[1]), int(found[2])
        i = bisect.bisect_left(self.ends, wanted)
        return i if i < len(self.ends) and self.ends[i] == wanted else None

    def event(self, start: int) -> tuple[bytes, int]:
        """Return the lines from `start` on as one event, and where the next one starts."""
        stop = min(len(self.records), start + _BATCH)
        offset, checksum = self.ends[stop]
        return as_event("epochs", b"[" + b",".join(self.records[start:stop]) + b"]", f"{offset}-{checksum}"), stop


class Log:
    """A growing file of lines, each read once for all.

    A place in it is `offset-checksum`: how many bytes, and the CRC-32 of all of them. Whoever comes back with the place
    of the last event it heard goes on from there, after a restart of the server too; where the file has become another
    one (a run that went back to a checkpoint), the checksum differs and all is told anew: `lines` is then a new object.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.lines = path, Lines()
        self._identity: tuple[int, int] | None = None

    def poll(self) -> None:
        """Read what is new."""
        try:
            file = os.open(self.path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        except OSError:
            if self.lines.records:
                self.lines, self._identity = Lines(), None
            return
        with open(file, "rb") as stream:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode) or found.st_size > LOG_BYTES:
                return
            offset, checksum = self.lines.ends[-1]
            identity = found.st_dev, found.st_ino
            if self._identity != identity or found.st_size < offset:
                self._identity, content = identity, stream.read(found.st_size)
                if zlib.crc32(content[:offset]) != checksum or len(content) < offset:
                    anew = Lines()
                    anew.take(content)
                    self.lines = anew
                else:
                    self.lines.take(content[offset:])
            elif found.st_size > offset:
                stream.seek(offset)
                self.lines.take(stream.read(found.st_size - offset))


def as_event(name: str, data: bytes | Any, mark: str | None = None) -> bytes:
    """Return a server-sent event; data that are not bytes are written as JSON."""
    body = data if isinstance(data, bytes) else json.dumps(finite(data), allow_nan=False).encode()
    return (
        (b"" if mark is None else b"id: " + mark.encode() + b"\n")
        + b"event: "
        + name.encode()
        + b"\ndata: "
        + (body + b"\n\n")
    )


class Watcher:
    """Looks at the folder twice a second while somebody watches, and wakes those whose news there is."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.rows: dict[str, Row] = {}
        self.logs: dict[str, Log] = {}
        self.listeners: dict[str, int] = {}
        self.n_streams = 0
        self.closed = False
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._looking = asyncio.Lock()

    async def look(self) -> None:
        """Look once, in a thread, and wake everybody."""
        async with self._looking:
            self.rows = await asyncio.to_thread(self._look)
        self._news.set()
        self._news = asyncio.Event()

    def _look(self) -> dict[str, Row]:
        for log in list(self.logs.values()):
            log.poll()
        return {row["name"]: row for row in self.folder.rows()}

    def close(self) -> None:
        """Let all streams come to their end."""
        self.closed = True
        self._news.set()

    async def _run(self) -> None:
        while self.n_streams and not self.closed:
            await asyncio.sleep(INTERVAL)
            await self.look()

    @contextlib.asynccontextmanager
    async def _watching(self, name: str | None) -> AsyncIterator[None]:
        if self.n_streams >= N_STREAMS:
            raise Refused(429, f"{N_STREAMS} windows watch already. Close one.")
        self.n_streams += 1
        if name is not None:
            self.listeners[name] = self.listeners.get(name, 0) + 1
        try:
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._run())
            yield
        finally:
            self.n_streams -= 1
            if name is not None:
                self.listeners[name] -= 1
                if not self.listeners[name]:
                    del self.listeners[name]
                    self.logs.pop(name, None)

    async def _wait(self) -> bytes:
        """Wait for news; return the sign of life that a silent line needs, or nothing."""
        try:
            await asyncio.wait_for(self._news.wait(), PING)
        except TimeoutError:
            return b": still here\n\n"
        return b""

    async def table(self) -> AsyncIterator[bytes]:
        """Yield the whole table first, then the lines that changed and the names that are gone."""
        async with self._watching(None):
            await self.look()
            told = dict(self.rows)
            yield as_event("runs", list(told.values()))
            while not self.closed:
                sign = await self._wait()
                if sign:
                    yield sign
                rows = self.rows
                changed = [row for name, row in rows.items() if told.get(name) != row]
                gone = [name for name in told if name not in rows]
                told = dict(rows)
                if changed or gone:
                    yield as_event("changes", {"rows": changed, "gone": gone})

    async def run(self, name: str, mark: str) -> AsyncIterator[bytes]:
        """Yield what happens to one run: its line in the table, and its epochs from the place that `mark` names."""
        async with self._watching(name):
            path = await asyncio.to_thread(self.folder.path, name)
            log = self.logs.setdefault(name, Log(path / METRICS))
            await self.look()
            lines, told = log.lines, None
            place = lines.place(mark) if mark else 0
            if place is None:
                yield as_event("reset", {})
                place = 0
            while not self.closed:
                row = self.rows.get(name)
                if row is None:
                    yield as_event("gone", {"name": name})
                    return
                if log.lines is not lines:
                    lines, place = log.lines, 0
                    yield as_event("reset", {})
                while place < len(lines.records):
                    event, place = lines.event(place)
                    yield event
                if row != told:
                    yield as_event("state", row)
                    told = row
                if sign := await self._wait():
                    yield sign
