"""The command `reproduce faces`: what it refuses, and that a folder of other settings is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from harmonium.cli.entry import run
from harmonium.experiments import Faces
from harmonium.experiments.faces.recipe import DENSE, RECIPES


def test_sizes_without_a_recipe_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "faces", "--size", "48"]) == 2
    assert "--size must be one of 32, 64. Got 48." in capsys.readouterr().err


def test_networks_without_a_recipe_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "faces", "--network", "deep"]) == 2
    assert "--network must be one of dense, conv. Got deep." in capsys.readouterr().err


def test_a_folder_of_other_settings_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Faces(folder=tmp_path, seed=1, recipe=RECIPES[DENSE][32]).begin()
    before = (tmp_path / "config.toml").read_bytes()
    assert run(["reproduce", "faces", "--seed", "2", "--out", str(tmp_path)]) == 2
    assert "other settings" in capsys.readouterr().err
    assert (tmp_path / "config.toml").read_bytes() == before


def test_missing_data_is_said_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["reproduce", "faces", "--out", str(tmp_path / "run"), "--data-dir", str(tmp_path)]
    assert run(arguments) == 2
    assert "celebA_10k.tar.xz" in capsys.readouterr().err
