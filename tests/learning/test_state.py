"""A run cut at any update and taken up again ends bit for bit where the uninterrupted one does; states to return to."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import harmonium as hm
from harmonium.evaluation.likelihood_track import LikelihoodTrack
from harmonium.learning import Training
from harmonium.learning.monitors import Guard, default_monitors
from harmonium.learning.objectives import Contrastive, ReplayBuffer
from harmonium.learning.state import learned, restore, restore_learned, snapshot
from tests.learning.machines import small_bars

Build = Callable[[], Training]


def training(
    objective: Callable[[], Contrastive],
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.SGD,
    *,
    missing: bool = False,
    schedule: Callable[..., Any] | None = None,
    transforms: Callable[[], list[Any]] = list,
    monitors: Callable[[], list[Any]] = default_monitors,
    gaussian: bool = False,
) -> Training:
    x = small_bars().float().repeat(3, 1)
    if gaussian:
        x = x + 0.1 * torch.empty_like(x).normal_(generator=torch.Generator().manual_seed(3))
    if missing:
        x[torch.empty_like(x).uniform_(generator=torch.Generator().manual_seed(2)) < 0.2] = torch.nan
    units = hm.Gaussian(9) if gaussian else hm.Bernoulli(9)
    rbm = hm.RBM(units, hm.Bernoulli(5), generator=torch.Generator().manual_seed(1))
    hm.initialize(rbm, x)
    with torch.no_grad():
        rbm.weight.mul_(50)  # so that the chains feel each other's layers
    steps = optimizer(rbm.parameters(), lr=0.01)
    return Training(
        rbm,
        x,
        objective(),
        optimizer=steps,
        epochs=4,
        batch_size=10,
        validation=x[:5].nan_to_num(),
        transforms=transforms(),
        schedule=None if schedule is None else schedule(steps),
        monitors=monitors(),
        generator=torch.Generator().manual_seed(7),
    )


def convolutional_training() -> Training:
    """Filters lie in memory with their channels last, which a fused optimizer must find again."""
    x = small_bars().float().repeat(3, 2).view(-1, 2, 3, 3)
    source = torch.Generator().manual_seed(1)
    rbm = hm.RBM(hm.Bernoulli(2, 3, 3), hm.Bernoulli(4, 2, 2), hm.Conv2d(2, 4, kernel=2, generator=source))
    steps = torch.optim.Adam(rbm.parameters(), lr=0.01, fused=True)
    generator = torch.Generator().manual_seed(7)
    return Training(rbm, x, hm.CD(), optimizer=steps, epochs=4, batch_size=10, generator=generator)


CASES: dict[str, Build] = {
    "convolution, fused Adam": convolutional_training,
    "CD": lambda: training(hm.CD),
    "PCD": lambda: training(lambda: hm.PCD(n_chains=6)),
    "TemperedPCD": lambda: training(lambda: hm.TemperedPCD(n_chains=4, betas=(0.0, 0.5, 1.0))),
    "PCD by Metropolis": lambda: training(lambda: hm.PCD(n_chains=6, sampler=hm.samplers.Metropolis())),
    "Adam": lambda: training(hm.CD, torch.optim.Adam),
    "momentum": lambda: training(hm.CD, lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9)),
    "schedule": lambda: training(hm.CD, schedule=lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 4)),
    "warm-up": lambda: training(hm.CD, schedule=lambda o: torch.optim.lr_scheduler.LinearLR(o, 0.1, total_iters=3)),
    "averages": lambda: training(
        lambda: hm.PCD(n_chains=6),
        transforms=lambda: [hm.Centering(), hm.Sparsity(0.1, 0.1), hm.WeightDecay(0.01), hm.ParameterAverage(0.9, 3)],
    ),
    "missing values": lambda: training(lambda: hm.PCD(n_chains=6), missing=True),
    "Gaussian units": lambda: training(lambda: hm.PCD(n_chains=6), torch.optim.Adam, gaussian=True),
    "running likelihood": lambda: training(
        lambda: hm.PCD(n_chains=6),
        monitors=lambda: [LikelihoodTrack(n_particles=16, n_bridges=4)],
    ),
}


class StopAt(hm.learning.Callback):
    """Stops a run after an update."""

    def __init__(self, update: int) -> None:
        self.update = update

    def on_update(self, training: Training) -> None:
        training.stop = training.stop or training.update == self.update


def through_json(tensors: dict[str, Tensor], plain: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Copy a snapshot as saving would: tensors by value and row by row, the rest as text."""
    rows = {name: value.clone(memory_format=torch.contiguous_format) for name, value in tensors.items()}
    return rows, json.loads(json.dumps(plain))


