from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from harmonium.runs import Checkpoints, DamagedCheckpointError
from harmonium.runs.atomic import remove_temporary, write_atomic


def save(checkpoints: Checkpoints, update: int) -> None:
    x = torch.arange(12.0).view(3, 4)
    checkpoints.save({"x": x.t(), "again": x[1:], "scalar": torch.tensor(update)}, {"update": update, "rate": 0.1})


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    assert checkpoints.load() is None
    save(checkpoints, 7)
    tensors, values = checkpoints.load() or ({}, {})
    assert values == {"update": 7, "rate": 0.1}
    assert torch.equal(tensors["x"], torch.arange(12.0).view(3, 4).t())
    assert tensors["scalar"].item() == 7


def test_the_last_three_are_kept_and_nothing_unfinished(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    for update in (1, 2, 10, 200, 200):
        save(checkpoints, update)
    assert [path.name for path in checkpoints.paths()] == ["update-000000002", "update-000000010", "update-000000200"]
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("name", ["state.safetensors", "state.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_damage_of_any_kind_falls_back(name: str, damage: str, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    save(checkpoints, 1)
    save(checkpoints, 2)
    path = checkpoints.paths()[-1] / name
    content = path.read_bytes()
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes(content[: len(content) // 2] if damage == "cut" else bytes([content[0] ^ 1]) + content[1:])
    said: list[str] = []
    loaded = checkpoints.load(on_damage=said.append)
    assert loaded is not None and loaded[1]["update"] == 1
    assert len(said) == 1 and "checkpoint before it" in said[0]


def test_all_damaged_is_an_error(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    save(checkpoints, 1)
    (checkpoints.paths()[0] / "manifest.json").write_text(json.dumps({"sha256": {}}))
    with pytest.raises(DamagedCheckpointError, match="None of the 1 checkpoints"):
        checkpoints.load()


def test_a_write_that_dies_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"old")
    program = (
        "import os, sys, pathlib; from harmonium.runs import atomic\n"
        "atomic.sync_folder = os.fsync = lambda _: os._exit(9)\n"
        "atomic.write_atomic(pathlib.Path(sys.argv[1]), b'new')"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program, str(path)], env=environment).returncode == 9
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2
    remove_temporary(tmp_path)
    assert list(tmp_path.iterdir()) == [path]
