"""One run of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from harmonium.cli.options import as_settings
from harmonium.runs import Config, Run, resolve
from harmonium.runs.lock import is_locked


@dataclass(frozen=True)
class Trial:
    """One point of a sweep: the folder of its run, and its configuration."""

    folder: Path
    config: Config

    def done(self) -> bool:
        """Whether it is trained and scored."""
        if not (self.folder / "config.toml").is_file():
            return False
        run = Run.open(self.folder)
        return run.finished and run.evaluation() is not None

    def claim(self) -> FileLock | None:
        """Take it for this process, on any machine that sees the folder; None if another has it, or if it is done.

        Who dies lets go of it.
        """
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder.with_name(f".{self.folder.name}.claim"))
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return None
        if self.done() or is_locked(self.folder):  # by a training whose sweep was killed
            lock.release()
            return None
        return lock


def make_trial(
    settings: Mapping[str, Any], point: Mapping[str, Any], folder: Path, data_dir: str | None = None
) -> Trial:
    """Return the run with these settings, those of the point above the others, checked."""
    return Trial(folder, resolve(settings, as_settings({"data.data_dir": data_dir, **point})))


def validation_nats(run: Run) -> float:
    """Return the validation log-likelihood of a run, by which a sweep chooses; -∞ where it has none."""
    scores = run.evaluation() or {}
    return float(scores.get("valid", {}).get("value") or -float("inf"))
