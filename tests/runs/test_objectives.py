"""Objectives by their names in the settings."""

from __future__ import annotations

from typing import Any

import pytest

from harmonium.learning.objectives import PseudoLikelihood
from harmonium.learning.state import restore, snapshot
from harmonium.runs import prepare, resolve
from harmonium.runs.build import build_training
from harmonium.runs.choices import OBJECTIVES

REAL = {"score-matching", "sliced-score-matching", "denoising-score-matching"}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_run_learns_by_every_objective(name: str) -> None:
    data, model = ("moons", "gaussian-rbm") if name in REAL else ("bars-and-stripes", "rbm")
    config = resolve(
        {"data": {"name": data}, "model": {"kind": model, "n_hidden": 4}},
        {"training": {"objective": name, "epochs": 1, "track_likelihood": False}},
    )
    training = build_training(config, prepare(config))
    before = [p.detach().clone() for p in training._learning]
    training.run()
    assert training.update > 0
    assert all(bool(p.isfinite().all()) for p in training._learning)
    assert not any(bool((p == old).all()) for p, old in zip(training._learning, before, strict=True))


def test_what_an_objective_learns_of_its_own_is_resumed() -> None:
    """Noise-contrastive estimation carries log Z: stopped after two epochs it ends as one that was not."""
    settings = {"data": {"name": "bars-and-stripes"}, "model": {"n_hidden": 4}}
    config = resolve(settings, {"training": {"objective": "noise-contrastive", "epochs": 4, "track_likelihood": False}})
    whole, first, second = (build_training(config, prepare(config)) for _ in range(3))
    whole.run()
    first.epochs = 2
    first.run()
    restore(second, *snapshot(first))
    second.run()
    assert second.objective.measured() == whole.objective.measured()
    assert first.objective.measured() != whole.objective.measured()


def test_settings_of_rules() -> None:
    config = resolve({"data": {"name": "digits"}}, {"training": {"objective": "pseudo-likelihood", "n_units": 3}})
    assert OBJECTIVES["pseudo-likelihood"](config.training, None, None) == PseudoLikelihood(3)
    with pytest.raises(ValueError, match="noise-contrastive makes its noise"):
        OBJECTIVES["noise-contrastive"](config.training, None, None)


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        ("rbm", "score-matching", "Use RatioMatching"),
        ("dbn", "pseudo-likelihood", "is not for a dbn. Use cd, mean-field-cd, pcd"),
    ],
)
def test_objectives_that_a_kind_cannot_learn_by(kind: str, name: str, text: str) -> None:
    settings: dict[str, Any] = {"data": {"name": "digits"}, "model": {"kind": kind}, "training": {"objective": name}}
    if kind == "rbm":
        settings["data"]["binarize"] = "threshold"
    config = resolve(settings)
    with pytest.raises(ValueError, match=text):
        build_training(config, prepare(config))


def test_l1_decay_is_a_setting() -> None:
    config = resolve({"data": {"name": "bars-and-stripes"}}, {"training": {"l1_decay": 1e-3}})
    training = build_training(config, prepare(config))
    assert [repr(t) for t in training.transforms] == ["L1Decay(rate=0.001)"]
