"""Fifty clients watch a model train: how much slower does it train, what does the page hold, is an event lost?

    python -m benchmarks.web_clients --clients 50 --pairs 8 --log clients.jsonl

A 784–500 RBM trains in a process of its own on one thread; the page is another process, the clients are a third.
Stretches without clients and with them take turns. What is compared is the time of an update, by the wall clock and by
the processor's, over the whole epochs of a stretch: each stretch with clients with the mean of the two without before
and after it, so that slow drifts cancel; the error is that of the mean of these ratios. Each client loses its line now
and then and comes back with the id of the last event that it heard; at the end every client must have heard every
epoch once and in order. With `--look` a client does all that an open window of a run does: it looks at the chains as
often as it is told to, and at the other pictures after each checkpoint. Prints one line of JSON, and with `--log` adds
it to a file; `--pool` prints what the lines of such a file say together, pairs left out during which other processes of
the computer took more than a tenth of a processor.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

N_ROWS, OTHERS = 2000, 0.1
TRAINING = (
    "--model rbm --n-hidden 500 --epochs 1000000 --objective cd --threads 1 --quiet "
    "--set training.track_likelihood=false"
).split()


class Client:
    """One that watches, with a line that breaks."""

    def __init__(self, address: str, token: str, seed: int, looks: bool) -> None:
        self.host, _, self.port = address.partition(":")
        self.token, self.random, self.looks, self.name = token, random.Random(seed), looks, f"client {seed}"
        self.last, self.heard, self.n_breaks, self.resets = "", list[int](), 0, 0
        self.version, self.seen, self.n_moves, self.n_refused = "", "", 0, 0

    async def watch(self, until: float) -> None:
        """Follow the run until then, line after line."""
        window = asyncio.create_task(self.look(until)) if self.looks else None
        while time.monotonic() < until:
            await self.listen(min(until, time.monotonic() + self.random.uniform(2, 20)))
            self.n_breaks += 1
        if window is not None:
            await window

    async def listen(self, end: float) -> None:
        """Hear events on one line."""
        reader, writer = await self.ask("GET /api/watch?run=run", self.last and f"Last-Event-ID: {self.last}\r\n")
        event, place = "", ""
        with contextlib.suppress(TimeoutError):
            while (left := end - time.monotonic()) > 0:
                line = (await asyncio.wait_for(reader.readline(), left)).decode().rstrip("\r\n")
                if line.startswith("event: "):
                    event = line[7:]
                elif line.startswith("id: "):
                    place = line[4:]
                elif line.startswith("data: ") and event == "epochs":
                    self.heard += [record["epoch"] for record in json.loads(line[6:])]
                    self.last = place
                elif line.startswith("data: ") and event == "state":
                    self.version = json.loads(line[6:])["model_version"]
                elif line.startswith("data: ") and event == "reset":
                    self.heard.clear()
                    self.resets += 1
        writer.close()

    async def look(self, until: float) -> None:
        """Do what an open window does beside: chains that move, and pictures after each checkpoint."""
        looked = 0.0
        while time.monotonic() < until:
            seen = await self.answer("GET /api/look?run=run&play=chains")
            if self.version != self.seen and time.monotonic() > looked + 3:
                self.seen, looked = self.version, time.monotonic()
                for play in ("filters", "reconstructions"):
                    await self.answer(f"GET /api/look?run=run&play={play}")
            await asyncio.sleep(seen["again"] if seen else 1.0)

    async def answer(self, what: str) -> Any:
        """Ask for something and read it whole; None where it is refused."""
        reader, writer = await self.ask(what, "Connection: close\r\n")
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        self.n_moves += 1
        self.n_refused += b" 200 " not in head[:20]
        return json.loads(body) if b" 200 " in head[:20] else None

    async def ask(self, what: str, more: str) -> Any:
        """Send a request on a line of its own."""
        reader, writer = await asyncio.open_connection(self.host, int(self.port), limit=2**24)
        head = f"{what} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nAuthorization: Bearer {self.token}\r\n{more}\r\n"
        writer.write(head.encode())
        return reader, writer


def pace(folder: Path, start: float, end: float) -> tuple[float, float]:
    """Return the seconds of an update by the wall clock and by the processor's, over the epochs between two times."""
    lines = [json.loads(line) for line in (folder / "timing.jsonl").read_bytes().splitlines()]
    inside = [line for line in lines if start <= line["time"] <= end]
    first, last = inside[0], inside[-1]
    n = last["update"] - first["update"]
    return (last["time"] - first["time"]) / n, (last["cpu_seconds"] - first["cpu_seconds"]) / n


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has taken."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")


