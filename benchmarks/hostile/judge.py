"""What becomes of a hostile input: each is run in a process of its own, with a clock and a look at its memory."""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.hostile.attack import Attack
from harmonium.cli.entry import run

SECONDS = 30.0
"""Of a processor; the clock may show four times as much on a machine that is busy."""
GIGABYTE = 10**9

ANSWERS = (ValueError, TypeError, OSError, IndexError, KeyError, ImportError)
"""What Python code may raise as an answer; its text must say something."""


@dataclass(frozen=True)
class Verdict:
    """What an attack led to: `answer`, or what is wrong; the memory of its process at its peak, in bytes."""

    attack: Attack
    outcome: str
    text: str
    peak: int
    seconds: float


def judged(attacks: Iterable[Attack], folder: Path) -> Iterator[Verdict]:
    """Run attacks one after another, each in a fork of this process, inside a folder of its own."""
    torch.set_num_threads(1)
    for number, attack in enumerate(attacks):
        place = folder / f"attack-{number}"
        place.mkdir()
        yield one(attack, place)


def one(attack: Attack, place: Path) -> Verdict:
    """Run one attack in a fork and say what became of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _in_child(attack, place, writing)
    os.close(writing)
    text, hung = _read_within(reading, 4 * SECONDS)
    os.close(reading)
    if hung:
        os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    seconds, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
    if hung or seconds > SECONDS:
        return Verdict(attack, "hang", "", peak, seconds)
    if not os.WIFEXITED(status) or not text:
        return Verdict(attack, "crash", f"status {status}", peak, seconds)
    found = json.loads(text)
    outcome, words = _outcome(attack, found["code"], found["text"])
    if outcome == "answer" and peak > GIGABYTE:
        outcome = "memory"
    return Verdict(attack, outcome, words, peak, seconds)


def _outcome(attack: Attack, code: int, text: str) -> tuple[str, str]:
    if code == -1 or "Traceback" in text or "went wrong that should not" in text:
        return "traceback", text
    if code == 0:
        return ("wrong acceptance" if attack.refuse else "answer"), text
    return ("answer" if text.strip() else "silence"), text


def _in_child(attack: Attack, place: Path, writing: int) -> None:
    """Do it, report, and leave without the parent's clean-up."""
    said, code = io.StringIO(), 0
    os.chdir(place)
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if attack.call is not None:
                attack.call()
            else:
                code = run(attack.command)
        except ANSWERS as error:
            code = 2 if attack.call is not None else -1
            said.write(f"{type(error).__name__}: {error}" if code == 2 else traceback.format_exc())
        except BaseException:  # noqa: BLE001  (whatever it is, it is what we look for)
            code = -1
            said.write(traceback.format_exc())
    with os.fdopen(writing, "w") as file:
        json.dump({"code": code, "text": said.getvalue()[-2000:]}, file)
    sys.stdout.flush()
    os._exit(0)


def _read_within(reading: int, seconds: float) -> tuple[str, bool]:
    """Return what a process writes before it ends, and whether it took longer; time asleep is not counted."""
    parts, left = [], seconds
    while left > 0:
        begin = time.monotonic()
        if select.select([reading], [], [], 1.0)[0]:
            part = os.read(reading, 65536)
            if not part:
                return b"".join(parts).decode(errors="replace"), False
            parts.append(part)
        left -= min(2.0, time.monotonic() - begin)  # more in one turn: the machine, or this process, was stopped
    return "", True