def equal(first: Any, second: Any) -> bool:
    if isinstance(first, Tensor):
        return first.dtype == second.dtype and torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(equal(first[key], second[key]) for key in first)
    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(map(equal, first, second))
    return first == second


def outcome(run: Training) -> tuple[Any, Any]:
    tensors, plain = through_json(*snapshot(run))
    plain.pop("seconds")
    return tensors, plain


@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("cut", [1, 5, 7, 15])
def test_an_interrupted_run_ends_the_same(case: str, cut: int) -> None:
    """48 rows in batches of 10: update 5 is the last of an epoch, the others lie inside one."""
    straight = CASES[case]()
    straight.run()
    assert straight.update == 20
    first = CASES[case]()
    first.callbacks = (StopAt(cut),)
    first.run()
    assert first.update == cut
    saved = through_json(*snapshot(first))
    second = CASES[case]()
    restore(second, *saved)
    second.run()
    assert equal(outcome(second), outcome(straight))


@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
def test_a_snapshot_can_be_used_twice() -> None:
    first = CASES["averages"]()
    first.callbacks = (StopAt(7),)
    first.run()
    saved = through_json(*snapshot(first))
    kept = copy.deepcopy(saved)
    results = []
    for _ in range(2):
        again = CASES["averages"]()
        restore(again, *saved)
        again.run()
        results.append(outcome(again))
    assert equal(*results)
    assert equal(saved, kept)


@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
@pytest.mark.parametrize(
    "lost", ["generator", "order", "learned.optimizer.0.momentum_buffer", "learned.objective.hidden"]
)
def test_what_a_snapshot_holds_is_needed(lost: str) -> None:
    """The negative control: with any of its parts spoiled the run ends elsewhere."""

    def build() -> Training:
        return training(lambda: hm.PCD(n_chains=6), lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9))

    straight = build()
    straight.run()
    first = build()
    first.callbacks = (StopAt(7),)
    first.run()
    tensors, plain = through_json(*snapshot(first))
    if lost == "generator":
        tensors[lost] = torch.Generator().manual_seed(99).get_state()
    else:
        tensors[lost] = tensors[lost].flip(0)
    second = build()
    restore(second, tensors, plain)
    second.run()
    assert not torch.equal(second.model.weight, straight.model.weight)


# --- what was learned, to go back to ----------------------------------------------------------------------------------
def joint_training(optimizer: str, generator: torch.Generator) -> Training:
    jem = hm.JEM(hm.MLP(2, 2, hidden=(4,), generator=generator))
    options = {"momentum": 0.9} if optimizer == "SGD" else {}
    return Training(
        jem,
        (torch.randn(40, 2, generator=generator), torch.arange(40) % 2),
        hm.learning.objectives.JointLikelihood(n_steps=2, buffer=ReplayBuffer(n_chains=30)),
        optimizer=getattr(torch.optim, optimizer)(jem.parameters(), 0.1, **options),
        epochs=2,
        batch_size=20,
        transforms=[hm.ParameterAverage(0.9)],
        monitors=[Guard(every=1)],
        generator=generator,
    )


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "Adagrad"])
def test_there_and_back(optimizer: str, generator: torch.Generator) -> None:
    run = joint_training(optimizer, generator)
    run.run()
    before = learned(run, copy=True)
    good = {name: value.clone() for name, value in before.items()}
    run.epochs = 4
    run.run()
    moved = learned(run, copy=True)
    assert any(not torch.equal(moved[name], value) for name, value in before.items() if name.startswith("optimizer."))
    assert not torch.equal(moved["objective.chains"], before["objective.chains"])
    run.optimizer.param_groups[0]["lr"] = 7.0
    restore_learned(run, good)
    after = learned(run, copy=True)
    assert set(after) == set(before)
    for name, value in before.items():
        if name != "update":  # the count of updates goes on
            assert torch.equal(after[name], value), name
    run.epochs = 6
    run.run()
    assert all(torch.equal(value, before[name]) for name, value in good.items()), "what is restored is copied"


def test_a_kept_state_does_not_move(generator: torch.Generator) -> None:
    run = joint_training("Adam", generator)
    good, live = learned(run, copy=True), learned(run)
    before = {name: value.clone() for name, value in good.items()}
    run.run()
    assert all(torch.equal(value, before[name]) for name, value in good.items())
    assert not all(torch.equal(value, before[name]) for name, value in live.items())  # the control: without a copy
