"""A kind of model is one file: this one is a kind, and it trains, resumes and reports on the real command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from pydantic import Field

from benchmarks.kill_resume import fingerprint
from harmonium.cli.entry import run
from harmonium.data import Data
from harmonium.models import RBM
from harmonium.plots import write_report
from harmonium.runs import KINDS, Config, Kind, Run, Section
from harmonium.runs.kinds import PanelMaker
from harmonium.runs.panels import Bars, Panel
from harmonium.runs.subject import Subject
from harmonium.units import Bernoulli, Spin

TINY = ["train", "--data", "ising", "--model", "spin-rbm", "--epochs", "3", "--threads", "1", "-q"]


# --- the file of a kind ----------------------------------------------------------------------------------------------
class SpinSettings(Section):
    """The settings of this kind: with a description, a flag."""

    reach: float = Field(default=0.01, gt=0, description="Standard deviation of the weights at the start.")
    hint: str = "none"


class SpinKind(Kind[SpinSettings]):
    """An RBM whose hidden units are -1 and 1."""

    name = "spin-rbm"
    summary = "RBM with hidden units -1 and 1"
    settings = SpinSettings
    unread = ("model.hidden",)
    recipes: ClassVar[dict[str, dict[str, Any]]] = {"*": {"model": {"n_hidden": 5}, "training": {"n_chains": 8}}}

    def build(self, config: Config, data: Data, *, generator: torch.Generator) -> RBM:
        rbm = RBM(Bernoulli(data.train[0].numel()), Spin(config.model.n_hidden), generator=generator)
        with torch.no_grad():
            rbm.weight.mul_(self.own(config).reach / 0.01)
        return rbm

    def sections(self) -> tuple[str | PanelMaker, ...]:
        return (*super().sections(), self.norms)

    def norms(self, subject: Subject) -> Panel:
        sizes = {f"unit {j}": w.norm().item() for j, w in enumerate(subject.model.weight.detach().T)}
        return Panel("Norms", "How much each unit says.", [Bars("norms", "The lengths of the weight vectors.", sizes)])


# --- what follows from it --------------------------------------------------------------------------------------------
@pytest.fixture(autouse=True)
def _registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HARMONIUM_DATA", raising=False)
    monkeypatch.setitem(KINDS, SpinKind.name, SpinKind())


def test_it_trains_with_its_flag_its_recipe_and_its_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*TINY, "--reach", "0.5", "--no-report", "-o", "one"]) == 0
    trained = Run.open("one")
    config, model = trained.config, trained.model()
    assert config.own == SpinSettings(reach=0.5) and config.model.n_hidden == 5 and config.training.n_chains == 8
    assert isinstance(model, RBM) and isinstance(model.hidden, Spin)
    assert "[spin-rbm]" in config.to_toml() and "hidden = " not in config.to_toml().replace("n_hidden", "")
    assert run([*TINY, "--no-report", "-o", "two"]) == 0
    assert Path("one/model.safetensors").read_bytes() != Path("two/model.safetensors").read_bytes()  # the flag did it
    write_report(trained, n_steps=5)
    text = Path("one/report.html").read_text()
    assert "How much each unit says." in text and Path("one/figures/norms.png").stat().st_size > 0
    assert run(["sample", "one", "-n", "3", "--steps", "2", "-o", "s.npy"]) == 0
    capsys.readouterr()
    assert run(["list", "."]) == 0
    assert "spin-rbm" in capsys.readouterr().out


def test_it_resumes_exactly() -> None:
    flags = ["--no-report", "--no-evaluate", "--set", "run.checkpoint_updates=1"]
    assert run([*TINY, *flags, "-o", "whole"]) == 0
    assert run([*TINY, *flags, "-o", "stopped"]) == 0
    for path in Run.open("stopped").checkpoints.paths()[1:]:  # as if it had been killed before it wrote these
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    Path("stopped/model.safetensors").unlink()
    assert run(["resume", "stopped", "-q"]) == 0
    assert fingerprint(Path("stopped")) == fingerprint(Path("whole"))


def test_it_is_told_and_its_mistakes_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["info"]) == 0
    assert "RBM with hidden units -1 and 1" in capsys.readouterr().out
    assert run(["train", "--help"]) == 0
    out = capsys.readouterr().out
    assert "--reach" in out and "--hint" not in out and "--model spin-rbm: RBM with hidden units" in out
    assert run(["train", "--data", "ising", "--reach", "1"]) == 2
    assert "[spin-rbm] is not for model 'rbm'" in capsys.readouterr().err
    assert run([*TINY, "--hidden", "spin"]) == 2
    assert "[model] hidden is not for model 'spin-rbm'" in capsys.readouterr().err
    assert run([*TINY, "--reach", "0"]) == 2
    assert "[spin-rbm] reach must be greater than 0. Got 0.0." in capsys.readouterr().err
    assert run([*TINY, "--set", "spin-rbm.rech=1"]) == 2
    assert "[spin-rbm] rech is not a setting. There are: reach, hint." in capsys.readouterr().err


def test_two_kinds_may_share_a_flag_and_none_may_hide_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Levels(Section):
        levels: int = Field(default=3, description="Levels of the units.")

    class Second(SpinKind):
        name = "second"
        settings = Levels  # type: ignore[assignment]

        def build(self, config: Config, data: Data, *, generator: torch.Generator) -> RBM:
            return RBM(Bernoulli(16), Spin(4), generator=generator)

    monkeypatch.setitem(KINDS, "second", Second())
    some = ["train", "--data", "ising", "--model", "second", "--epochs", "0", "-q", "--no-report", "--no-evaluate"]
    assert run([*some, "--levels", "7", "-o", "levels"]) == 0  # a flag of the dbn too
    assert Run.open("levels").config.own == Levels(levels=7)

    class Hiding(Section):
        epochs: int = Field(default=3, description="Something else.")

    monkeypatch.setattr(Second, "settings", Hiding)
    assert run(some) == 2
