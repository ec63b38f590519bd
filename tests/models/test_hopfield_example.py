"""The example runs, in smoke mode."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_capacity(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "hopfield.py"), "--smoke", "--output", str(tmp_path)]
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    known = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    done = subprocess.run(command, env=known, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["others"]["modern, 10 N patterns, one step"]["overlap"] > 0.9
    assert results["others"]["control: Hebb, 10 N patterns"]["overlap"] < 0.5
    assert (tmp_path / "capacity.png").stat().st_size > 10_000
