"""One hostile input: what is run, and whether it may be accepted."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Attack:
    """A hostile input of a kind. `command` are arguments of `harmonium`, or `call` is Python.

    `refuse`: to accept it (exit code 0, or no exception) is wrong. Others may be accepted or refused, with an answer.
    """

    kind: str
    name: str
    command: tuple[str, ...] = ()
    call: Callable[[], object] | None = None
    refuse: bool = False


def train(path: Path | str, *more: str) -> tuple[str, ...]:
    """Return the arguments that learn from a file as quickly as can be."""
    small = ("--n-hidden", "2", "--epochs", "1", "--batch-size", "8", "--no-report", "--no-evaluate", "-q", "-o", "run")
    kind = () if "--model" in more or str(path).endswith(TABLES) else ("--model", "rbm")
    sized = (
        ("--components", "1", "--shrinkage", "0.5", *small[2:]) if str(path).endswith(TABLES) and not more else small
    )
    return ("train", "--data", str(path), *kind, *more, *sized)


TABLES = (".csv", ".tsv", ".csv.gz", ".parquet")


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with one to four random changes: flips, cuts, repeats, zeros, garbage, huge numbers."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(out) + 1)
        n = rng.choice((1, 2, 4, 8, 64))
        what = rng.randrange(8)
        if what == 0 and out:
            out[at % len(out)] ^= 1 << rng.randrange(8)
        elif what == 1:
            del out[at:]
        elif what == 2:
            del out[at : at + n]
        elif what == 3:
            out[at : at + n] = bytes(n)
        elif what == 4:
            out[at : at + n] = b"\xff" * n
        elif what == 5:
            out[at:at] = rng.randbytes(n)
        elif what == 6:
            out[at:at] = out[at : at + 64] * rng.randint(1, 20)
        else:
            numbers = list(re.finditer(rb"\d+", bytes(out[:4096])))
            if numbers:
                found = rng.choice(numbers)
                out[found.start() : found.end()] = rng.choice((b"999999999999", b"-1", b"0", b"1e400", b"nan"))
    return bytes(out)
