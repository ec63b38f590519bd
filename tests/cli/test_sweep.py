"""A sweep trains every combination once, goes on where it was, and says what failed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from harmonium.cli.entry import run
from harmonium.cli.searching import Search
from harmonium.cli.sweeping import make_trials, sweep_command
from harmonium.cli.trial import Trial, validation_nats
from harmonium.runs import Run

CONFIG = """
[data]
name = "bars-and-stripes"
[training]
epochs = 1
n_chains = 8
[run]
threads = 1
report = false
[sweep]
"model.n_hidden" = [2, 3]
"training.learning_rate" = [0.1]
"""


def test_every_combination_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(CONFIG)
    assert run(["sweep", "grid.toml", "--jobs", "2"]) == 0
    out = capsys.readouterr().out
    names = ["n_hidden-2_learning_rate-0.1", "n_hidden-3_learning_rate-0.1"]
    assert all(name in out for name in names) and "nats a sample" in out
    assert (tmp_path / "sweeps/grid/compare.html").is_file()
    assert [Run.open(tmp_path / "sweeps/grid" / name).config.model.n_hidden for name in names] == [2, 3]
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "sweeps/grid").glob("*/metrics.jsonl")}
    assert run(["sweep", "grid.toml", "-q"]) == 0
    assert made == {path: path.stat().st_mtime_ns for path in made}  # nothing is trained twice


def test_several_sweeps_of_one_folder_share_the_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(CONFIG)
    settings = tomllib.loads(CONFIG)
    first, second = make_trials(settings, settings.pop("sweep"), tmp_path / "sweeps/grid")
    held = first.claim()
    assert held is not None and first.claim() is None  # another process would be refused alike
    assert run(["sweep", "grid.toml"]) == 0
    assert "1 runs are being trained by others" in capsys.readouterr().out
    assert second.done() and not first.folder.exists()
    held.release()  # as when its holder dies
    assert run(["sweep", "grid.toml", "-q"]) == 0
    assert first.done() and first.claim() is None  # what is done is nobody's


def test_a_search_may_live_in_a_database(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    settings = tomllib.loads(SEARCH)
    spaces, url = settings.pop("sweep"), f"sqlite:///{tmp_path}/tried.db"
    one, other = (Search(settings, spaces, tmp_path / "runs", 2, None, url) for _ in range(2))
    mine, theirs = next(iter(one)), [trial.folder.name for trial in other]
    assert mine.folder.name == "trial-000" and set(theirs) == {"trial-000", "trial-001"}  # one search of two
    (tmp_path / "search.toml").write_text(SEARCH)
    with pytest.raises(ValueError, match="--optuna N"):
        sweep_command(tmp_path / "search.toml", tmp_path, storage=url)


def test_errors_before_anything_is_trained(tmp_path: Path) -> None:
    ising = {"data": {"name": "ising"}}
    (tmp_path / "empty.toml").write_text('[data]\nname = "ising"\n')
    with pytest.raises(ValueError, match="needs a section"):
        sweep_command(tmp_path / "empty.toml", tmp_path)
    with pytest.raises(ValueError, match="n_hidden"):
        make_trials(ising, {"model.n_hidden": [2, "many"]}, tmp_path)
    with pytest.raises(ValueError, match="given twice"):
        make_trials(ising, {"model.n_hidden": [2, 2]}, tmp_path)
    with pytest.raises(ValueError, match="needs --optuna"):
        make_trials(ising, {"model.n_hidden": {"low": 2, "high": 4}}, tmp_path)
    trials = make_trials(ising, {"model.n_hidden": [2, 3], "run.seed": [0, 1, 2]}, tmp_path)
    assert len(trials) == 6 and not any(trial.done() for trial in trials)


SEARCH = """
[data]
name = "ising"
options.n_samples = 200
[training]
epochs = 1
n_chains = 8
[run]
threads = 1
report = false
[sweep]
"model.n_hidden" = { low = 2, high = 4 }
"training.learning_rate" = { low = 0.001, high = 0.1, log = true }
"training.objective" = ["cd", "pcd"]
"""


def searched(folder: Path, n: int = 3) -> Search:
    settings = tomllib.loads(SEARCH)
    return Search(settings, settings.pop("sweep"), folder, n, None)


def trained(trial: Trial) -> Run:
    settings = trial.folder.with_suffix(".toml")
    settings.write_text(trial.config.to_toml())
    assert run(["train", str(settings), "--output", str(trial.folder), "--quiet"]) == 0
    return Run.open(trial.folder)


def test_a_search_goes_on_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "sweeps/search"
    first = searched(folder)
    told, begun, lost = (trial for trial, _ in zip(iter(first), range(3), strict=False))
    for trial in (told, begun, lost):
        section = trial.config.training
        assert 2 <= trial.config.model.n_hidden <= 4 and 0.001 <= section.learning_rate <= 0.1
        assert section.objective in ("cd", "pcd")
    first.tell(told, trained(told))
    trained(begun)  # it ended when nobody listened
    second = searched(folder)
    assert {trial.folder for trial in second} == {lost.folder}  # the one that was begun, and no fourth
    assert [trial.config for trial in second.trials()] == [trial.config for trial in (told, begun, lost)]
    second.tell(lost, trained(lost))
    values = [trial.value for trial in second.study.get_trials()]
    assert values == [validation_nats(Run.open(trial.folder)) for trial in (told, begun, lost)]

    Path("search.toml").write_text(SEARCH)  # all three are done: the command compares them
    assert run(["sweep", "search.toml", "--optuna", "3"]) == 0
    out = capsys.readouterr().out
    best = folder / f"trial-{values.index(max(values)):03d}"
    assert "3 of them done" in out and (folder / "compare.html").is_file()
    assert out.index(best.name) == min(out.index(f"trial-{i:03d}") for i in range(3))  # the best by validation first


def test_a_run_that_fails_is_not_chosen_by(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    search = searched(tmp_path, 1)
    trial = next(iter(search))
    search.tell(trial, None)
    assert [found.state.name for found in search.study.get_trials()] == ["FAIL"]
    assert list(search) == []


def test_a_space_that_is_none_is_said(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    for space in ({"low": 3}, {"low": 3, "high": 2}, {"low": 0.0, "high": 1.0, "log": True}, [], [[1]], "many"):
        with pytest.raises(ValueError, match="must be a list to choose from, or a range"):
            Search({"data": {"name": "ising"}}, {"model.n_hidden": space}, tmp_path, 1, None)
