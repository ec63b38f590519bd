"""What looks on: the interface, early stopping, progress, dashboards; and what notebooks show."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

import harmonium as hm
from harmonium.data import load
from harmonium.learning import Callback, EarlyStopping, History, Progress, TensorBoard, Training, WeightsAndBiases
from harmonium.learning.monitors import Monitor


class Told(Callback):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_start(self, training: Training) -> None:
        self.calls.append("start")

    def on_update(self, training: Training) -> None:
        self.calls.append("update")

    def on_epoch(self, training: Training, record: dict[str, Any]) -> None:
        self.calls.append("epoch")

    def on_end(self, training: Training) -> None:
        self.calls.append("end")


class Falling(Monitor):
    """A likelihood that is best at the third epoch."""

    def __call__(self, training: Training) -> dict[str, float]:
        return {"validation_log_likelihood": -abs(training.epoch - 3.0), "number": float(training.epoch)}


def small() -> tuple[hm.RBM, torch.Tensor]:
    return hm.RBM(hm.Bernoulli(4), hm.Bernoulli(2)), torch.eye(4)


def test_when_a_callback_is_called() -> None:
    rbm, x = small()
    told = Told()
    hm.fit(rbm, x, epochs=2, batch_size=2, callbacks=[told], monitors=[])
    assert told.calls == ["start", "update", "update", "epoch", "update", "update", "epoch", "end"]


def test_early_stopping_gives_back_the_best() -> None:
    rbm, x = small()
    kept: dict[int, torch.Tensor] = {}

    class Keep(Callback):
        def on_epoch(self, training: Training, record: dict[str, Any]) -> None:
            kept[record["epoch"]] = rbm.weight.detach().clone()

    history = hm.fit(rbm, x, epochs=50, callbacks=[Keep(), EarlyStopping(2)], monitors=[Falling()])
    assert len(history) == 5
    assert torch.equal(rbm.weight, kept[3]) and not torch.equal(rbm.weight, kept[5])
    with pytest.raises(ValueError, match="does not measure"):
        hm.fit(rbm, x, epochs=2, callbacks=[EarlyStopping(2)], monitors=[])


def test_the_likelihood_comes_first_on_the_bar(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    rbm, x = small()
    hm.fit(rbm, x, epochs=3, monitors=[Falling()], progress=True)
    last = capsys.readouterr().err.splitlines()[-1].rpartition("\r")[2]
    assert "3/3" in last and "validation log-likelihood" in last
    assert isinstance(Progress(), Callback)


class Board:
    """Takes numbers as a dashboard does."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, float, int]] = []
        self.closed = False

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.taken.append((name, value, step))

    def log(self, values: dict[str, float], step: int) -> None:
        self.taken += [(name, value, step) for name, value in values.items()]

    def close(self) -> None:
        self.closed = True


def test_dashboards_get_every_number_at_its_update() -> None:
    expected = [
        (name, value, epoch)
        for epoch in (1, 2)
        for name, value in (("validation_log_likelihood", epoch - 3.0), ("number", epoch))
    ]
    for make in (lambda board: TensorBoard(writer=board), lambda board: WeightsAndBiases(run=board)):
        rbm, x = small()
        board = Board()
        hm.fit(rbm, x, epochs=2, callbacks=[make(board)], monitors=[Falling()])  # type: ignore[no-untyped-call]
        assert board.taken == expected
        assert board.closed == (make(board).__class__ is TensorBoard)  # type: ignore[no-untyped-call]


def test_what_notebooks_show() -> None:
    history = History([{"epoch": 1, "loss": 2.0}, {"epoch": 2, "loss": 1.0, "messages": ["a"]}], ["units <died>"])
    text = history._repr_html_()
    assert text.count("<svg") == 1 and "units &lt;died&gt;" in text
    machine = hm.BoltzmannMachine(
        {"x": hm.Bernoulli(3), "y": hm.Categorical(1, 2), "h": hm.Bernoulli(2)},
        [(("x", "h"), hm.Dense(3, 2)), (("y", "h"), hm.Dense((1, 2), 2)), (("x",), hm.Bias(3))],
        given=["y"],
    )
    text = machine._repr_html_()
    assert text.count("<rect") == 3 and text.count("stroke-dasharray") == 1 and "Bernoulli(3)" in text
    assert len(re.findall("<line|<path", text)) >= 2
    loop = hm.Hopfield(4)._repr_html_()
    assert "<path" in loop and loop.count("<rect") == 1
    assert "do not rely on it" in hm.Estimate(1.0, 0.1, 0.5, 1.5, "ais", trusted=False, note="few")._repr_html_()
    assert "samples" in hm.Estimate(torch.tensor([1.0, 2.0]), 0.1, 0.5, 1.5, "ais")._repr_html_()
    assert "bars-and-stripes" in load("bars-and-stripes")._repr_html_()
