"""The page beside a training (`--watch`), and inside a notebook: in processes of their own."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harmonium.web import show
from tests.web.wait import until

ENDLESS = ["train", "--data", "bars-and-stripes", "--n-hidden", "4", "--epochs", "1000000", "--threads", "1"]


def ask(link: str, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    line = http.client.HTTPConnection(link.removeprefix("http://").partition("/")[0], timeout=60)
    line.request(method, path, body, {"Authorization": f"Bearer {link.partition('token=')[2]}"})
    answer = line.getresponse()
    held = answer.status, answer.read()
    line.close()
    return held


@contextmanager
def watched(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Give a process that trains, and the link of the page that it serves."""
    process = subprocess.Popen(
        [sys.executable, "-m", "harmonium.cli", *arguments, "--watch", "--json"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        events = (json.loads(line) for line in process.stdout)
        yield process, next(event["link"] for event in events if event["event"] == "serving")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_training_is_watched_and_stopped_from_its_page(tmp_path: Path) -> None:
    with watched(tmp_path, *ENDLESS, "--output", "runs/one") as (process, link):
        assert "#/run/one?" in link  # it opens at the run

        def training() -> bool:
            (row,) = json.loads(ask(link, "GET", "/api/runs")[1])["runs"]
            return bool(row["status"] == "training" and row["n_epochs"])

        until(training)
        assert ask(link, "POST", "/api/stop", b'{"run": "one"}')[0] == 200
        assert process.stdout is not None
        process.stdout.read()
        assert process.wait(60) == 143  # stopped by another, and saved
        with pytest.raises(ConnectionError):  # not on a terminal: the page ends with the training
            ask(link, "GET", "/")


def test_the_demo_is_watched(tmp_path: Path) -> None:
    with watched(tmp_path, "demo") as (process, link):
        until(lambda: json.loads(ask(link, "GET", "/api/runs")[1])["runs"])
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        process.stdout.read()
        assert process.wait(60) == 130


def test_a_notebook_may_show_it(made: Path) -> None:
    page = show(made, run="bars", height=300)
    try:
        frame = page._repr_html_()
        assert frame.startswith('<iframe src="http://127.0.0.1:') and "#/run/bars?token=" in frame and "300" in frame
        line = http.client.HTTPConnection(page.link.removeprefix("http://").partition("/")[0], timeout=60)
        line.request("GET", "/")
        policy = line.getresponse().headers["content-security-policy"]
        line.close()
        ancestors = policy.partition("frame-ancestors ")[2]
        assert "http://localhost:*" in ancestors and "http://127.0.0.1:*" in ancestors and " * " not in f" {ancestors} "
    finally:
        page.close()
    assert page.process.poll() is not None


def test_a_folder_that_cannot_be_served_has_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ValueError, match="could not be served"):
        show(tmp_path / "file")
