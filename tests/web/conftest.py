"""A folder of small runs of several kinds, and a real server of it in a thread."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from harmonium.cli.entry import run
from harmonium.web.serve import Serving, Settings, prepare
from tests.web.wait import until
from tests.web.window import CHROMIUM, FLAGS, WIDE, Window

SHORT = ["--threads", "1", "--no-report", "--no-evaluate", "--quiet"]
FILMS = [f"--set={key}" for key in ("data.options.n_samples=30", "data.options.n_frames=8", "data.options.size=6")]
PAIRS = [f"--set={key}" for key in ("data.options.n_samples=200", "data.options.size=8", "gated-rbm.factors=4")]
TABLE = "weight,color\n" + "\n".join(
    f"{2 + (i % 7) / 10 + 3 * (i % 2):.1f},{'red' if i % 2 else 'blue'}" for i in range(60)
)
RATINGS = "user,item,rating\n" + "\n".join(
    f"{u},film {k},{1 + (u * k + u) % 5}" for u in range(15) for k in range(8) if (u + k) % 3
)


@dataclass
class Client:
    """Talks to the server as a browser does."""

    serving: Serving

    @property
    def token(self) -> str:
        return self.serving.link.partition("token=")[2]

    @property
    def address(self) -> str:
        return self.serving.link.removeprefix("http://").partition("/")[0]

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.address, timeout=60)

    def ask(
        self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None, token: bool = True
    ) -> tuple[int, Any]:
        """Return the status of an answer and what it holds: JSON where it is, else bytes."""
        line = self.connect()
        known = {"Authorization": f"Bearer {self.token}"} if token else {}
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        line.request(method, path, content, {**known, **(headers or {})})
        answer = line.getresponse()
        held = answer.read()
        line.close()
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        return answer.status, json.loads(held) if is_json else held

    def get(self, what: str, **values: str) -> tuple[int, Any]:
        return self.ask("GET", f"/api/{what}?{urlencode(values)}")

    def post(self, what: str, **values: Any) -> tuple[int, Any]:
        return self.ask("POST", f"/api/{what}", values)

    def play(self, name: str, play: str, move: dict[str, Any], session: str = "a") -> dict[str, Any]:
        status, seen = self.post("play", run=name, play=play, session=session, move=move)
        assert status == 200, seen
        return dict(seen)

    def events(self, last: str = "", **values: str) -> Iterator[tuple[str, str, Any]]:
        """Yield the events of a stream as (name, id, data)."""
        line = self.connect()
        headers = {"Authorization": f"Bearer {self.token}"} | ({"Last-Event-ID": last} if last else {})
        line.request("GET", f"/api/watch?{urlencode(values)}", headers=headers)
        answer = line.getresponse()
        assert answer.status == 200, answer.read()
        try:
            event = {"event": "", "id": "", "data": ""}
            for raw in answer:
                text = raw.decode().rstrip("\n")
                if text:
                    key, _, value = text.partition(": ")
                    event[key] = value
                elif event["event"]:
                    yield event["event"], event["id"], json.loads(event["data"])
                    event = {"event": "", "id": "", "data": ""}
        finally:
            line.close()


def make_runs(root: Path) -> None:
    """Train small runs of the kinds that plays are for."""
    table, ratings = root / "table.csv", root / "ratings.csv"
    table.write_text(TABLE)
    ratings.write_text(RATINGS)
    bars = ["--data", "bars-and-stripes"]
    kinds = {
        "bars": [*bars, "--n-hidden", "6", "--epochs", "4"],
        "memory": [*bars, "--model", "hopfield", "--set", "hopfield.n_patterns=3"],
        "moons": ["--data", "moons", "--model", "gaussian-rbm", "--epochs", "1", "--set", "data.options.n_samples=600"],
        "classes": ["--data", "digits", "--model", "class-rbm", "--epochs", "1", "--n-hidden", "16"],
        "table": ["--data", str(table), "--epochs", "1", "--set", "table.components=2", "--set", "table.shrinkage=0.1"],
        "films": ["--data", "bouncing-balls", "--model", "temporal-rbm", "--epochs", "1", "--n-hidden", "5", *FILMS],
        "pairs": ["--data", "shifted-dots", "--model", "gated-rbm", "--epochs", "1", "--n-hidden", "5", *PAIRS],
        "ratings": ["--data", str(ratings), "--model", "ratings", "--epochs", "2", "--n-hidden", "3"],
    }
    for name, arguments in kinds.items():
        assert run(["train", *arguments, *SHORT, "-o", str(root / name)]) == 0


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made") / "runs"
    root.mkdir()
    before = os.environ.pop("HARMONIUM_DATA", None)
    make_runs(root)
    if before is not None:
        os.environ["HARMONIUM_DATA"] = before
    return root


@pytest.fixture(scope="module")
def root(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the runs for the tests of one file to change."""
    return Path(shutil.copytree(made, tmp_path_factory.mktemp("served") / "runs"))


def served(settings: Settings) -> Iterator[Client]:
    """Serve a folder in a thread."""
    serving = prepare(settings)
    thread = threading.Thread(target=serving.run, daemon=True)
    thread.start()
    until(lambda: serving.server.started)
    yield Client(serving)
    serving.server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def client(root: Path) -> Iterator[Client]:
    yield from served(Settings(root, port=0))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real browser; the tests that need one are skipped in words where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright (extra dev)")
    if CHROMIUM is None:
        pytest.skip("the browser tests need Chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def window(browser: Any, client: Client) -> Iterator[Window]:
    """A window of it, which remembers what went wrong."""
    context = browser.new_context(viewport=WIDE)
    yield Window(context.new_page(), client)
    context.close()
