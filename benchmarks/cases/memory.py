"""Peak memory of an epoch on uint8 rows, held in memory or mapped from a file, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import harmonium as hm
from benchmarks.cases.contrastive import bernoulli, fit_epoch
from benchmarks.rows import binary_rows
from benchmarks.runner import OURS, Bar, Case, Contender
from harmonium.learning import Callback

COPY_MIB = 45  # of 60,000 × 784 rows as uint8; as float32 it would take 179


def status(name: str) -> float:
    """Return a figure of this process in MiB: `VmRSS`, what it holds, or `VmHWM`, the most that it held."""
    file = Path("/proc/self/status")
    if not file.exists():
        raise RuntimeError("Peak memory is read from /proc/self/status, which this system does not have.")
    lines = dict(line.split(":", 1) for line in file.read_text(encoding="utf-8").splitlines())
    return int(lines[name].split()[0]) / 1024


def main(n_rows: int, n_visible: int, n_hidden: int, n_threads: int) -> None:
    """Train for an epoch and print the growth during it and the peak of the process, in MiB."""
    torch.set_num_threads(n_threads)
    x = binary_rows(n_rows, n_visible)
    _epoch(bernoulli(8, 4), x[:16, :8])
    model = bernoulli(n_visible, n_hidden)
    before = status("VmRSS")
    _epoch(model, x)
    print(status("VmHWM") - before, status("VmHWM"))


def _epoch(model: hm.RBM, x: Tensor) -> None:
    epoch = fit_epoch(lambda: model, x)
    if epoch.prepare is not None:
        epoch.prepare()
    epoch.run()


class Watch(Callback):
    """Notes the most memory that is the process's own, not pages of a file, after any update."""

    def __init__(self) -> None:
        self.most = 0.0

    def on_update(self, training: object) -> None:
        """Look."""
        self.most = max(self.most, status("RssAnon"))


def mapped(n_rows: int, n_visible: int, n_hidden: int, n_threads: int) -> None:
    """Train for an epoch on a file that is mapped read only; print what grew but for pages of the file, and these."""
    torch.set_num_threads(n_threads)
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/rows.npy", binary_rows(n_rows, n_visible).numpy())
        x = np.load(f"{folder}/rows.npy", mmap_mode="r")
        _epoch(bernoulli(8, 4), torch.from_numpy(np.array(x[:16, :8])))
        model, watch = bernoulli(n_visible, n_hidden), Watch()
        before, of_files = status("RssAnon"), status("RssFile")
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        hm.fit(model, x, hm.CD(), optimizer=optimizer, epochs=1, monitors=[], callbacks=[watch])
        print(watch.most - before, status("RssFile") - of_files)


def _figures(quick: bool, what: str = "main") -> Callable[[], tuple[float, float]]:
    sizes = (512, 64, 32) if quick else (60_000, 784, 500)

    def figures() -> tuple[float, float]:
        call = f"from benchmarks.cases import memory; memory.{what}(*{(*sizes, torch.get_num_threads())})"
        done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=True)
        growth, peak = map(float, done.stdout.split())
        return growth, peak

    return figures


def _build(quick: bool) -> list[Contender]:
    figures = _figures(quick)
    last: list[float] = []

    def growth() -> float:
        last[:] = figures()
        return last[0]

    return [
        Contender(
            OURS,
            growth,
            "growth from just before `hm.fit` to the peak during it; an epoch of 16 tiny rows goes before, so that "
            "what PyTorch loads at its first use is not counted",
            measured=True,
        ),
        Contender("whole process", lambda: last[1], "with Python, PyTorch and the 45 MiB of rows", measured=True),
    ]


def _build_mapped(quick: bool) -> list[Contender]:
    figures = _figures(quick, "mapped")
    last: list[float] = []

    def growth() -> float:
        last[:] = figures()
        return last[0]

    return [
        Contender(OURS, growth, "the most after any update, pages of the file not counted", measured=True),
        Contender("pages of the file", lambda: last[1], "which the system may drop at any time", measured=True),
    ]


CASES = [
    Case(
        "memory",
        "peak memory of a CD-1 epoch, 784×500, 60,000 rows (uint8)",
        _build,
        (Bar(COPY_MIB),),
        unit="MiB",
        note="the bar is what one more copy of the rows would take; as float32 it would be four times as large",
        max_repeats=5,
    ),
    Case(
        "mapped",
        "memory of a CD-1 epoch, 784×500, 60,000 rows (uint8) in a file that is mapped read only",
        _build_mapped,
        (Bar(COPY_MIB),),
        unit="MiB",
        note="the bar is what a copy of the rows would take",
        max_repeats=5,
    ),
]
