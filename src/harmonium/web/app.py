"""The routes of the page: each reads plain values, asks the folder, the watcher or a model, and answers in JSON."""

from __future__ import annotations

import asyncio
import contextlib
import json
import mimetypes
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

import harmonium
from harmonium.runs import Run
from harmonium.runs.folder import finite
from harmonium.runs.metric_words import CAPTIONS, COUNTS, LABELS, LEVELS, PANELS, TITLES
from harmonium.web.compute import Computer
from harmonium.web.control import Control
from harmonium.web.folder import TROUBLE, Folder, Missing, words
from harmonium.web.limits import LOOKS_SECOND
from harmonium.web.opened import Models
from harmonium.web.security import Access, Guard, Refused
from harmonium.web.tour import Tours
from harmonium.web.watch import Watcher

STATIC = Path(__file__).parent / "static"
INDEX = "index.html"
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}

LEAST_SECONDS = 0.25
"""How soon one who watches may look again."""

_MAX_NAME = 1000


class Page:
    """What the routes share: the folder, who watches it, what computes, and what may be written."""

    def __init__(self, folder: Folder, watcher: Watcher) -> None:
        self.folder = folder
        self.watcher = watcher
        self.computer = Computer()
        self.models = Models(folder)
        self.control = Control(folder)
        self.tours = Tours()
        self.files = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in TYPES}

    # --- the code of the page ---
    async def index(self, request: Request) -> Response:
        """Return the page itself."""
        return Response(self.files[INDEX], media_type=TYPES[".html"])

    async def static(self, request: Request) -> Response:
        """Return one of the files of the page, by its name in a table: no path is ever made of a request."""
        name = request.path_params["name"]
        if name not in self.files:
            raise Refused(404, "There is no such file.")
        return Response(self.files[name], media_type=TYPES.get(Path(name).suffix) or mimetypes.types_map[".txt"])

    # --- to watch ---
    async def runs(self, request: Request) -> Response:
        """Return the table of runs."""
        return answer({"runs": await asyncio.to_thread(self.folder.rows), "folder": str(self.folder.root)})

    async def watch(self, request: Request) -> Response:
        """Stream what happens: in the folder, or, with `run`, to one run."""
        name = request.query_params.get("run")
        if name is None:
            events = self.watcher.table()
        else:
            await asyncio.to_thread(self.folder.path, name[:_MAX_NAME])
            events = self.watcher.run(name, request.headers.get("last-event-id", "")[:64])
        first = await anext(events)  # what is refused is refused with a status
        return StreamingResponse(_with_first(first, events), media_type="text/event-stream")

    async def run(self, request: Request) -> Response:
        """Return what is known of one run beside its metrics: settings, scores, and how a resume from here failed."""
        name = asked(request)
        return answer(await asyncio.to_thread(self._described, name))

    def _described(self, name: str) -> dict[str, Any]:
        row = self.folder.row(name)
        seen: dict[str, Any] = {"row": row, "failure": self.control.failures.get(name, "")}
        if row["error"]:
            return seen
        opened = self.folder.open(name)
        if not isinstance(opened, Run):
            return seen | {"settings": opened.settings(), "summary": opened.name, "lines": opened.sentences()}
        scores = opened.evaluation()
        return seen | {
            "settings": opened.config.model_dump(exclude_none=True),
            "summary": opened.kind.summary,
            "lines": [] if scores is None else opened.kind.lines(scores),
        }

    async def words(self, request: Request) -> Response:
        """Return how metrics are named, put together and read, and the version."""
        return answer(
            {
                "version": harmonium.__version__,
                "panels": PANELS,
                "titles": TITLES,
                "labels": LABELS,
                "levels": LEVELS,
                "counts": sorted(COUNTS),
                "captions": CAPTIONS,
            }
        )

    # --- to stop and resume ---
    async def stop(self, request: Request) -> Response:
        """Ask a training to stop."""
        name = str((await body(request)).get("run"))
        return answer({"message": await asyncio.to_thread(self.control.stop, name)})

    async def resume(self, request: Request) -> Response:
        """Go on with a run."""
        name = str((await body(request)).get("run"))
        return answer({"message": await asyncio.to_thread(self.control.resume, name)})

    # --- to play ---
    async def plays(self, request: Request) -> Response:
        """Return what can be played with a run."""
        name = asked(request)
        return answer({"plays": await self.computer.run(lambda: self.models.plays(name))})

    async def look(self, request: Request) -> Response:
        """Return what is to be watched of the model, and after how many seconds to look again."""
        name, play = asked(request), request.query_params.get("play", "")
        seen = await self.computer.run(lambda: self.models.look(name, play))
        return answer({**seen, "again": max(LEAST_SECONDS, self.watcher.n_streams / LOOKS_SECOND)})

    async def play(self, request: Request) -> Response:
        """Make a move."""
        asked_for = await body(request)
        name, play, session = (str(asked_for.get(key, ""))[:_MAX_NAME] for key in ("run", "play", "session"))
        move = asked_for.get("move", {})
        if not isinstance(move, dict):
            raise Refused(400, "`move` must be an object.")
        return answer(await self.computer.run(lambda: self.models.move(name, play, session, move)))

    async def tour(self, request: Request) -> Response:
        """Make a move of the guided tour."""
        asked_for = await body(request)
        session, move = str(asked_for.get("session", ""))[:_MAX_NAME], asked_for.get("move", {})
        if not isinstance(move, dict):
            raise Refused(400, "`move` must be an object.")
        return answer(await self.computer.run(lambda: self.tours.move(session, move)))


