"""What the browser shows where something is wrong or shut: broken runs, no key, frames in other pages."""

from __future__ import annotations

import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from harmonium.web.launch import launch
from tests.web.conftest import Client
from tests.web.wait import until
from tests.web.window import WIDE, Window


@pytest.fixture(autouse=True)
def _no_troubles(window: Window) -> Iterator[None]:
    window.troubles.clear()
    yield
    assert not window.troubles


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("config.toml", b"no settings [", {"": "config.toml", "/play": "config.toml", "/settings": "cannot be read"}),
        ("model.safetensors", b"\0" * 30, {"": "model.safetensors", "/play": "model.safetensors"}),
        ("data.json", b"[1", {"": "data.json", "/play": "data.json"}),
        ("metrics.jsonl", b"\xff\n{\n", {"/play": "metrics.jsonl", "/settings": "bars-and-stripes"}),
        ("evaluation.json", b"{", {"": "evaluation.json", "/play": "evaluation.json"}),
        ("model.safetensors", None, {"/play": "No model yet"}),
        ("metrics.jsonl", None, {"": "Nothing measured yet"}),
    ],
)
def test_a_broken_run_is_no_blank_page(
    window: Window, root: Path, file: str, content: bytes | None, told: dict[str, str]
) -> None:
    folder = root / "damaged"
    shutil.copytree(root / "bars", folder)
    (folder / file).unlink(missing_ok=True)
    if content is not None:
        (folder / file).write_bytes(content)
    for tab, words in told.items():
        window.go(f"/run/damaged{tab}")
        until(lambda words=words: words in window.page.inner_text("main"))  # type: ignore[misc]
    shutil.rmtree(folder)
    until(lambda: "This run is gone" in window.page.inner_text("main"))
    window.troubles[:] = [text for text in window.troubles if "Failed to load" not in text]  # what is refused


def test_who_has_no_key_is_told(browser: Any, client: Client, window: Window) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"http://{client.address}/")
    until(lambda: "This page needs its link" in page.inner_text("main"))
    page.goto(f"http://{client.address}/#/run/{quote('no such run')}?token={client.token}")
    until(lambda: "There is nothing here" in page.inner_text("main"))
    page.goto(f"http://{client.address}/#/nowhere")
    until(lambda: "There is no such page" in page.inner_text("main"))
    context.close()


@pytest.mark.parametrize("notebook", [True, False])
def test_inside_the_cell_of_a_notebook(browser: Any, made: Path, window: Window, notebook: bool) -> None:
    """A page at another port of this computer shows ours in a frame; only one that was opened for notebooks."""
    page = launch(made, run="bars", notebook=notebook)

    class Cell(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f"<!doctype html><title>cell</title>{page._repr_html_()}".encode())

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cell) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        context = browser.new_context(viewport=WIDE)
        cell, errors = context.new_page(), list[str]()
        cell.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
        cell.goto(f"http://localhost:{server.server_port}/")
        inside = cell.frame_locator("iframe")
        if notebook:
            inside.locator(".chart canvas").first.wait_for(timeout=120_000)
            assert "bars" in inside.locator("h1").inner_text() and not [e for e in errors if "favicon" not in e]
        else:
            until(lambda: any("frame-ancestors" in text for text in errors))
        context.close()
        server.shutdown()
    page.close()
