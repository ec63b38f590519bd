"""Fifty clients watch a model train: how much slower does it train, what does the page hold, is an event lost?

    python -m benchmarks.web_clients --clients 50 --minutes 10

A 784–500 RBM trains in a process of its own on one thread; the page is another process. Windows without clients and
with them take turns; what is compared is the time of an update, by the wall clock and by the processor's. Each client
loses its line now and then and comes back with the id of the last event that it heard; at the end every client must
have heard every epoch once and in order. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

N_ROWS = 2000


class Client:
    """One that watches, with a line that breaks."""

    def __init__(self, address: str, token: str, seed: int) -> None:
        self.host, _, self.port = address.partition(":")
        self.token, self.random = token, random.Random(seed)
        self.last, self.heard, self.n_breaks, self.resets = "", list[int](), 0, 0

    async def watch(self, until: float) -> None:
        while time.monotonic() < until:
            reader, writer = await asyncio.open_connection(self.host, int(self.port), limit=2**24)
            last = f"Last-Event-ID: {self.last}\r\n" if self.last else ""
            writer.write(
                f"GET /api/watch?run=run HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n"
                f"Authorization: Bearer {self.token}\r\n{last}\r\n".encode()
            )
            end = min(until, time.monotonic() + self.random.uniform(2, 20))
            event, place = "", ""
            try:
                while (left := end - time.monotonic()) > 0:
                    line = (await asyncio.wait_for(reader.readline(), left)).decode().rstrip("\r\n")
                    if line.startswith("event: "):
                        event = line[7:]
                    elif line.startswith("id: "):
                        place = line[4:]
                    elif line.startswith("data: ") and event == "epochs":
                        self.heard += [record["epoch"] for record in json.loads(line[6:])]
                        self.last = place
                    elif line.startswith("data: ") and event == "reset":
                        self.heard.clear()
                        self.resets += 1
            except TimeoutError:
                pass
            writer.close()
            self.n_breaks += 1


def position(folder: Path, pid: int) -> tuple[float, float, int]:
    """Return the wall clock, the processor time of the training, and how many updates it has made."""
    lines = (folder / "metrics.jsonl").read_bytes().splitlines()
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (
        time.monotonic(),
        (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK"),
        int(json.loads(lines[-1])["update"]),
    )


def memory(pid: int) -> float:
    """Return the megabytes that a process holds."""
    return (
        int(next(x for x in Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("VmRSS")).split()[1])
        / 1024
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--window", type=float, default=30.0, help="seconds of each window")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        x = np.random.default_rng(0).random((N_ROWS, 1, 28, 28)) < 0.3
        np.save(root / "x.npy", x.astype(np.uint8))
        (root / "runs").mkdir()
        command = [sys.executable, "-m", "harmonium.cli"]
        told = [
            "--data",
            str(root / "x.npy"),
            "--model",
            "rbm",
            "--n-hidden",
            "500",
            "--epochs",
            "1000000",
            "--objective",
            "cd",
            "--threads",
            "1",
            "--quiet",
            "--set",
            "training.track_likelihood=false",
            "-o",
            str(root / "runs" / "run"),
        ]
        training = subprocess.Popen([*command, "train", *told])
        page = subprocess.Popen(
            [*command, "serve", str(root / "runs"), "--port", "0", "--no-open", "--json"],
            stdout=subprocess.PIPE,
            text=True,
        )
        link = json.loads(page.stdout.readline())["link"]  # type: ignore[union-attr]
        address, token = link.removeprefix("http://").partition("/")[0], link.partition("token=")[2]
        folder = root / "runs" / "run"
        while not (folder / "metrics.jsonl").is_file() or (folder / "metrics.jsonl").stat().st_size < 2000:
            time.sleep(0.1)
        print(json.dumps(asyncio.run(measure(chosen, folder, training.pid, page.pid, address, token))))
        page.terminate()
        training.send_signal(signal.SIGTERM)
        training.wait()
        page.wait()


async def measure(chosen: Any, folder: Path, training: int, page: int, address: str, token: str) -> dict[str, Any]:
    """Take turns between windows with and without clients."""
    clients = [Client(address, token, i) for i in range(chosen.clients)]
    rates: dict[str, list[tuple[float, float]]] = {"without": [], "with": []}
    held, end = [], time.monotonic() + 60 * chosen.minutes
    while time.monotonic() < end:
        for name in ("without", "with"):
            until = time.monotonic() + chosen.window
            watching = [asyncio.create_task(client.watch(until)) for client in clients] if name == "with" else []
            await asyncio.sleep(2)
            wall, cpu, update = position(folder, training)
            await asyncio.sleep(chosen.window - 3)
            wall_, cpu_, update_ = position(folder, training)
            await asyncio.gather(*watching)
            rates[name].append(((wall_ - wall) / (update_ - update), (cpu_ - cpu) / (update_ - update)))
            held.append(memory(page))
            print(name, rates[name][-1], f"{held[-1]:.0f} MB", file=sys.stderr, flush=True)
    last = [asyncio.create_task(client.watch(time.monotonic() + 3)) for client in clients]
    await asyncio.gather(*last)
    lost = [client for client in clients if client.heard != list(range(1, len(client.heard) + 1))]
    wall, cpu = (
        statistics.median(b[i] for b in rates["with"]) / statistics.median(a[i] for a in rates["without"])
        for i in (0, 1)
    )
    return {
        "clients": chosen.clients,
        "windows": len(rates["with"]),
        "wall_ratio": round(wall, 4),
        "cpu_ratio": round(cpu, 4),
        "breaks": sum(client.n_breaks for client in clients),
        "epochs_heard": sorted({len(client.heard) for client in clients}),
        "clients_with_gaps": len(lost),
        "resets": sum(client.resets for client in clients),
        "page_megabytes": [round(min(held)), round(max(held))],
    }


if __name__ == "__main__":
    main()
