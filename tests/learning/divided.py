"""Trainings that any number of workers can do, for the tests of division: what each leaves."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import distributed
from torch.utils.data import DataLoader, TensorDataset

import harmonium as hm
from harmonium import draws, workers
from harmonium.learning import Training, division
from harmonium.learning.monitors import Depths, JointCurves, default_monitors
from harmonium.learning.objectives import (
    CrossEntropy,
    DenoisingScoreMatching,
    FastPCD,
    Hybrid,
    JointLikelihood,
    LeaveOneOut,
    MeanFieldCD,
    Objective,
    PerturbAndMAP,
    PseudoLikelihood,
    Reconstruction,
    ScaledContrast,
    SlicedScoreMatching,
    SummedLayers,
    TemperedPCD,
)
from harmonium.learning.objectives.replay_buffer import ReplayBuffer
from harmonium.learning.state import restore, snapshot
from harmonium.learning.transforms import Centering, Sparsity
from harmonium.models import RatingRBM, ScaleMixture
from harmonium.samplers import MALA
from tests.learning.machines import MACHINES, draw_data, make

N_CHAINS = 30
N_ROWS, BATCH = 25, 11  # two batches of 11 rows, and one of 3: too few to be shared


def trained(machine: str, objective: Callable[[], Any], n_rows: int = N_ROWS, **options: Any) -> dict[str, Any]:
    """Train a machine for two epochs; return its parameters, its chains and what was recorded."""
    model = make(machine)
    x = draw_data(model, n_rows, torch.Generator().manual_seed(1))
    return _trained(model, x, objective(), **options)


def _trained(model: torch.nn.Module, data: Any, objective: Any, **options: Any) -> dict[str, Any]:
    return _left(_training(model, data, objective, **options))


def _training(model: torch.nn.Module, data: Any, objective: Any, **options: Any) -> Training:
    return Training(
        model,
        data,
        objective,
        optimizer=torch.optim.SGD(model.parameters(), 0.05, momentum=0.5),
        generator=torch.Generator().manual_seed(2),
        **{"monitors": default_monitors(), "batch_size": BATCH, "epochs": 2} | options,
    )


def _left(training: Training) -> dict[str, Any]:
    """Run a training; return what it leaves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        history = training.run()
    tensors, _ = snapshot(training)
    return {"tensors": {name: value.detach().numpy() for name, value in tensors.items()}, "records": history.records}


def every_machine(rule: Callable[[], Any]) -> dict[str, Callable[[], Any]]:
    """Return a case for each kind of unit and coupling."""
    return {name: lambda name=name: trained(name, rule) for name in MACHINES}


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    **{f"CD, {name}": case for name, case in every_machine(hm.CD).items()},
    **{f"PCD, {name}": case for name, case in every_machine(lambda: hm.PCD(n_chains=9)).items()},
    "CD-3": lambda: trained("Bernoulli", lambda: hm.CD(3)),
    "tempered": lambda: trained("Bernoulli", lambda: TemperedPCD(n_chains=9, betas=(0.0, 0.5, 1.0))),
    "fast": lambda: trained("Bernoulli", lambda: FastPCD(n_chains=9)),
    "by means": lambda: trained("Bernoulli", MeanFieldCD),
    "pseudo-likelihood": lambda: trained("Bernoulli", PseudoLikelihood),
    "denoising": lambda: trained("Gaussian", DenoisingScoreMatching),
    "sliced": lambda: trained("Gaussian", SlicedScoreMatching),
    "centered": lambda: trained("Bernoulli", hm.CD, transforms=[Centering(), Sparsity(0.1, 0.5)]),
    "weighted": lambda: trained("Bernoulli", lambda: hm.PCD(n_chains=9), weights=np.arange(N_ROWS) % 3),
    "with holes": lambda: with_holes(),
    "more rows than are looked at": lambda: trained("Bernoulli", hm.CD, n_rows=400, batch_size=40),
    "hybrid": lambda: classified(),
    "hybrid, few labels": lambda: classified(n_labeled=2),
    "layers summed": lambda: deep(SummedLayers(hm.CD())),
    "layers summed, by means": lambda: deep(SummedLayers(weights=(1.0, 0.5))),
    "layers summed, chains on top": lambda: deep(SummedLayers(members=[MeanFieldCD(), hm.PCD(n_chains=8)])),
    "rebuilt": lambda: deep(Reconstruction(noise=0.1)),
    "by modes": lambda: trained("Bernoulli", PerturbAndMAP),
    "scaled": lambda: scaled(),
    "left out": lambda: rated(),
    "classes": lambda: told_apart(CrossEntropy()),
    "classes, thinned": lambda: told_apart(CrossEntropy(dropout=0.5, input_dropout=0.2)),
    "joint": lambda: joint(),
    "joint, chains brought along": lambda: joint(bring=True),
}


