"""The examples run, in smoke mode."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(script: str, out: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "examples" / script), "--smoke", "--output", str(out), *arguments]
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    known = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths, **environment}
    return subprocess.run(command, env=known, capture_output=True, text=True, check=False)


def test_digits(tmp_path: Path) -> None:
    done = run("jem_digits.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 seeds finished" in done.stdout
    (result,) = json.loads((tmp_path / "results.json").read_text())
    assert 0 <= result["accuracy"] <= 1 and result["rollbacks"] == 0
    assert (tmp_path / "samples.png").stat().st_size > 1000


def test_mnist(tmp_path: Path, data_dir: Path) -> None:
    done = run("jem_mnist.py", tmp_path, HARMONIUM_DATA=str(data_dir))
    assert done.returncode == 0, done.stderr
    (result,) = json.loads((tmp_path / "results.json").read_text())
    assert {"test_error", "calibration_error", "auroc_free_energy", "fpr95_slope"} <= set(result)
    again = run("jem_mnist.py", tmp_path, "--baseline", HARMONIUM_DATA=str(data_dir))
    assert again.returncode == 0 and "'seed'" not in again.stdout  # the seed is not run again


def test_densities(tmp_path: Path) -> None:
    done = run("densities_2d.py", tmp_path, "--seeds", "1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("has mass 1.00000 on the grid") == 3  # the true densities are normalized
    assert "| objective | moons | mixture | pinwheel |" in done.stdout
    results = json.loads((tmp_path / "results.json").read_text())
    assert all(len(results[data]) == 6 for data in ("moons", "mixture", "pinwheel"))
    assert (tmp_path / "densities.png").stat().st_size > 10_000
