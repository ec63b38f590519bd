"""One learning rule for so many seconds, its likelihood counted on the way."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import torch

from harmonium.experiments.comparison.rules import RULES
from harmonium.experiments.comparison.teacher import Lesson, nats
from harmonium.learning import Callback, Training, TrainingDiverged

N_POINTS = 12
"""How often the likelihood is counted, at times a constant factor apart; the first at 1 % of the time."""

BATCH_SIZE = 128


@dataclass
class Clock(Callback):
    """Stop when the processor time of learning is over; lower the rate to 0 on the way, and count the likelihood.

    Counting takes no time on this clock. `points` are seconds, nats of the validation data, nats of the test data.
    """

    lesson: Lesson
    rate: float
    times: list[float]
    points: list[tuple[float | None, ...]] = field(default_factory=list)
    started: float = 0.0

    def on_start(self, training: Training) -> None:
        """Start the clock."""
        self.started = time.process_time()

    def on_update(self, training: Training) -> None:
        """Look at the clock."""
        now = time.process_time()
        used = now - self.started
        n_due = sum(used >= due for due in self.times) - len(self.points)
        if n_due:  # more than one where an update took that long
            self.points += [(used, *nats(training.model, self.lesson.valid, self.lesson.test))] * n_due
            training.stop = len(self.points) == len(self.times)
            self.started += time.process_time() - now
        for group in training.optimizer.param_groups:
            group["lr"] = self.rate * max(0.0, 1 - used / self.times[-1])


def race(lesson: Lesson, rule: str, rate: float, *, seconds: float) -> dict[str, Any]:
    """Let a machine learn by a rule for so many seconds of one core; return its curve and how it ended.

    Adam with batches of 128, its rate falling from `rate` to 0 along the time. The curve of a run that diverges ends.
    """
    generator = torch.Generator().manual_seed(lesson.seed)
    rbm = lesson.learner(generator=generator)
    objective = RULES[rule](rbm, lesson.train)
    optimizer = torch.optim.Adam([*rbm.parameters(), *objective.parameters()], rate)
    times = [seconds * 100 ** (i / (N_POINTS - 1) - 1) for i in range(N_POINTS)]
    clock = Clock(lesson, rate, times)
    training = Training(
        rbm,
        lesson.train,
        objective,
        optimizer=optimizer,
        epochs=10**9,
        batch_size=BATCH_SIZE,
        callbacks=[clock],
        generator=generator,
    )
    diverged = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # health messages of hundreds of runs
        try:
            training.run()
        except TrainingDiverged:
            diverged = True
    return {
        "times": times,
        "points": clock.points,
        "n_updates": training.update,
        "diverged": diverged,
        "truth": lesson.truth,
        "independent": lesson.independent,
    }