def rows_of_bits(n_units: int) -> torch.Tensor:
    """Return rows of as many bits."""
    half = torch.full((N_ROWS, n_units), 0.5, dtype=torch.float64)
    return draws.draw_bernoulli(half, generator=torch.Generator().manual_seed(1))


def classified(n_labeled: int = N_ROWS) -> dict[str, Any]:
    """Train a machine with classes, some rows without a label: of a few batches only one worker has any."""
    model = hm.ClassRBM(hm.Bernoulli(6), hm.Bernoulli(4), 3, generator=torch.Generator().manual_seed(0)).double()
    label = torch.eye(3, dtype=torch.float64)[torch.arange(N_ROWS) % 3].unsqueeze(1)
    label[n_labeled:] = torch.nan
    return _trained(model, {"visible": rows_of_bits(6), "label": label}, Hybrid(0.3))


def deep(objective: Objective) -> dict[str, Any]:
    """Train a deep belief network of two machines."""
    generator = torch.Generator().manual_seed(0)
    units = [hm.Bernoulli(6), hm.Bernoulli(5), hm.Bernoulli(3)]
    machines = [hm.RBM(below, above, generator=generator) for below, above in itertools.pairwise(units)]
    return _trained(hm.DBN(machines).double(), rows_of_bits(6), objective, monitors=[Depths()])


def scaled() -> dict[str, Any]:
    """Train a machine of data whose scale varies."""
    rbm = hm.RBM(hm.Gaussian(3), hm.Bernoulli(2), generator=torch.Generator().manual_seed(0))
    x = draws.draw_normal(torch.empty(N_ROWS, 3, dtype=torch.float64), generator=torch.Generator().manual_seed(1))
    mixture = ScaleMixture(rbm, 0.5, 2.0, 3).double()
    return _trained(mixture, x, ScaledContrast(hm.PCD(n_chains=9)), monitors=[])


def rated() -> dict[str, Any]:
    """Train on a table of ratings of which most are unknown."""
    model = RatingRBM(6, 8, (1, 2, 3), hm.Gaussian(2), generator=torch.Generator().manual_seed(0)).double()
    table = torch.arange(48.0).square().remainder(7).view(6, 8)
    table[table > 2] = torch.nan
    return _trained(model, table + 1, LeaveOneOut(), monitors=[], batch_size=5)


def told_apart(objective: CrossEntropy) -> dict[str, Any]:
    """Train a network on rows some of which have no label."""
    network = hm.RBM(hm.Bernoulli(6), hm.Bernoulli(4), generator=torch.Generator().manual_seed(0)).to_network(3)
    return _trained(network.double(), (rows_of_bits(6), torch.arange(N_ROWS) % 4 - 1), objective, monitors=[])


def joint(bring: bool = False) -> dict[str, Any]:
    """Train a classifier and density with a buffer of chains, some rows without a label."""
    return _left(joint_training(bring=bring))


def joint_training(*, epochs: int = 2, bring: bool = False) -> Training:
    """Return a training of a classifier and density with a buffer of chains, new ones or chains that are there."""
    model = hm.JEM(hm.MLP(4, 3, hidden=(5,), generator=torch.Generator().manual_seed(0)).double(), 4, 3)
    generator = torch.Generator().manual_seed(1)
    x = draws.draw_uniform(torch.empty(N_ROWS, 4, dtype=torch.float64), generator=generator)
    y = torch.arange(N_ROWS) % 4 - 1
    chains = draws.draw_uniform(torch.empty(N_CHAINS, 4, dtype=torch.float64), generator=generator) if bring else None
    buffer = ReplayBuffer(n_chains=N_CHAINS, renewal=0.2, n_classes=3, chains=chains)
    rule = JointLikelihood(n_steps=2, sampler=MALA(0.05), buffer=buffer, box=(0.0, 1.0), energy_penalty=0.1)
    return _training(model, {"x": x, "y": y}, rule, monitors=[JointCurves()], epochs=epochs)


