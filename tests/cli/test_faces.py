"""The command `reproduce faces`: what it refuses, and that a folder of other settings is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from harmonium.cli.entry import run
from harmonium.experiments import Faces
from harmonium.experiments.faces.recipe import DENSE, PAPER, RECIPES
from harmonium.models import DBN


def test_sizes_without_a_recipe_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "faces", "--size", "48"]) == 2
    assert "--size must be one of 32, 64. Got 48." in capsys.readouterr().err


def test_networks_without_a_recipe_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "faces", "--network", "deep"]) == 2
    assert "--network must be one of dense, conv, paper. Got deep." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--levels", "15"], "--levels is for layers with levels. Choose --network conv or paper."),
        (["--network", "conv", "--tuning"], "--tuning is for --network paper."),
        (["--network", "paper", "--activation", "step"], "must be one of sigmoid, relu, tanh, softplus"),
    ],
)
def test_what_a_network_has_not_is_refused(
    arguments: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["reproduce", "faces", "--output", str(tmp_path / "run"), *arguments]) == 2
    assert text in capsys.readouterr().err and not (tmp_path / "run").exists()


@pytest.mark.parametrize("size", [32, 64, 128])
def test_the_stack_of_the_paper(size: int) -> None:
    """Below its top machine, at every size: 4096 units in 4 x 4 places, then 1000, 500 and 200; flags change them."""
    recipe = RECIPES[PAPER][size]
    with torch.device("meta"):
        dbn = DBN.from_spec(recipe.layers, shape=(3, size, size), levels=recipe.levels)
    assert dbn.shapes[-4:] == [(256, 4, 4), (1000,), (500,), (200,)] and dbn.shapes[1][0] == 64
    other = recipe.adapted(levels=15, k=0.5, activation="tanh", rate=0.01)
    assert (other.levels, other.k, other.activation, other.tune_rate) == (15, 0.5, "tanh", 0.01)
    apart = recipe.adapted(tuning=False)
    assert (apart.tune_epochs, apart.layer_epochs) == (0, recipe.tune_epochs)


def test_a_folder_of_other_settings_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Faces(folder=tmp_path, seed=1, recipe=RECIPES[DENSE][32]).begin()
    before = (tmp_path / "config.toml").read_bytes()
    assert run(["reproduce", "faces", "--seed", "2", "--output", str(tmp_path)]) == 2
    assert "other settings" in capsys.readouterr().err
    assert (tmp_path / "config.toml").read_bytes() == before


def test_missing_data_is_said_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["reproduce", "faces", "--output", str(tmp_path / "run"), "--data-dir", str(tmp_path)]
    assert run(arguments) == 2
    assert "celebA_10k.tar.xz" in capsys.readouterr().err
