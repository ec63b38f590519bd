"""A state to return to is copied whole, and is the same after a trip through tensors."""

from __future__ import annotations

import pytest
import torch

import harmonium as hm
from harmonium.learning import Training
from harmonium.learning.good_state import GoodState


def training(optimizer: str, generator: torch.Generator) -> Training:
    jem = hm.JEM(hm.MLP(2, 2, hidden=(4,), generator=generator))
    options = {"momentum": 0.9} if optimizer == "SGD" else {}
    return Training(
        jem,
        (torch.randn(40, 2, generator=generator), torch.arange(40) % 2),
        hm.JointLikelihood(n_steps=2, buffer=hm.ReplayBuffer(n_chains=30)),
        optimizer=getattr(torch.optim, optimizer)(jem.parameters(), 0.1, **options),
        epochs=2,
        batch_size=20,
        transforms=[hm.ParameterAverage(0.9)],
        monitors=[hm.Guard(every=1)],
        generator=generator,
    )


def flat(run: Training) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in GoodState.of(run).tensors().items()}


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "Adagrad"])
def test_there_and_back(optimizer: str, generator: torch.Generator) -> None:
    run = training(optimizer, generator)
    run.run()
    before = flat(run)
    good = GoodState.from_tensors(before, run)
    run.epochs = 4
    run.run()
    moved = flat(run)
    assert any(not torch.equal(moved[name], value) for name, value in before.items() if name.startswith("optimizer."))
    assert not torch.equal(moved["objective.chains"], before["objective.chains"])
    run.optimizer.param_groups[0]["lr"] = 7.0
    good.restore(run)
    after = flat(run)
    assert set(after) == set(before)
    for name, value in before.items():
        if name != "update":  # the count of updates goes on
            assert torch.equal(after[name], value), name


def test_a_kept_state_does_not_move(generator: torch.Generator) -> None:
    run = training("Adam", generator)
    good = GoodState.of(run)
    before = {name: value.clone() for name, value in good.tensors().items()}
    run.run()
    assert all(torch.equal(value, before[name]) for name, value in good.tensors().items())
