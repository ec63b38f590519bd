"""Whatever goes wrong: one line, an exit code, and the traceback in a file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harmonium.cli import entry


def test_what_nobody_foresaw_is_one_line_and_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail() -> None:
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr(entry, "make_app", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert entry.run([]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "RuntimeError: first line" in told
    (path,) = re.findall(r"report (\S+)\.$", told.strip())
    assert "second line" in Path(path).read_text() and "def fail" not in told
    monkeypatch.setenv("HARMONIUM_DEBUG", "1")
    with pytest.raises(RuntimeError, match="first line"):
        entry.run([])


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--n-hidden", "1000000000000"], "GB of memory"),
        (["--seed", "9999999999999999999999"], "seed must be less than 9223372036854775808"),
        (["--learning-rate", "inf"], "learning_rate must be"),
        (["--learning-rate", "nan"], "learning_rate must be"),
        (["--set", "training.learning_rate=1e400"], "learning_rate must be"),
    ],
)
def test_settings_beyond_reason_are_refused(
    flags: list[str], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert entry.run(["train", "--data", "ising", "--output", str(tmp_path / "run"), "--quiet", *flags]) in (1, 2)
    told = capsys.readouterr().err
    assert words in told and told.count("\n") == 1
