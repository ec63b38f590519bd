"""Train a run: from its start, or from its last checkpoint, with the same result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch.optim.lr_scheduler import LambdaLR

from harmonium.learning import Callback, Training
from harmonium.runs.build import build_training
from harmonium.runs.precision import products_in
from harmonium.runs.recorder import Recorder
from harmonium.runs.run import Run


class Restart(Callback):
    """Begins the schedule of a finished run anew: its last checkpoint holds the rate of the end."""

    def __init__(self, restarts: tuple[int, ...]) -> None:
        self.restarts = restarts

    def on_start(self, training: Training) -> None:
        """Set the rate of the epoch that comes, where the schedule starts again with it."""
        schedule = training.schedule
        if isinstance(schedule, LambdaLR) and training.epoch in self.restarts and not training.position:
            rates = zip(training.optimizer.param_groups, schedule.base_lrs, schedule.lr_lambdas, strict=True)
            for group, rate, factor in rates:
                group["lr"] = rate * factor(training.epoch)


def train(run: Run, *, callbacks: Sequence[Callback] = (), on_message: Callable[[str], None] | None = None) -> Training:
    """Train a run to its last epoch, from its newest whole checkpoint if there is one, and write what it leaves.

    A run that was killed at any moment and is trained again ends with the same bits: parameters, chains and metrics.
    A callback may set `training.stop`: the state is then saved where it is. `on_message` is told of damaged files.
    """
    with run.writing():
        run.check_unchanged()
        section = run.config.run
        if section.threads is not None:
            torch.set_num_threads(section.threads)
        run.keep()
        recorder = Recorder(run, seconds=section.checkpoint_seconds, updates=section.checkpoint_updates)
        again = Restart(tuple(run.config.training.restarts))
        training = build_training(run.config, run.prepared, [recorder, again, *callbacks])
        warm_up = partial(run.kind.warm_up, run.config, run.prepared)
        with products_in(section.precision):
            recorder.run(training, warm_up=warm_up, on_message=on_message)
        return training
