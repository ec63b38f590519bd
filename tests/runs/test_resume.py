"""Stopping a run anywhere and going on gives the same bytes: every state that a run can carry, in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.kill_resume import CASES, fingerprint, write_cases
from harmonium.learning import Callback, Training
from harmonium.learning.state import snapshot
from harmonium.runs import Config, Run, resolve, train
from harmonium.runs.config import merge, read_toml


class StopAt(Callback):
    """Stops after one update, as a signal would."""

    def __init__(self, update: int) -> None:
        self.update = update

    def on_update(self, training: Training) -> None:
        training.stop = training.update == self.update


def small(config: Path, epochs: int) -> Config:
    return resolve(merge(read_toml(config), {"training": {"epochs": epochs}, "run": {"checkpoint_updates": 0}}))


@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")  # the joint model is made to diverge
@pytest.mark.parametrize("case", list(CASES))
def test_stopped_and_resumed_is_the_same(case: str, tmp_path: Path) -> None:
    config = small(write_cases(tmp_path, every=1)[case], epochs=3)
    train(Run.create(tmp_path / "whole", config))
    n_updates = Run.open(tmp_path / "whole").metrics()[-1]["update"]
    for stop in sorted({1, n_updates // 3, n_updates // 2, n_updates - 1} - {0}):
        folder = tmp_path / f"stopped-{stop}"
        first = train(Run.create(folder, config), callbacks=[StopAt(stop)])
        assert first.update == stop
        train(Run.open(folder))
        assert fingerprint(folder) == fingerprint(tmp_path / "whole"), stop


@pytest.mark.parametrize("case", ["pcd", "gaussian"])
def test_a_snapshot_at_any_update_holds_everything(case: str, tmp_path: Path) -> None:
    """Also at the last update of an epoch, before its monitors have looked: stopped there, the epoch is ended first."""
    config = small(write_cases(tmp_path, every=1)[case], epochs=2)
    run = Run.create(tmp_path / "whole", config)
    training = train(run)
    per_epoch = training.update // 2
    folder = tmp_path / "stopped"
    first = train(Run.create(folder, config), callbacks=[StopAt(per_epoch)])
    assert (first.epoch, first.position, len(first.history)) == (1, 0, 1)
    train(Run.open(folder))
    assert fingerprint(folder) == fingerprint(run.folder)


@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
@pytest.mark.parametrize("part", ["learned.objective.", "learned.optimizer.", "learned.transform.0.", "order"])
def test_a_lost_part_is_noticed(part: str, tmp_path: Path) -> None:
    """The negative control: a checkpoint without the chains, the momentum, the averages or the order is not exact."""
    path = write_cases(tmp_path, every=1)["pcd"]
    text = path.read_text().replace("momentum", "learning_rate = 1.0\nmomentum").replace("norm_limit", "clip")
    path.write_text(text)  # large weights, so that the chains remember where they were
    config = small(path, epochs=30)
    train(Run.create(tmp_path / "whole", config))
    run = Run.create(tmp_path / "robbed", config)
    tensors, values = snapshot(train(run, callbacks=[StopAt(101)]))
    robbed = {name: torch.zeros_like(x) if name.startswith(part) else x for name, x in tensors.items()}
    robbed["order"] = tensors["order"].flip(0) if part == "order" else tensors["order"]  # zeros would be refused
    run.checkpoints.save(robbed, values)
    train(Run.open(run.folder))
    assert fingerprint(run.folder) != fingerprint(tmp_path / "whole")


def test_the_newest_damaged_checkpoint_is_passed_over(tmp_path: Path) -> None:
    config = small(write_cases(tmp_path, every=1)["pcd"], epochs=3)
    train(Run.create(tmp_path / "whole", config))
    run = Run.create(tmp_path / "damaged", config)
    train(run, callbacks=[StopAt(3)])
    train(run, callbacks=[StopAt(6)])
    newest = run.checkpoints.paths()[-1] / "state.safetensors"
    content = bytearray(newest.read_bytes())
    content[-1] ^= 1
    newest.write_bytes(content)
    said: list[str] = []
    train(run, on_message=said.append)
    assert len(said) == 1 and "is damaged" in said[0] and "before it" in said[0]
    assert fingerprint(run.folder) == fingerprint(tmp_path / "whole")


def test_metrics_follow_the_checkpoint(tmp_path: Path) -> None:
    """Lines written after the last checkpoint are written again, not twice."""
    config = small(write_cases(tmp_path, every=1)["pcd"], epochs=4)
    train(Run.create(tmp_path / "whole", config))
    run = Run.create(tmp_path / "run", config)
    n = Run.open(tmp_path / "whole").metrics()[-1]["update"]
    train(run, callbacks=[StopAt(n // 2 + 1)])
    run.append("metrics.jsonl", {"epoch": 3, "update": -1})
    with (run.folder / "metrics.jsonl").open("ab") as file:
        file.write(b'{"epoch": 4, "upd')
    train(run)
    assert (run.folder / "metrics.jsonl").read_bytes() == (tmp_path / "whole/metrics.jsonl").read_bytes()


def test_the_average_is_what_is_kept(tmp_path: Path) -> None:
    config = small(write_cases(tmp_path, every=1)["pcd"], epochs=2)
    run = Run.create(tmp_path / "run", config)
    training = train(run)
    kept: Any = run.model().state_dict()
    average = training.transforms[-1].average  # type: ignore[attr-defined]
    for name, value in training.model.state_dict().items():
        assert torch.equal(kept[name], average[name])
        assert not torch.equal(kept[name], value)


def test_a_finished_run_goes_on_as_if_it_had_been_made_longer(tmp_path: Path) -> None:
    """At a constant rate; a schedule begins anew, and a run whose settings say so from the start has the same bits."""
    for name, schedule in (("constant", "constant"), ("falling", "linear")):
        settings = {
            "data": {"name": "bars-and-stripes"},
            "model": {"n_hidden": 4},
            "training": {"n_chains": 8, "schedule": schedule, "epochs": 2, "restarts": []},
            "run": {"threads": 1},
        }
        run = Run.create(tmp_path / name, resolve(settings))
        train(run)
        with pytest.raises(ValueError, match="made for 2 epochs"):
            run.extend(2)
        run.extend(5)
        train(Run.open(run.folder))
        restarts = [] if schedule == "constant" else [2]
        longer = merge(settings, {"training": {"epochs": 5, "restarts": restarts}})
        train(Run.create(tmp_path / f"{name}-at-once", resolve(longer)))
        assert fingerprint(run.folder) == fingerprint(tmp_path / f"{name}-at-once")
        rates = [record["learning_rate"] for record in run.metrics()]
        assert len(rates) == 5
        expected = [0.1] * 5 if schedule == "constant" else [0.1, 0.05, 0.1, 0.2 / 3, 0.1 / 3]
        assert rates == pytest.approx(expected)


def test_a_run_whose_data_have_moved(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    np.save(first / "x.npy", (np.arange(120).reshape(30, 4) % 3 == 0).astype(np.uint8))
    settings = {"data": {"name": str(first / "x.npy")}, "model": {"n_hidden": 2}, "run": {"threads": 1}}
    run = Run.create(tmp_path / "run", resolve(merge(settings, {"training": {"epochs": 1}})))
    train(run)
    first.rename(second)
    (tmp_path / "run").rename(tmp_path / "moved")
    with pytest.raises(ValueError, match="neither a known data set nor an existing path"):
        Run.open(tmp_path / "moved").data()
    assert len(Run.open(tmp_path / "moved", data_dir=second).data().train) > 0
