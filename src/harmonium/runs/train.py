"""Train a run: from its start, or from its last checkpoint, with the same result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from harmonium.learning import Callback, Training
from harmonium.runs.build import build_training
from harmonium.runs.recorder import Recorder
from harmonium.runs.run import Run


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
        recorder = Recorder(run, seconds=section.checkpoint_seconds, updates=section.checkpoint_updates)
        training = build_training(run.config, run.prepared, [recorder, *callbacks])
        recorder.run(training, on_message=on_message)
        return training
