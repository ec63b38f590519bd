"""Send a live page 10,000 requests that make little sense, and count what comes back.

    python -m benchmarks.web_fuzz --requests 10000

Paths, queries, bodies, headers, event ids, moves of plays and of the tour, half of them with the right token; some
are no HTTP at all. A secret lies beside the runs folder, and links inside it lead there: neither may ever be seen in
an answer, and no answer may be a 5xx. Prints one line of JSON, with the time that the slowest answer took.
"""

from __future__ import annotations

import argparse
import base64
import collections
import json
import random
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

SECRET = "a secret beside the folder 7f3a"
ROUTES = (
    "",
    "static/main.js",
    "api/runs",
    "api/watch",
    "api/run",
    "api/words",
    "api/plays",
    "api/look",
    "api/stop",
    "api/resume",
    "api/play",
    "api/tour",
    "api/",
    "static/",
    "favicon.ico",
)
ODD = (
    "..",
    "%2e%2e",
    "..%2f..%2fsecret.txt",
    "\\..\\",
    "%00",
    "a" * 3000,
    "é",
    "%ff%fe",
    ".",
    "//",
    "linked",
    "secret.txt",
    "bars/../../secret.txt",
    "/etc/passwd",
    "file:///etc/passwd",
    "links",
    "bars%2fmetrics.jsonl",
    "~",
    "$(id)",
    "'\"<script>",
)
PLAYS = ("drawing", "chains", "walk", "plane", "memory", "row", "filters", "reconstructions", "samples", "nothing")
KEYS = (
    "x",
    "known",
    "label",
    "steps",
    "beta",
    "n",
    "means",
    "restart",
    "fresh",
    "landscape",
    "action",
    "share",
    "which",
    "from",
    "to",
    "cells",
    "step",
    "v",
    "h",
    "pixels",
    "updates",
    "temperatures",
    "chains",
)
STEPS = ("energy", "law", "hidden", "sample", "learn", "fill", "estimate", "x")


def secrets_beside(root: Path) -> None:
    """Put a secret beside a folder, and links to it inside."""
    (root.parent / "secret.txt").write_text(SECRET)
    (root / "linked").symlink_to(root.parent)
    folder = root / "links"
    folder.mkdir()
    (folder / "config.toml").write_text('[data]\nname = "bars-and-stripes"\n')
    (folder / "metrics.jsonl").symlink_to(root.parent / "secret.txt")
    other = root / "points-outside"
    other.mkdir()
    (other / "config.toml").write_text(f'[data]\nname = "{root.parent / "secret.txt"}"\n')


