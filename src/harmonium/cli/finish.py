"""How runs and experiments are trained to their end on the command line, and their reports written."""

from __future__ import annotations

import signal
from typing import Any

from harmonium import workers
from harmonium.cli.show import Show
from harmonium.cli.signals import StopSignals
from harmonium.cli.stopped import Stopped
from harmonium.experiments import Experiment
from harmonium.runs import Run, evaluate, train


def finish(run: Run, show: Show) -> None:
    """Train a run to its end, then evaluate it and write its report."""
    with run.writing(), StopSignals().installed() as signals, show.warnings():
        show.line(f"data: {run.data()}")
        with show.progress(run.config.training.epochs, run.kind.watched) as callback:
            training = train(run, callbacks=[signals, callback], on_message=show.warn)
        text = f"Stopped and saved after update {training.update}. Go on with: harmonium resume {run.folder}"
        signals.done(text, training)
        if run.asked_to_stop:
            raise Stopped(signal.SIGTERM, text)
        show.event("trained", folder=str(run.folder), epochs=training.epoch, seconds=training.seconds)
        show.line(f"trained {training.epoch} epochs, {training.update:,} updates in {training.seconds:.1f} s")
        if run.config.training.patience:
            best = run.metrics()[-1]["best_epoch"]
            ended = "its patience ended: " if run.stopped_early else ""
            show.line(f"{ended}the model is that of epoch {best}, the best by validation likelihood")
        scores = _evaluated(run, show)
        if not workers.is_first():
            return
        with workers.alone():
            _conclude(run, scores, show)
    show.event("done", folder=str(run.folder))
    show.line(f"run: {run.folder}")


def _evaluated(run: Run, show: Show) -> dict[str, Any] | None:
    """Return the scores of a run that is trained, if they are wanted; workers share their chains and rows."""
    if not run.config.run.evaluate:
        return None
    show.line("evaluating …")
    workers.meet()  # what the first wrote of the run is there
    return evaluate(run)


def _conclude(run: Run, scores: dict[str, Any] | None, show: Show) -> None:
    """Write down the scores of a run, and its report."""
    if scores is not None:
        run.write_evaluation(scores)
        show.scores(run, scores)
    if run.config.run.report:
        write_report(run, show)


def train_experiment(experiment: Experiment, show: Show) -> None:
    """Train an experiment to its end with its progress shown; a signal stops it after the update at hand, saved."""
    text = f"Go on with the same command; the folder is {experiment.folder}."
    with StopSignals().installed() as signals, show.progress(experiment.epochs) as progress:
        finished = experiment.train(callbacks=(signals, progress), say=show.line)
        signals.done(f"Stopped and saved. {text}")
    if not finished:
        raise ValueError(f"Training did not reach its last epoch. {text}")


def finish_experiment(experiment: Experiment, show: Show) -> None:
    """Do what is left of an experiment, and write its report."""
    train_experiment(experiment, show)
    experiment.score(say=show.line)
    write_report(experiment, show)


def write_report(run: Run | Experiment, show: Show) -> None:
    """Write the pictures and the report, if what draws them is installed."""
    try:
        from harmonium import plots  # optional: it needs matplotlib
    except ImportError as error:
        show.warn(f'No report is written: {error}. Install what it needs with: pip install "harmonium[plots]"')
        return
    if isinstance(run, Run):
        path = plots.write_report(run)
    else:
        path = plots.write_panels(run.folder, run.sentences(), run.settings(), run.metrics(), run.panels())
    show.event("report", path=str(path))
    show.line(f"report: {path}")
