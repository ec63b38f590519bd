"""The real commands on tiny data."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from harmonium import native
from harmonium.cli.entry import run
from harmonium.runs import Run

TINY = ["--data", "bars-and-stripes", "--n-hidden", "6", "--epochs", "3", "--threads", "1", "--no-report"]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HARMONIUM_DATA", raising=False)


def process(*arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "harmonium.cli", *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_train_prints_its_configuration_and_an_exact_score(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", *TINY]) == 0
    out = capsys.readouterr().out
    assert out.index("settings of the recipe but for") < out.index("epoch 3/3") < out.index("test log-likelihood")
    assert "training.epochs = 3" in out and "learning_rate" not in out  # what differs from the recipe, and only that
    assert "(exact)" in out and "the exact law" in out  # the number, and how the data were made
    opened = Run.open("runs/bars-and-stripes-rbm-1")
    assert opened.finished and (opened.evaluation() or {})["test"]["kind"] == "exact"


def test_the_whole_configuration_is_shown_where_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", *TINY, "--show-config", "--no-evaluate"]) == 0
    out = capsys.readouterr().out
    assert "[training]" in out and "learning_rate" in out


def test_file_and_flags_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("my.toml").write_text('[data]\nname = "bars-and-stripes"\n[training]\nepochs = 9\nn_chains = 4\n')
    arguments = ["train", "my.toml", "--epochs", "1", "--set", "data.options.size=3", "--set", "model.hidden=spin"]
    assert run([*arguments, "--no-report", "--no-evaluate", "--output", "out", "--seed", "5", "--threads", "1"]) == 0
    config = Run.open("out").config
    assert (config.training.epochs, config.training.n_chains, config.run.seed) == (1, 4, 5)
    assert config.data.options == {"size": 3} and config.model.hidden == "spin"


def test_json_lines_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", *TINY, "--json", "-o", "out"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    names = [event["event"] for event in events]
    assert names[0] == "config" and names[-1] == "done" and names.count("epoch") == 3
    assert next(event for event in events if event["event"] == "evaluation")["test"]["kind"] == "exact"


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", *TINY, "--quiet"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["bogus"], "No such command"),
        (["train"], "No data is chosen"),
        (["train", "--data", "nowhere"], "neither a known data set nor an existing path"),
        (["train", "--data", "digits"], "--binarize threshold"),
        (["train", "--data", "mnist", "--binarize", "sample"], "put it at <data-dir>/mnist/train-images"),
        (["train", "--data", "moons", "--model", "tree"], "must be one of rbm"),
        (["train", "--data", "moons", "--epochs", "few"], "--epochs"),
        (["train", "--data", "moons", "--epochs", "-1"], "epochs must be greater than or equal to 0"),
        (["train", "--data", "moons", "--what"], "No such option"),
        (["train", "--data", "moons", "--set", "epochs"], "section.key=value"),
        (["train", "--data", "moons", "--set", "data.options.nose=1"], "does not take nose"),
        (["train", "--data", "moons", "--device", "cuda:7"], "cannot be used here"),
        (["train", "absent.toml"], "no configuration file"),
        (["resume", "absent"], "holds no run"),
        (["sample", "absent"], "holds no run"),
        (["evaluate", "absent"], "holds no run"),
    ],
)
def test_mistakes_give_one_message_and_code_2(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert text in captured.err and "Traceback" not in captured.err
    assert len(captured.err.strip().splitlines()) == 1
    assert not Path("runs").exists()  # nothing is left behind


def test_a_run_is_not_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", *TINY, "-o", "out", "-q"]) == 0
    before = Path("out/model.safetensors").read_bytes()
    assert run(["train", *TINY, "-o", "out", "-q", "--seed", "1"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert Path("out/model.safetensors").read_bytes() == before
    assert run(["train", *TINY, "-o", "out", "-q", "--seed", "1", "--overwrite"]) == 0
    assert Path("out/model.safetensors").read_bytes() != before


def test_sample_inpaint_evaluate_list_info(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", *TINY, "-o", "runs/one", "-q"]) == 0
    assert run(["sample", "runs/one", "-n", "5", "--steps", "3", "-o", "s.npy"]) == 0
    x = np.load("s.npy")
    assert x.shape == (5, 1, 4, 4) and set(np.unique(x)) <= {0.0, 1.0}
    assert run(["sample", "runs/one", "-n", "5", "--steps", "3", "-o", "s.csv"]) == 0
    assert len(Path("s.csv").read_text().splitlines()) == 6
    assert run(["inpaint", "runs/one", "--missing", "0.5", "-n", "3", "--steps", "3", "-o", "i.npy"]) == 0
    assert np.load("i.npy").shape == (3, 1, 4, 4)
    assert run(["sample", "runs/one", "-o", "s.txt"]) == 2
    capsys.readouterr()
    assert run(["evaluate", "runs/one"]) == 0
    assert "test log-likelihood" in capsys.readouterr().out
    assert run(["list"]) == 0
    assert "one" in capsys.readouterr().out
    assert run(["list", "nowhere"]) == 0
    assert "no runs" in capsys.readouterr().out
    assert run(["info"]) == 0
    out = capsys.readouterr().out
    assert "embedded" in out and "mnist" in out and "missing: put" in out
    assert ("inner loops compiled" in out) == (native.LIBRARY is not None)


def test_pictures_of_samples(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert run(["train", *TINY, "-o", "one", "-q"]) == 0
    assert run(["sample", "one", "-n", "4", "--steps", "2"]) == 0
    assert run(["inpaint", "one", "-n", "4", "--steps", "2"]) == 0
    for name in ("samples.png", "inpainting.png"):
        assert Path("one", name).read_bytes().startswith(b"\x89PNG")


def test_a_diverging_run_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["train", "--data", "moons", "--model", "gaussian-rbm", "--epochs", "3", "--no-report"]
    huge = ["--optimizer", "sgd", "--learning-rate", "1e6", "--set", "data.options.n_samples=200", "-q"]
    assert run([*arguments, *huge]) == 1
    captured = capsys.readouterr()
    assert "Training diverged" in captured.err and "Lower the learning rate" in captured.err


def test_help_of_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    text = capsys.readouterr().out
    for name in ("demo", "train", "resume", "sample", "inpaint", "evaluate", "report", "list", "info"):
        assert name in text
        assert run([name, "--help"]) == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_save_and_leave(number: signal.Signals, code: int) -> None:
    """A real process is interrupted in the middle of training, saves, and can be resumed to its end."""
    long = ["train", *TINY, "--epochs", "2000", "-o", "out", "--json", "--no-evaluate"]
    child = process(*long)
    assert child.stdout is not None
    while '"epoch"' not in child.stdout.readline():
        assert child.poll() is None, child.communicate()[1]
    child.send_signal(number)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == code
    assert "harmonium resume out" in errors and "Traceback" not in errors
    stopped = Run.open("out")
    assert 0 < stopped.n_epochs < 2000 and stopped.checkpoints.load() is not None


def test_resume_as_a_process() -> None:
    child = process("train", *TINY, "-o", "out")
    _, errors = child.communicate()
    assert child.returncode == 0, errors
    child = process("resume", "out")
    out, errors = child.communicate()
    assert child.returncode == 0 and "test log-likelihood" in out, errors
