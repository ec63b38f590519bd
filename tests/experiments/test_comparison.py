"""Learning rules side by side: exact data, rates by validation, a folder that goes on and is never overwritten."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import harmonium as hm
from harmonium.experiments.comparison.comparison import RACES, Comparison, read_races
from harmonium.experiments.comparison.race import N_POINTS
from harmonium.experiments.comparison.rules import RULES, rules_for
from harmonium.experiments.comparison.summary import ends, summarize, table_of
from harmonium.experiments.comparison.teacher import Lesson, draw_rows, make_teacher, nats
from harmonium.plots.objectives import STYLES, objective_curves
from harmonium.testing import ExactLaw

SMALL = Comparison(
    n_visible=6, n_hidden=3, strengths=(1.0,), seeds=2, seconds=0.05, rates=(0.01, 0.1), n_rows=200,
    rules=("exact", "cd-1"),
)  # fmt: skip


def test_data_follow_the_teacher(generator: torch.Generator) -> None:
    """20,000 rows of 4 units against the counted law: the total variation is at the level of chance."""
    teacher = make_teacher("bernoulli", 4, 3, 1.0, generator=generator)
    n = 20_000
    rows = draw_rows(teacher, n, generator=generator)
    law = ExactLaw(teacher.double())
    found, p = law.frequencies({"visible": rows.double()}, ["visible"])
    score = (found - p).abs() / (p * (1 - p) / n).sqrt()
    assert score.max() < 5.5  # 16 comparisons: false alarms below 1e-6
    exact = (-teacher.energy(law.states["visible"]) - law.log_z).mean().item()
    assert nats(teacher, law.states["visible"])[0] == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("visible", ["bernoulli", "gaussian"])
def test_strong_teachers_are_balanced(visible: str) -> None:
    """Biases against half of the weights: hidden units are on half of the time, up to the noise of the biases."""
    teacher = make_teacher(visible, 8, 4, 2.0, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():  # without the noise it is exact
        teacher.visible_bias.copy_(-teacher.weight.sum(1) / 2)
        teacher.hidden_bias.copy_(-teacher.weight.sum(0) / 2 if visible == "bernoulli" else torch.zeros(4))
    teacher = teacher.double()
    law = hm.models.summation.configurations(teacher, ("hidden",), {})["hidden"]
    p = (-teacher.energy({"hidden": law})).softmax(0)
    assert torch.allclose(p @ law, torch.full((4,), 0.5).double(), atol=1e-6)


def test_a_lesson_knows_the_truth_and_the_baseline() -> None:
    lesson = Lesson("bernoulli", 6, 3, 2.0, seed=1, n_rows=500)
    again = Lesson("bernoulli", 6, 3, 2.0, seed=1, n_rows=500)
    assert torch.equal(lesson.train, again.train)
    assert not torch.equal(lesson.train, lesson.test)
    assert lesson.truth == pytest.approx(hm.log_likelihood(lesson.teacher, lesson.test).mean().value, abs=1e-4)
    assert lesson.independent < lesson.truth
    p = (lesson.train.sum(0) + 0.5) / 501
    by_hand = torch.where(lesson.test > 0.5, p, 1 - p).log().sum(1).mean().item()
    assert lesson.independent == pytest.approx(by_hand, abs=1e-3)


def test_rules_apply_where_they_make_sense() -> None:
    binary = rules_for(hm.RBM(hm.Bernoulli(4), hm.Bernoulli(2)), torch.zeros(1, 4))
    real = rules_for(hm.RBM(hm.Gaussian(4), hm.Bernoulli(2)), torch.zeros(1, 4))
    assert set(binary) | set(real) == set(RULES) == set(STYLES)
    assert {"ratio-matching", "probability-flow"} <= set(binary) - set(real)
    assert {"score-matching", "sliced-score-matching"} <= set(real) - set(binary)


def test_a_comparison_is_made_once_and_goes_on(tmp_path: Path) -> None:
    folder, said = tmp_path / "out", []
    summary = SMALL.run(folder, say=said.append)
    assert len(said) == SMALL.n_races == len(read_races(folder)) == 8
    races = (folder / RACES).read_text()
    (folder / RACES).write_text("".join(races.splitlines(keepends=True)[:-1]) + '{"cut short')  # stopped
    SMALL.run(folder, say=said.append)
    assert len(said) == 9
    assert (folder / RACES).read_text().count("\n") == 8
    with pytest.raises(ValueError, match="other settings"):
        replace(SMALL, seeds=3).run(folder)
    for result in summary["results"]:
        assert len(result["gaps"]) == 2
        assert all(len(gaps) == len(result["seconds"]) == N_POINTS for gaps in result["gaps"])
        best = max(result["validation"], key=lambda rate: result["validation"][rate])
        assert result["rate"] == float(best)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    with pytest.raises(ValueError, match="nothing is overwritten"):
        SMALL.run(tmp_path / "mine")


def _record(rule: str, seed: int, tests: list[float | None], *, diverged: bool = False) -> dict[str, object]:
    points = [(0.1, value, value) for value in tests]
    numbers = {"times": [0.1, 0.2], "n_updates": 10, "truth": -1.0, "independent": -3.0}
    return {"strength": 1.0, "rule": rule, "rate": 0.1, "seed": seed, "points": points, "diverged": diverged} | numbers


def test_the_table_says_what_the_runs_say() -> None:
    settings = {"strengths": [1.0], "rules": ["exact", "pcd"], "seeds": 2}
    records = [_record(rule, seed, [-2.0, -1.5 - seed / 2]) for rule in ("exact", "pcd") for seed in range(3)]
    records[3] = _record("pcd", 0, [-2.0], diverged=True)
    summary = summarize(settings, records)
    assert ends(summary["results"][0]) == [0.5, 1.0]
    assert summary["results"][1]["gaps"][0] == [1.0, None]
    table = table_of(summary).splitlines()
    assert table[2] == f"| exact | 0.750 ± {0.5 / math.sqrt(2):.3f} | 0.1 | 10 |"
    assert table[3] == "| pcd | 1.000 ± 0.000 (1 diverged) | 0.1 | 10 |"
    assert table[4] == "| independent units | 2.000 | | |"
    json.dumps(summary, allow_nan=False)
    axes = objective_curves(summary).axes[0]
    assert [line.get_label() for line in axes.get_lines()] == ["exact", "pcd", "independent units"]
    assert axes.get_lines()[0].get_ydata().tolist() == [1.0, 0.75]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"visible": "poisson"}, "--visible must be one of"),
        ({"rules": ("score-matching",)}, "cannot train bernoulli units"),
        ({"rules": ("magic",)}, "'magic' is not known"),
        ({"rates": (0.0,)}, "--rate must be positive"),
        ({"strengths": ()}, "--strength must be positive"),
    ],
)
def test_bad_settings(change: dict[str, object], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        replace(SMALL, **change)
