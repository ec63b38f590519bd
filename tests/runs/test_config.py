from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harmonium.runs import KINDS, ConfigError, read_config, resolve
from harmonium.runs.build import build_schedule
from harmonium.runs.config import read_toml


def test_flags_win_over_file_over_recipe_over_defaults() -> None:
    file = {"data": {"name": "moons"}, "model": {"kind": "gaussian-rbm"}, "training": {"epochs": 3, "n_steps": 2}}
    config = resolve(file, {"training": {"n_steps": 7}})
    assert (config.training.epochs, config.training.n_steps) == (3, 7)
    assert config.model.n_hidden == 16  # the recipe
    assert config.training.momentum == 0.0  # the default


def test_the_written_configuration_is_the_same_one(tmp_path: Path) -> None:
    config = resolve({"data": {"name": "moons", "options": {"noise": 0.05}}, "run": {"seed": 3}})
    (tmp_path / "config.toml").write_text(config.to_toml())
    assert read_config(tmp_path / "config.toml") == config


@pytest.mark.parametrize("pair", [(data, name) for name, kind in KINDS.items() for data in kind.recipes])
def test_every_recipe_is_valid_and_never_binarizes(pair: tuple[str, str]) -> None:
    config = resolve({"data": {"name": pair[0]}, "model": {"kind": pair[1]}})
    # Patterns that are stored, classes and depth: recipes that say how they were made in the line of their data.
    assert config.data.binarize == "none" or pair[1] in ("hopfield", "class-rbm", "dbm", "network")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "No data is chosen"),
        ({"data": {"name": "moons", "nose": 1}}, r"\[data\] nose is not a setting. There are: name, "),
        ({"data": {"name": "moons"}, "modl": {}}, r"\[modl\] is not a setting. There are: data, model"),
        ({"data": {"name": "moons"}, "model": {"kind": "mlp"}}, r"\[model\] kind must be one of rbm, .* Got 'mlp'"),
        ({"data": {"name": "moons"}, "training": {"epochs": "many"}}, r"\[training\] epochs must be a valid integer"),
        ({"data": {"name": "moons"}, "training": {"momentum": 1.0}}, r"\[training\] momentum must be less than 1"),
        (
            {"data": {"name": "moons"}, "training": {"final_learning_rate": 0.1, "schedule": "constant"}},
            "final_learning_rate .* schedule",
        ),
    ],
)
def test_errors_are_in_words(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        resolve(settings)


def test_a_broken_file_says_where(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("[data\n")
    with pytest.raises(ConfigError, match="bad.toml is not valid TOML"):
        read_toml(path)
    with pytest.raises(ConfigError, match="There is no configuration file"):
        read_toml(tmp_path / "absent.toml")


@pytest.mark.parametrize(("schedule", "middle"), [("linear", 0.55), ("cosine", 0.55)])
def test_schedules_go_from_one_rate_to_the_other(schedule: str, middle: float) -> None:
    import torch

    settings = {"schedule": schedule, "learning_rate": 1.0, "final_learning_rate": 0.1, "epochs": 10}
    section = resolve({"data": {"name": "ising"}, "training": settings}).training
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], section.learning_rate)
    plan = build_schedule(section, optimizer)
    assert plan is not None
    rates = [factor(epoch) for factor in plan.lr_lambdas for epoch in (0, 5, 10)]
    assert rates == pytest.approx([1.0, middle, 0.1])