class Fuzz:
    """Makes requests from a seed."""

    def __init__(self, address: str, token: str, runs: list[str], seed: int) -> None:
        self.address, self.token, self.runs = address, token, runs
        self.random = random.Random(seed)

    def value(self, depth: int = 0) -> Any:
        r = self.random
        kinds = [
            None,
            True,
            False,
            0,
            1,
            -1,
            r.randint(-(10**9), 10**9),
            1e308,
            -0.0,
            r.random(),
            "",
            "a" * r.randint(0, 50),
            "\x00",
            10**30,
            base64.b64encode(r.randbytes(r.choice((9, 16, 64, 784)))).decode(),
            r.choice(ODD),
            r.choice(("look", "store", "forget", "spoil", "recall")),
            [0, 1, 0, 1],
            [1, 0, 1],
            [None] * 9,
        ]
        if depth < 2 and r.random() < 0.15:
            return [self.value(depth + 1) for _ in range(r.randint(0, 4))]
        if depth < 2 and r.random() < 0.15:
            return {r.choice(KEYS + ("weight", "color")): self.value(depth + 1) for _ in range(r.randint(0, 4))}
        return r.choice(kinds)

    def body(self) -> bytes:
        r = self.random
        if r.random() < 0.15:
            return r.choice((b"", b"{", b"[" * 5000, r.randbytes(200), b"\xff\xfe", b"null", b"[]", b'"x"', b"NaN"))
        move: Any = {r.choice(KEYS): self.value() for _ in range(r.randint(0, 5))}
        if r.random() < 0.4:
            move["step"] = r.choice(STEPS)
        if r.random() < 0.1:
            move = self.value()
        whole: dict[str, Any] = {
            "run": self.name(),
            "play": r.choice(PLAYS),
            "session": str(r.randint(0, 5)),
            "move": move,
        }
        for key in list(whole):
            if r.random() < 0.08:
                whole[key] = self.value()
        return json.dumps(whole).encode()

    def name(self) -> str:
        return self.random.choice(self.runs) if self.random.random() < 0.6 else self.random.choice(ODD)

    def request(self) -> tuple[bytes, bool]:
        """Return a request, and whether it is whole, so that its answer is waited for."""
        r = self.random
        if r.random() < 0.03:
            raw = (r.randbytes(300), b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 50, b"POST / HTTP/1.1\r\n")
            return r.choice(raw), False
        path = r.choice(ROUTES) if r.random() < 0.85 else r.choice(ODD)
        posts = path in ("api/stop", "api/resume", "api/play", "api/tour")
        method = (
            ("POST" if posts else "GET")
            if r.random() < 0.8
            else r.choice(("GET", "GET", "POST", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "X"))
        )
        run = quote(self.name(), safe="/%") if r.random() < 0.7 else ""
        query = (
            f"?run={run}&play={r.choice(PLAYS)}"
            if r.random() < 0.6
            else r.choice(("", "?", "?run", "?run=&run=", "?%", "?" + "x" * 500))
        )
        body = self.body() if method in ("POST", "PUT") or r.random() < 0.05 else b""
        headers = {"Host": self.address, "Connection": "close"}
        if r.random() < 0.75:
            headers["Authorization"] = f"Bearer {self.token}"
        if body or r.random() < 0.2:
            headers["Content-Length"] = str(len(body))
        odd = (
            ("Origin", r.choice((f"http://{self.address}", "http://evil.example", "null", "é")), 0.2),
            ("Host", r.choice(("evil.example", "", "127.0.0.1", "[::1]:80", "a@b")), 0.06),
            ("Last-Event-ID", r.choice(("0-0", "5-5", "x", "9" * 60, "-", "12-\xff", "1-1-1")), 0.3),
            ("Content-Length", r.choice(("-1", "99999999999", "x", "1e3", "")), 0.04),
            ("Transfer-Encoding", "chunked", 0.02),
            ("Authorization", r.choice(("Bearer", "Bearer " + "x" * 43, "Basic eDp4", "é")), 0.1),
            ("X-" + "y" * 20, "z" * r.randint(0, 9000), 0.05),
            ("Upgrade", "websocket", 0.02),
        )
        headers |= {name: value for name, value, share in odd if r.random() < share}
        whole = "Transfer-Encoding" not in headers and headers.get("Content-Length", "0") == str(len(body))
        lines = [f"{method} /{path.lstrip('/')}{query} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
        return "\r\n".join(lines).encode("latin-1", "replace") + body, whole

    def send(self) -> tuple[int, bytes, float]:
        """Send a request; return the status (0 without one), the answer's first bytes and the seconds that it took."""
        host, _, port = self.address.partition(":")
        start, answer = time.perf_counter(), b""
        try:
            with socket.create_connection((host, int(port)), timeout=30) as line:
                content, whole = self.request()
                line.sendall(content)
                if not whole:
                    line.shutdown(socket.SHUT_WR)
                while len(answer) < 200_000:
                    part = line.recv(65536)
                    answer += part
                    if not part or b"text/event-stream" in answer[:2000]:  # it has no end
                        break
        except OSError:
            pass
        words = answer[:40].split(b" ")
        status = int(words[1]) if answer.startswith(b"HTTP/") and len(words) > 1 and words[1].isdigit() else 0
        return status, answer, time.perf_counter() - start


def fuzz(address: str, token: str, runs: list[str], n: int, seed: int = 0, n_threads: int = 8) -> dict[str, Any]:
    """Send n requests from several threads; return how many answers had which status, and what should not have been."""
    statuses: collections.Counter[int] = collections.Counter()
    wrong: list[str] = []
    slowest, lock = 0.0, threading.Lock()

    def work(k: int) -> None:
        nonlocal slowest
        one = Fuzz(address, token, runs, 1000 * seed + k)
        for _ in range(n // n_threads):
            status, answer, seconds = one.send()
            with lock:
                statuses[status] += 1
                slowest = max(slowest, seconds)
                if status >= 500 or SECRET.encode() in answer or token.encode() in answer:
                    wrong.append(repr(answer[:300]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {
        "requests": sum(statuses.values()),
        "statuses": dict(sorted(statuses.items())),
        "wrong": wrong[:5],
        "slowest": slowest,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    from harmonium.web.serve import Settings, prepare
    from tests.web.conftest import make_runs

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "runs"
        root.mkdir()
        make_runs(root)
        secrets_beside(root)
        names = [path.name for path in root.iterdir() if path.is_dir()]
        serving = prepare(Settings(root, port=0))
        threading.Thread(target=serving.run, daemon=True).start()
        while not serving.server.started:
            time.sleep(0.01)
        address, token = serving.link.removeprefix("http://").partition("/")[0], serving.link.partition("token=")[2]
        start = time.perf_counter()
        found = fuzz(address, token, names, chosen.requests, chosen.seed)
        found["seconds"] = time.perf_counter() - start
        serving.server.should_exit = True
    print(json.dumps(found))
    sys.exit(bool(found["wrong"]))


if __name__ == "__main__":
    main()
