"""Settings chosen one after another by what the last ones reached: the search of `sweep --optuna`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from harmonium.cli.trial import Trial, make_trial, validation_nats
from harmonium.data.extras import require
from harmonium.runs import Run

JOURNAL = "optuna.log"
"""The file in the folder of a sweep that holds what was tried: the search goes on from it."""


class Search:
    """A search for the largest validation likelihood over `n_trials` runs, kept in a journal (Akiba et al. 2019).

    Each setting has a list to choose from, or a range `{low, high}`, whole numbers where both ends are, `log = true`
    for a logarithmic scale. Iterating gives the runs to train, the unfinished ones of a search that was stopped first,
    and at the end once more what others have begun and may have left; `tell` says how a run ended, so that the next
    ones are chosen better. Several processes may search together: the journal, or a database by its URL (`storage`),
    holds what all of them tried, and a run is trained by the one that claims it (`Trial`).
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        spaces: Mapping[str, Any],
        folder: Path,
        n_trials: int,
        data_dir: str | None,
        storage: str | None = None,
    ) -> None:
        self.optuna = require("optuna", "sweep", "a search with --optuna")
        self.optuna.logging.set_verbosity(self.optuna.logging.ERROR)
        self.settings, self.folder, self.n_trials, self.data_dir = settings, folder, n_trials, data_dir
        self.spaces = {name: self._space(name, space) for name, space in spaces.items()}
        folder.mkdir(parents=True, exist_ok=True)
        journal = self.optuna.storages.journal.JournalFileBackend
        with FileLock(folder / f".{JOURNAL}.begin"):  # two that begin at once would both make the tables of a database
            self.study = self.optuna.create_study(
                study_name=folder.resolve().name,
                direction="maximize",
                storage=storage or self.optuna.storages.JournalStorage(journal(str(folder / JOURNAL))),
                sampler=self.optuna.samplers.TPESampler(seed=0, constant_liar=True, n_startup_trials=min(10, n_trials)),
                load_if_exists=True,
            )
        self.numbers: dict[Path, int] = {}

    def __iter__(self) -> Iterator[Trial]:
        """Yield runs to be trained: those that were begun, then new ones, each chosen when it is asked for."""
        yield from self._begun()
        while len(self.study.get_trials(deepcopy=False)) < self.n_trials:
            asked = self.study.ask(self.spaces)
            if asked.number >= self.n_trials:  # another asked at the same time
                self.study.tell(asked.number, state=self.optuna.trial.TrialState.FAIL)
                break
            yield self._trial(asked.number, asked.params)
        yield from self._begun()

    def _begun(self) -> list[Trial]:
        """Return the runs that somebody has begun and that are not done."""
        running = self.study.get_trials(deepcopy=False, states=[self.optuna.trial.TrialState.RUNNING])
        begun = [found for found in running if found.params.keys() == self.spaces.keys()]  # not being asked just now
        return [trial for found in begun if not self._known(trial := self._trial(found.number, found.params))]

    def tell(self, trial: Trial, run: Run | None) -> None:
        """Say how a run ended: None if it failed."""
        value = -math.inf if run is None else validation_nats(run)
        failed = self.optuna.trial.TrialState.FAIL
        known = {"values": value} if math.isfinite(value) else {"state": failed}
        self.study.tell(self.numbers[trial.folder], **known, skip_if_finished=True)

    def trials(self) -> list[Trial]:
        """Return all runs that the journal knows."""
        all_of_them = self.study.get_trials(deepcopy=False)[: self.n_trials]
        return [self._trial(found.number, found.params) for found in all_of_them]

    def _trial(self, number: int, point: Mapping[str, Any]) -> Trial:
        trial = make_trial(self.settings, point, self.folder / f"trial-{number:03d}", self.data_dir)
        self.numbers[trial.folder] = number
        return trial

    def _known(self, trial: Trial) -> bool:
        """Tell of a run that ended when nobody listened, and say whether it did."""
        if trial.done():
            self.tell(trial, Run.open(trial.folder))
            return True
        return False

    def _space(self, name: str, space: Any) -> Any:
        made = self.optuna.distributions
        if isinstance(space, list) and space and not any(isinstance(value, list | dict) for value in space):
            return made.CategoricalDistribution(space)
        if isinstance(space, Mapping) and {"low", "high"} <= set(space) <= {"low", "high", "log"}:
            low, high, log = space["low"], space["high"], bool(space.get("log", False))
            if isinstance(low, int) and isinstance(high, int) and low <= high:
                return made.IntDistribution(low, high, log=log)
            if isinstance(low, int | float) and isinstance(high, int | float) and low <= high and (low > 0 or not log):
                return made.FloatDistribution(float(low), float(high), log=log)
        raise ValueError(
            f"[sweep] {name!r} must be a list to choose from, or a range such as "
            f"{{ low = 0.001, high = 0.1, log = true }}. Got {space!r}."
        )
