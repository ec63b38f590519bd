"""All rules on the same machines: rates chosen on validation data, the same time for all, several seeds."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from harmonium.experiments.base import Message, quiet
from harmonium.experiments.comparison.race import race
from harmonium.experiments.comparison.rules import RULES, rules_for
from harmonium.experiments.comparison.summary import summarize, table_of, validation
from harmonium.experiments.comparison.teacher import VISIBLE, Lesson
from harmonium.models import RBM
from harmonium.runs.atomic import write_atomic
from harmonium.units import Bernoulli

SETTINGS, RACES, SUMMARY, TABLE = "settings.json", "races.jsonl", "comparison.json", "table.md"

Record = dict[str, Any]
"""One run: its strength, seed, rule, rate, curve, and the nats of the truth."""


@dataclass(frozen=True)
class Comparison:
    """What is compared: machines of some `strengths`, `seeds` of each, `rules` (all that apply if there are none).

    One more machine of each strength, with the seed that follows, decides the rate of each rule: the one of `rates`
    with the best exact likelihood of validation data at the end. Every run has `seconds` of processor time.
    """

    visible: str = "bernoulli"
    n_visible: int = 20
    n_hidden: int = 10
    strengths: tuple[float, ...] = (0.5, 1.0, 2.0)
    seeds: int = 5
    seconds: float = 1.0
    rates: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3)
    n_rows: int = 2000
    rules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.visible not in VISIBLE:
            raise ValueError(f"--visible must be one of {', '.join(VISIBLE)}. Got {self.visible}.")
        for name, values in (("strength", self.strengths), ("rate", self.rates), ("seconds", (self.seconds,))):
            if not values or not all(value > 0 for value in values):
                raise ValueError(f"--{name} must be positive. Got {', '.join(map(str, values)) or 'nothing'}.")
        rbm = RBM(VISIBLE[self.visible](self.n_visible), Bernoulli(self.n_hidden))
        known = rules_for(rbm, torch.zeros(1, self.n_visible))
        for name in self.rules:
            if name not in known:
                why = f"cannot train {self.visible} units" if name in RULES else "is not known"
                raise ValueError(f"The objective {name!r} {why}. Choose from: {'; '.join(known)}.")
        object.__setattr__(self, "rules", self.rules or tuple(known))

    @property
    def n_races(self) -> int:
        """How many runs there are in all."""
        return len(self.strengths) * len(self.rules) * (len(self.rates) + self.seeds)

    def run(self, folder: Path, *, say: Message = quiet) -> Record:
        """Make all runs that the folder does not hold yet; write the summary and the table, and return the summary."""
        self._begin(folder)
        records = read_races(folder)
        for strength in self.strengths:
            for seed in (self.seeds, *range(self.seeds)):  # the machine that decides the rates comes first
                lesson = Lesson(self.visible, self.n_visible, self.n_hidden, strength, seed, self.n_rows)
                for rule in self.rules:
                    for rate in self.rates if seed == self.seeds else (self._tuned(records, strength, rule),):
                        if not _pick(records, strength=strength, seed=seed, rule=rule, rate=rate):
                            records.append(self._race(lesson, rule, rate))
                            with (folder / RACES).open("a", encoding="utf-8") as file:
                                file.write(json.dumps(records[-1]) + "\n")
                            say(f"{len(records)}/{self.n_races}  {describe(records[-1])}")
        summary = summarize(self.settings(), records)
        write_atomic(folder / SUMMARY, json.dumps(summary, indent=1).encode())
        write_atomic(folder / TABLE, table_of(summary).encode())
        return summary

    def settings(self) -> Record:
        """Return the settings as JSON has them."""
        settings: Record = json.loads(json.dumps(asdict(self)))
        return settings

    def _begin(self, folder: Path) -> None:
        """Make the folder, or go on in one that was made with the same settings; any other is refused."""
        path = folder / SETTINGS
        if path.is_file():
            if json.loads(path.read_text(encoding="utf-8")) != self.settings():
                raise ValueError(f"{folder} holds a comparison with other settings ({path}). Choose another --output.")
        elif folder.exists() and any(folder.iterdir()):
            raise ValueError(f"{folder} holds something else. Choose another --output: nothing is overwritten.")
        else:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomic(path, json.dumps(self.settings(), indent=1).encode())

    def _tuned(self, records: list[Record], strength: float, rule: str) -> float:
        tried = _pick(records, strength=strength, seed=self.seeds, rule=rule)
        return float(max(tried, key=validation)["rate"])

    def _race(self, lesson: Lesson, rule: str, rate: float) -> Record:
        record = race(lesson, rule, rate, seconds=self.seconds)
        return {"strength": lesson.strength, "seed": lesson.seed, "rule": rule, "rate": rate} | record


def read_races(folder: Path) -> list[Record]:
    """Return the runs that a folder holds; a line that a stop cut short is left out."""
    path = folder / RACES
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    if len(whole) < len(lines):
        write_atomic(path, "".join(whole).encode())
    return [json.loads(line) for line in whole]


def describe(record: Record) -> str:
    """Return a run in words."""
    head = f"strength {record['strength']:g}  seed {record['seed']}  {record['rule']}  rate {record['rate']:g}: "
    if record["diverged"] or record["points"][-1][2] is None:
        return f"{head}diverged after {record['n_updates']:,} updates"
    gap = record["truth"] - record["points"][-1][2]
    return f"{head}{gap:.3f} nats below the truth after {record['n_updates']:,} updates"


def _pick(records: list[Record], **wanted: Any) -> list[Record]:
    return [record for record in records if all(record[name] == value for name, value in wanted.items())]