def busy_seconds() -> float:
    """Return the processor time that all processes of this computer have taken together."""
    ticks = [int(tick) for tick in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(ticks[:3]) + sum(ticks[5:8])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Return the megabytes that a process holds."""
    held = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(held.split()[1]) / 1024


@contextlib.contextmanager
def training_and_page(root: Path) -> Iterator[tuple[Path, tuple[int, int], str, str]]:
    """Train a model and serve its folder; give the run, both processes, the page's address and its token."""
    np.save(root / "x.npy", (np.random.default_rng(0).random((N_ROWS, 1, 28, 28)) < 0.3).astype(np.uint8))
    folder = root / "runs" / "run"
    folder.parent.mkdir()
    command = [sys.executable, "-m", "harmonium.cli"]
    training = subprocess.Popen([*command, "train", "--data", str(root / "x.npy"), *TRAINING, "-o", str(folder)])
    page = subprocess.Popen(
        [*command, "serve", str(folder.parent), "--port", "0", "--no-open", "--json"], stdout=subprocess.PIPE, text=True
    )
    link = json.loads(page.stdout.readline())["link"]  # type: ignore[union-attr]
    while not (folder / "model.safetensors").is_file():
        time.sleep(0.1)
    try:
        yield (
            folder,
            (training.pid, page.pid),
            link.removeprefix("http://").partition("/")[0],
            link.partition("token=")[2],
        )
    finally:
        page.terminate()
        training.send_signal(signal.SIGTERM)
        training.wait()
        page.wait()


async def measure(chosen: Any, folder: Path, pids: tuple[int, int], address: str, token: str) -> dict[str, Any]:
    """Take turns between stretches without clients and with them."""
    page, own = pids[1], (*pids, os.getpid())
    others = list[float]()
    clients = [Client(address, token, i, chosen.look) for i in range(chosen.clients)]
    without, watched, held, busy = list[tuple[float, float]](), list[tuple[float, float]](), list[float](), 0.0
    for turn in range(2 * chosen.pairs + 1):
        is_watched = turn % 2 == 1
        seconds, before = chosen.watched if is_watched else chosen.without, cpu_seconds(page)
        until = time.monotonic() + seconds
        watching = [asyncio.create_task(client.watch(until)) for client in clients] if is_watched else []
        await asyncio.sleep(chosen.settle)
        start, rest = time.time(), busy_seconds() - sum(map(cpu_seconds, own))
        await asyncio.sleep(max(0.0, until - time.monotonic()))
        end = time.time()
        others.append((busy_seconds() - sum(map(cpu_seconds, own)) - rest) / (end - start))
        await asyncio.gather(*watching)
        (watched if is_watched else without).append(pace(folder, start, end))
        if is_watched:
            held.append(memory(page))
            busy += cpu_seconds(page) - before
        print(
            "with" if is_watched else "without",
            (watched if is_watched else without)[-1],
            f"{memory(page):.0f} MB",
            file=sys.stderr,
        )
    await asyncio.gather(*(client.watch(time.monotonic() + 3) for client in clients))
    lost = [client for client in clients if client.heard != list(range(1, len(client.heard) + 1))]
    ratios = [[2 * watched[i][k] / (without[i][k] + without[i + 1][k]) for i in range(chosen.pairs)] for k in range(2)]
    return {
        "clients": chosen.clients,
        "look": chosen.look,
        "seconds_watched": chosen.watched * chosen.pairs,
        "update_ms": round(1000 * statistics.mean(one[0] for one in without), 4),
        "wall_ratios": [round(ratio, 4) for ratio in ratios[0]],
        "cpu_ratios": [round(ratio, 4) for ratio in ratios[1]],
        "others": [round(max(others[2 * i : 2 * i + 3]), 3) for i in range(chosen.pairs)],
        "page_cpu_share": round(busy / (chosen.watched * chosen.pairs), 3),
        "page_megabytes": [round(one) for one in held],
        "breaks": sum(client.n_breaks for client in clients),
        "epochs": [min(len(client.heard) for client in clients), max(len(client.heard) for client in clients)],
        "clients_with_gaps": len(lost),
        "resets": sum(client.resets for client in clients),
        "moves": sum(client.n_moves for client in clients),
        "moves_refused": sum(client.n_refused for client in clients),
    }


def pooled(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what several measurements say together: the mean ratios with their standard errors."""
    found: dict[str, Any] = {}
    for name in ("wall_ratios", "cpu_ratios"):
        all_ratios = [r for line in lines for r, busy in zip(line[name], line["others"], strict=True) if busy < OTHERS]
        error = statistics.stdev(all_ratios) / len(all_ratios) ** 0.5 if len(all_ratios) > 1 else None
        found[name] = {"mean": round(statistics.mean(all_ratios), 4), "error": error and round(error, 4)}
        found[name]["pairs"] = len(all_ratios)
    for name in ("seconds_watched", "breaks", "clients_with_gaps", "resets", "moves", "moves_refused"):
        found[name] = sum(line[name] for line in lines)
    found["page_megabytes"] = [one for line in lines for one in line["page_megabytes"]]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--pairs", type=int, default=8, help="stretches with clients")
    parser.add_argument("--watched", type=float, default=40.0, help="seconds of a stretch with clients")
    parser.add_argument("--without", type=float, default=15.0, help="seconds of one without")
    parser.add_argument("--settle", type=float, default=2.0, help="seconds at its start that do not count")
    parser.add_argument("--look", action="store_true", help="clients move chains and look at pictures too")
    parser.add_argument("--log", type=Path, help="a file of results, to which this one is added")
    parser.add_argument("--pool", type=Path, help="only say what the results in such a file say together")
    chosen = parser.parse_args()
    if chosen.pool:
        lines = [json.loads(line) for line in chosen.pool.read_text().splitlines()]
        for look in (False, True):
            if some := [line for line in lines if line["look"] == look]:
                print(json.dumps({"look": look, **pooled(some)}))
        return
    with tempfile.TemporaryDirectory() as place, training_and_page(Path(place)) as (folder, pids, address, token):
        found = asyncio.run(measure(chosen, folder, pids, address, token))
    print(json.dumps(found))
    if chosen.log:
        with chosen.log.open("a") as file:
            file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