def asked(request: Request) -> str:
    """Return the run that a request is about."""
    name = request.query_params.get("run")
    if name is None:
        raise Refused(400, "Name a run: ?run=NAME.")
    return name[:_MAX_NAME]


async def body(request: Request) -> dict[str, Any]:
    """Return the object that a request holds."""
    try:
        found = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise Refused(400, "The request must hold an object in JSON.") from None
    if not isinstance(found, dict):
        raise Refused(400, "The request must hold an object in JSON.")
    return found


def answer(seen: Any, status: int = 200) -> Response:
    """Return plain values as JSON; numbers that it does not know are null."""
    return JSONResponse(finite(seen), status)


async def _with_first(first: bytes, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for event in events:
        yield event


def make_app(folder: Folder, watcher: Watcher, access: Access) -> ASGIApp:
    """Return the page as an ASGI application, its guard before it."""
    page = Page(folder, watcher)

    async def refused(request: Request, error: Exception) -> Response:
        return answer({"error": words(error)}, getattr(error, "status", 404))

    async def impossible(request: Request, error: Exception) -> Response:
        return answer({"error": words(error)}, 422)

    async def unknown(request: Request, error: Exception) -> Response:
        return answer({"error": "There is nothing at this address."}, getattr(error, "status_code", 404))

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        page.computer.close()

    get: dict[str, Callable[..., Any]] = {
        "runs": page.runs,
        "watch": page.watch,
        "run": page.run,
        "words": page.words,
        "plays": page.plays,
        "look": page.look,
    }
    post = {"stop": page.stop, "resume": page.resume, "play": page.play, "tour": page.tour}
    app = Starlette(
        routes=[
            Route("/", page.index),
            Route("/static/{name}", page.static),
            *(Route(f"/api/{name}", route, methods=["GET"]) for name, route in get.items()),
            *(Route(f"/api/{name}", route, methods=["POST"]) for name, route in post.items()),
        ],
        exception_handlers={
            Refused: refused,
            Missing: refused,
            **dict.fromkeys(TROUBLE, impossible),
            404: unknown,
            405: unknown,
        },
        lifespan=lifespan,
    )
    return Guard(app, access)
