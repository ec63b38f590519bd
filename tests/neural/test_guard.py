"""The guard sees divergence and brings training back."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import Tensor

import harmonium as hm
from harmonium.learning.monitors import Guard, HealthWarning, JointCurves


def blobs(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    y = torch.arange(200) % 2
    return 0.2 * torch.randn(200, 2, generator=generator) + (y[:, None] - 0.5), y


def train(guard: Guard | None, *, lr: float, generator: torch.Generator, epochs: int = 15) -> tuple:
    """Train a joint model; the rate decides whether it diverges: energies may fall without a bound."""
    data = blobs(generator)
    jem = hm.JEM(hm.MLP(2, 2, hidden=(32,), generator=generator), base_std=1.0)
    objective = hm.learning.objectives.JointLikelihood(n_steps=5, sampler=hm.Langevin(0.1, noise=0.05))
    optimizer = torch.optim.SGD(jem.parameters(), lr)
    monitors = [JointCurves()] + ([] if guard is None else [guard])
    history = hm.fit(
        jem, data, objective, optimizer=optimizer, epochs=epochs, batch_size=50, monitors=monitors, generator=generator
    )
    return jem, history, data, objective, optimizer


def test_divergence_is_provoked_and_recovered_from(generator: torch.Generator) -> None:
    guard = Guard(every=5, largest_gap=20.0)
    with pytest.warns(HealthWarning, match="Training diverged at update"):
        jem, history, (x, y), objective, optimizer = train(guard, lr=20.0, generator=generator, epochs=30)
    assert guard.rollbacks >= 1
    assert history.last["rollbacks"] == guard.rollbacks == len(history.messages)
    assert "learning rate" in history.messages[0] and "seed" in history.messages[0]
    assert optimizer.param_groups[0]["lr"] < 20.0 and 5 < objective.n_steps <= 20
    assert all(bool(p.isfinite().all()) for p in jem.parameters())
    assert abs(history.last["energy_gap"]) < 20.0
    assert (jem.classify(x) == y).float().mean() > 0.95


def test_without_the_guard_the_same_training_is_lost(generator: torch.Generator) -> None:
    try:
        _, history, *_ = train(None, lr=20.0, generator=generator, epochs=30)
    except hm.learning.TrainingDiverged:
        return
    assert not abs(history.last["generation_loss"]) < 20.0


def test_the_guard_gives_up_at_the_good_state(generator: torch.Generator) -> None:
    guard = Guard(every=5, n_tries=2, slower=1.0, longer=1.0, largest_gap=20.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HealthWarning)
        with pytest.raises(hm.learning.TrainingDiverged, match="after 2 returns to a good state") as caught:
            train(guard, lr=1e4, generator=generator)
    assert "lower learning rate" in str(caught.value)
    assert guard.rollbacks == 2


class Breaks(hm.learning.objectives.JointLikelihood):
    """An objective whose loss is NaN at some calls."""

    at: tuple[int, ...] = ()
    calls = 0

    def _parts(self, model, batch, generator):  # type: ignore[no-untyped-def]
        self.calls += 1
        loss, negative = super()._parts(model, batch, generator)
        return (loss * float("nan") if self.calls in self.at else loss), negative


@pytest.mark.parametrize("at", [1, 7])
def test_a_gradient_that_is_not_finite(at: int, generator: torch.Generator) -> None:
    data = blobs(generator)
    jem = hm.JEM(hm.MLP(2, 2, hidden=(8,), generator=generator))
    first = [p.detach().clone() for p in jem.parameters()]
    optimizer = torch.optim.SGD(jem.parameters(), 0.01)
    objective = Breaks(n_steps=2)
    objective.at = (at,)
    guard = Guard(every=3)
    with pytest.warns(HealthWarning, match="the gradient is not finite"):
        history = hm.fit(
            jem, data, objective, optimizer=optimizer, epochs=3, batch_size=50, monitors=[guard], generator=generator
        )
    assert guard.rollbacks == 1 and len(history) == 3
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.003)
    assert objective.n_steps == 3
    assert not torch.equal(first[0], next(jem.parameters()))
    objective.at = (objective.calls + 1,)
    with pytest.raises(hm.learning.TrainingDiverged, match="not finite"):
        hm.fit(jem, data, objective, optimizer=optimizer, epochs=1, monitors=[], generator=generator)


def test_saturated_chains_are_seen(generator: torch.Generator) -> None:
    data = blobs(generator)
    jem = hm.JEM(hm.MLP(2, 2, hidden=(8,), generator=generator))
    objective = hm.learning.objectives.JointLikelihood(n_steps=2, sampler=hm.Langevin(1.0, noise=1e3), box=(-1.0, 1.0))
    with (
        pytest.warns(HealthWarning, match="of the chains stand in a corner of the box"),
        pytest.raises(hm.learning.TrainingDiverged, match="corner of the box"),
    ):
        hm.fit(
            jem,
            data,
            objective,
            optimizer=torch.optim.SGD(jem.parameters(), 1e-3),
            epochs=1,
            monitors=[Guard(n_tries=1)],
            generator=generator,
        )


def test_a_healthy_training_is_left_as_it_is() -> None:
    results = []
    for guard in (Guard(every=2), None):
        jem, history, *_ = train(guard, lr=0.05, generator=torch.Generator().manual_seed(1), epochs=5)
        results.append([p.detach() for p in jem.parameters()])
        assert history.messages == []
        assert history.last.get("rollbacks", 0) == 0
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_the_schedule_is_lowered_too(generator: torch.Generator) -> None:
    data = blobs(generator)
    jem = hm.JEM(hm.MLP(2, 2, hidden=(8,), generator=generator))
    optimizer = torch.optim.SGD(jem.parameters(), 0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0)
    objective = Breaks(n_steps=2)
    objective.at = (2,)
    with pytest.warns(HealthWarning):
        hm.fit(
            jem,
            data,
            objective,
            optimizer=optimizer,
            epochs=2,
            schedule=schedule,
            monitors=[Guard()],
            generator=generator,
        )
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.003)


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="`slower` in"):
        Guard(slower=0.0)
