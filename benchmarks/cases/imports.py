"""How long `import harmonium` and its first name take beyond `import torch`: names are imported when asked for."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.runner import OURS, Bar, Case, Contender

SCRIPT = """
import time, torch
started = time.perf_counter()
import harmonium
harmonium.RBM
print(time.perf_counter() - started)
"""


def _seconds() -> float:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    return float(done.stdout)


def _build(quick: bool) -> list[Contender]:
    return [Contender(OURS, _seconds, "in a new process that has imported torch already", measured=True)]


CASES = [Case("import", "`import harmonium` and `harmonium.RBM` beyond `import torch`", _build, (Bar(0.3),), unit="s")]