def held_after_an_epoch(path: str) -> int:
    """Train for one of two epochs, leave the state behind, and return how many chains this worker holds."""
    training = joint_training(epochs=1)
    training.run()
    state = snapshot(training)
    if workers.is_first():
        torch.save(state, path)
    assert isinstance(training.objective, JointLikelihood) and training.objective.buffer is not None
    assert training.objective.buffer.chains is not None
    return len(training.objective.buffer.chains)


def gone_on(path: str) -> dict[str, Any]:
    """Go on from what was left behind to the second epoch."""
    training = joint_training()
    restore(training, *torch.load(path))
    return _left(training)


def with_holes() -> dict[str, Any]:
    """Train on rows of which some values are unknown."""
    model = make("Bernoulli")
    x = draw_data(model, N_ROWS, torch.Generator().manual_seed(1))
    x[::4, 2] = float("nan")
    return _trained(model, x, hm.CD())


def all_cases() -> dict[str, dict[str, Any]]:
    """Return what every case leaves."""
    return {name: case() for name, case in CASES.items()}


def some_cases(names: list[str]) -> dict[str, dict[str, Any]]:
    """Return what these cases leave."""
    return {name: CASES[name]() for name in names}


def refusals() -> dict[str, str]:
    """Return what a worker is told where workers do not fit together."""
    rank = workers.rank()
    x = draw_data(make("Bernoulli"), N_ROWS, torch.Generator().manual_seed(1))
    attempts: dict[str, dict[str, Any]] = {
        "batch size": {"batch_size": 10 + rank},
        "seed": {"generator": torch.Generator().manual_seed(rank)},
        "chains": {"objective": hm.PCD(n_chains=3)},
        "loader": {"data": DataLoader(TensorDataset(x))},
    }
    told = {}
    for name, options in attempts.items():
        model = make("Bernoulli")
        usual = {"data": x, "objective": hm.CD(), "epochs": 1, "generator": torch.Generator().manual_seed(0)}
        with pytest.raises(workers.WorkersApartError) as error:
            hm.fit(model, **usual | options, optimizer=torch.optim.SGD(model.parameters(), 0.1))
        told[name] = str(error.value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(division, "_version", lambda: f"1.{rank}")
        with pytest.raises(workers.WorkersApartError) as error:
            hm.fit(make("Bernoulli"), x, hm.CD(), epochs=1, generator=torch.Generator().manual_seed(0))
    told["version"] = str(error.value)
    return told


def exchanges() -> dict[str, Any]:
    """Return what was asked of the group in an epoch, from equal parameters and from others, and how these ended."""
    found: dict[str, Any] = {}
    for name, seed in (("alike", 0), ("apart", workers.rank())):
        model = hm.RBM(hm.Bernoulli(6), hm.Bernoulli(4), generator=torch.Generator().manual_seed(seed))
        x = draw_data(model, N_ROWS, torch.Generator().manual_seed(1))
        with pytest.MonkeyPatch.context() as patch:
            asked: list[str] = []
            for call in ("all_gather", "all_reduce", "broadcast", "barrier"):
                patch.setattr(distributed, call, counted(getattr(distributed, call), call, asked))
            hm.fit(model, x, hm.CD(), optimizer=torch.optim.SGD(model.parameters(), 0.1), epochs=2, monitors=[])
        found[name] = asked, model.weight.detach().numpy()
    return found


def counted(call: Callable[..., Any], name: str, into: list[str]) -> Callable[..., Any]:
    """Return a function that notes its name, too."""

    def noted(*arguments: Any, **options: Any) -> Any:
        into.append(name)
        return call(*arguments, **options)

    return noted
