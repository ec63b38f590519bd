"""Who may talk to the page, and what it never gives away."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from harmonium.web import limits
from harmonium.web.security import Access
from harmonium.web.serve import Settings
from tests.web.conftest import Client, served
from tests.web.wait import until

SECRET = "a secret outside of the folder"


@pytest.fixture(scope="module")
def beside(root: Path) -> Path:
    """Secrets beside the folder, and links to them inside."""
    secret = root.parent / "secret.txt"
    secret.write_text(SECRET)
    (root.parent / "other").mkdir()
    (root.parent / "other" / "config.toml").write_text('[data]\nname = "bars-and-stripes"\n')
    (root / "linked").symlink_to(root.parent / "other")
    inside = root / "links-inside"
    inside.mkdir()
    (inside / "config.toml").symlink_to(root.parent / "other" / "config.toml")
    half = root / "links-metrics"
    half.mkdir()
    (half / "config.toml").write_text('[data]\nname = "bars-and-stripes"\n')
    (half / "metrics.jsonl").symlink_to(secret)
    return secret


def test_the_page_is_for_everybody_and_what_it_shows_is_not(client: Client) -> None:
    assert client.ask("GET", "/", token=False)[0] == 200
    status, seen = client.ask("GET", "/api/runs", token=False)
    assert status == 401 and "link" in seen["error"]
    assert client.ask("GET", "/api/runs", token=False, headers={"Authorization": "Bearer wrong"})[0] == 401
    assert client.ask("GET", f"/api/runs?token={client.token}", token=False)[0] == 401  # never in an address
    assert client.ask("GET", "/api/runs")[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "127.0.0.1@evil.example", "evil:80:80"])
def test_other_names_are_refused(client: Client, host: str) -> None:
    assert client.ask("GET", "/api/runs", headers={"Host": host})[0] == 421
    assert client.ask("GET", "/", headers={"Host": host})[0] == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1"])
def test_other_pages_are_refused(client: Client, origin: str) -> None:
    status, _ = client.ask("POST", "/api/stop", {"run": "bars"}, headers={"Origin": origin})
    assert status == 403
    assert client.ask("GET", "/api/runs", headers={"Origin": f"http://{client.address}"})[0] == 200


def test_hosts_of_an_open_server() -> None:
    access = Access("t", ("127.0.0.1", "localhost", "box"), any_address=True)
    assert access.admits("box:80") and access.admits("10.0.0.7:8765") and access.admits("[fe80::1]:80")
    assert not access.admits("evil.example") and not access.admits("10.0.0.7.evil.example")
    assert not Access("t").admits("10.0.0.7:8765")


def test_headers(client: Client) -> None:
    line = client.connect()
    line.request("GET", "/")
    answer = line.getresponse()
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff" and answer.headers["cache-control"] == "no-store"
    page = answer.read().decode()
    line.close()
    assert not any(word in page for word in ("<script>", "onclick", "style=", "http:", "https:"))


@pytest.mark.parametrize(
    "name",
    [
        "linked",
        "links-inside",
        "../other",
        "..",
        "bars/../../other",
        "/etc",
        "bars\0",
        "%2e%2e/other",
        "bars/checkpoints",
    ],
)
def test_nothing_outside_is_opened(client: Client, beside: Path, name: str) -> None:
    for what in ("run", "plays", "watch"):
        status, seen = client.get(what, run=name)
        assert status == 404 and SECRET not in json.dumps(seen)
    for what in ("stop", "resume"):
        assert client.post(what, run=name)[0] == 404


def test_links_inside_a_run_are_said_and_not_followed(client: Client, beside: Path) -> None:
    status, seen = client.get("run", run="links-metrics")
    assert status == 200 and "symbolic link" in seen["row"]["error"] and SECRET not in json.dumps(seen)
    events = client.events(run="links-metrics")
    name, _, row = next(events)
    assert name == "state" and row["status"] == "broken"
    events.close()


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e%2fapp.py", "/static/..%5capp.py", "/static/x", "/etc/passwd"]
)
def test_no_file_but_the_pages_own(client: Client, path: str) -> None:
    assert client.ask("GET", path)[0] == 404


def test_data_outside_of_the_folder_are_not_read(client: Client, root: Path, made: Path, beside: Path) -> None:
    run = root / "reads-outside"
    run.mkdir()
    for name in ("model.safetensors", "metrics.jsonl"):
        (run / name).write_bytes((made / "bars" / name).read_bytes())
    (run / "config.toml").write_text(f'[data]\nname = "{beside}"\n[model]\nkind = "rbm"\n')
    status, seen = client.get("plays", run="reads-outside")
    assert status == 409 and "keeps nothing" in seen["error"]
    status, seen = client.post("resume", run="reads-outside")
    assert status == 422 and "outside of the runs folder" in seen["error"]


def test_bodies_have_a_size(client: Client) -> None:
    too_long = {"Content-Length": str(limits.BODY_BYTES + 1)}
    assert client.ask("POST", "/api/stop", headers=too_long)[0] == 413
    line = client.connect()  # the same without saying how long
    line.putrequest("POST", "/api/stop")
    line.putheader("Authorization", f"Bearer {client.token}")
    line.putheader("Transfer-Encoding", "chunked")
    line.endheaders()
    with contextlib.suppress(OSError, http.client.HTTPException):  # the server may close the line before all is sent
        for _ in range(20):
            line.send(b"%x\r\n%s\r\n" % (2**16, b"x" * 2**16))
        line.send(b"0\r\n\r\n")
        assert line.getresponse().status == 413
    line.close()
    assert client.ask("POST", "/api/stop", b"[" * 100_000)[0] == 400  # no depth is too deep


def test_a_slow_body_is_not_waited_for(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harmonium.web.security.BODY_SECONDS", 0.2)
    host, _, port = client.address.partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as line:
        head = f"POST /api/stop HTTP/1.1\r\nHost: {client.address}\r\nAuthorization: Bearer {client.token}\r\n"
        line.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        assert b" 408 " in line.recv(1000)


def test_a_body_that_drips_is_not_waited_for(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harmonium.web.security.BODY_SECONDS", 1.0)
    host, _, port = client.address.partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as line:
        head = f"POST /api/stop HTTP/1.1\r\nHost: {client.address}\r\nAuthorization: Bearer {client.token}\r\n"
        line.sendall(f"{head}Content-Length: 100000\r\n\r\n".encode())
        line.settimeout(0.05)
        seen = b""
        with contextlib.suppress(ConnectionError):
            for _ in range(600):  # a byte each time: none of them is late
                line.sendall(b" ")
                with contextlib.suppress(TimeoutError):
                    seen += line.recv(1000)
                if seen:
                    break
        assert b" 408 " in seen


def test_a_line_that_asks_for_nothing_is_closed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harmonium.web.lines.HEAD_SECONDS", 0.5)
    for client in served(Settings(root, port=0)):
        host, _, port = client.address.partition(":")
        for begun in (b"", b"GET / HTTP/1.1\r\nHost: "):
            with socket.create_connection((host, int(port)), timeout=30) as line:
                line.sendall(begun)
                assert line.recv(1000) == b""  # where it waited for ever before
        line = client.connect()  # one that asks twice lives on between
        for _ in range(2):
            line.request("GET", "/")
            assert line.getresponse().read()
        line.close()
        events = client.events()  # and so does a stream, for longer than a head may take
        assert next(events)[0] == "runs"
        shutil.copytree(root / "bars", root / "later")
        assert next(data for kind, _, data in events if kind == "changes")["rows"][0]["name"] == "later"
        events.close()
        shutil.rmtree(root / "later")


def answers(client: Client) -> bool:
    try:
        return client.get("runs")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def test_the_number_of_lines_is_limited(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harmonium.web.lines.N_LINES", 3)
    for client in served(Settings(root, port=0)):
        place = client.address.partition(":")[0], int(client.address.partition(":")[2])
        idle = [socket.create_connection(place, timeout=30) for _ in range(3)]
        idle[0].sendall(f"GET / HTTP/1.1\r\nHost: {client.address}\r\n\r\n".encode())
        assert b" 200 " in idle[0].recv(1000)  # those that are there are answered
        assert not answers(client)
        for line in idle:
            line.close()
        until(lambda client=client: answers(client))  # type: ignore[misc]  # others again when they have gone


def test_the_number_of_streams_is_limited(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harmonium.web.watch.N_STREAMS", 2)
    for client in served(Settings(root, port=0)):
        streams = [client.events() for _ in range(2)]
        assert [next(stream)[0] for stream in streams] == ["runs", "runs"]
        status, seen = client.get("watch")
        assert status == 429 and "Close one" in seen["error"]
        for stream in streams:
            stream.close()


def test_nothing_is_written_by_looking(client: Client, root: Path) -> None:
    def written() -> Iterator[tuple[str, int, int]]:
        for folder, _, files in os.walk(root):
            for name in files:
                found = os.lstat(os.path.join(folder, name))
                yield os.path.join(folder, name), found.st_size, found.st_mtime_ns

    before = sorted(written())
    client.get("runs")
    for name in ("bars", "moons", "memory", "table", "classes"):
        assert client.get("run", run=name)[0] == 200 and client.get("plays", run=name)[0] == 200
    client.play("bars", "chains", {"steps": 2})
    assert sorted(written()) == before
