"""The loop: what it learns, and how it stops."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

import harmonium as hm
from harmonium.learning import Training
from harmonium.learning.objectives import Contrastive, Objective
from tests.learning.machines import draw_data, make, small_bars

INDEPENDENT = -9 * math.log(2)
"""The mean log-likelihood of bars and stripes under independent units: every pixel is on half of the time."""


def scored_rbm(objective: Contrastive, optimizer: type, rate: float, seed: int, **options: Any) -> float:
    """Train on bars and stripes for 1000 updates of 64 rows and return the exact mean log-likelihood."""
    generator = torch.Generator().manual_seed(seed)
    x = small_bars()
    rbm = hm.RBM(hm.Bernoulli(9), hm.Bernoulli(12), generator=generator).double()
    hm.initialize(rbm, x)
    hm.fit(rbm, x.repeat(4, 1), objective, optimizer=optimizer(rbm.parameters(), rate), epochs=1000, batch_size=64,
           monitors=[], generator=generator, **options)  # fmt: skip
    return hm.log_likelihood(rbm, x.double()).mean().value


@pytest.mark.parametrize("kind", ["CD", "PCD", "TemperedPCD"])
def test_bars_and_stripes(kind: str, generator: torch.Generator) -> None:
    """Far above independent units (-9 log 2), below the entropy of the data, which nothing can beat."""
    objectives = {"CD": hm.CD(n_steps=2), "PCD": hm.PCD(n_chains=64), "TemperedPCD": hm.TemperedPCD(n_chains=32)}
    score = scored_rbm(objectives[kind], torch.optim.Adam, 0.01, generator.initial_seed())
    entropy = 12 / 16 * math.log(16) + 4 / 16 * math.log(8)
    assert INDEPENDENT + 1.5 < score < -entropy


def test_centering_learns_faster(generator: torch.Generator) -> None:
    seed = generator.initial_seed()
    plain, centered = (
        scored_rbm(hm.CD(), torch.optim.SGD, 0.1, seed, transforms=transforms) for transforms in ([], [hm.Centering()])
    )
    assert centered > plain > INDEPENDENT


def test_gaussian_units_learn_their_width(generator: torch.Generator) -> None:
    """Two clusters in the plane: the learned density is far better than one Gaussian fitted to them."""
    centers = torch.tensor([[2.0, 2.0], [-2.0, -2.0]]).repeat(200, 1)
    x = (centers + 0.5 * torch.empty_like(centers).normal_(generator=generator)).double()
    rbm = hm.RBM(hm.Gaussian(2), hm.Bernoulli(4), generator=generator).double()
    hm.initialize(rbm, x)
    optimizer = torch.optim.Adam(rbm.parameters(), 0.03)
    hm.fit(rbm, x, hm.CD(n_steps=5), optimizer=optimizer, epochs=60, batch_size=100, monitors=[], generator=generator)
    gaussian = torch.distributions.MultivariateNormal(x.mean(0), x.t().cov()).log_prob(x).mean().item()
    assert hm.log_likelihood(rbm, x).mean().value > gaussian + 0.2
    assert bool((rbm.visible.sigma < 1.5).all())  # the data spread by 2.06


def test_weights_of_rows(generator: torch.Generator) -> None:
    """Rows of weight zero are not learned: the model of the weighted half is that half."""
    x = torch.cat([torch.zeros(50, 4), torch.ones(50, 4)])
    weights = torch.cat([torch.zeros(50), torch.ones(50)])
    rbm = hm.RBM(hm.Bernoulli(4), hm.Bernoulli(2), generator=generator)
    hm.fit(rbm, x, hm.PCD(n_chains=50), optimizer=torch.optim.SGD(rbm.parameters(), 0.5), epochs=40, batch_size=25,
           weights=weights, monitors=[], generator=generator)  # fmt: skip
    scores = hm.log_likelihood(rbm, x).value
    assert scores[-1] > -0.5
    assert scores[0] < -5


def test_bad_weights() -> None:
    rbm = hm.RBM(hm.Bernoulli(4), hm.Bernoulli(2))
    optimizer = torch.optim.SGD(rbm.parameters(), 0.1)
    x = torch.zeros(5, 4)
    for weights in (torch.ones(4), -torch.ones(5), torch.full((5,), torch.nan)):
        with pytest.raises(ValueError, match="`weights` must have one value ≥ 0 for each of the 5 rows"):
            hm.fit(rbm, x, hm.CD(), optimizer=optimizer, epochs=1, weights=weights)
    with pytest.raises(ValueError, match="`weights` need rows with numbers"):
        hm.fit(rbm, DataLoader(x), hm.CD(), optimizer=optimizer, epochs=1, weights=torch.ones(5))


@pytest.mark.parametrize("batch_size", [25, 100])
def test_divergence_stops_and_goes_back(batch_size: int, generator: torch.Generator) -> None:
    """A huge rate on Gaussian units; parameters and chains are finite again afterwards, the message says what to do."""
    rbm = make("Gaussian")
    x = draw_data(rbm, 100, generator)
    before = {name: value.detach().clone() for name, value in rbm.named_parameters()}
    objective = hm.PCD(n_chains=10)
    with pytest.raises(
        hm.learning.TrainingDiverged, match="not finite.*back at the start of this epoch. Lower the learning rate"
    ):
        hm.fit(rbm, x, objective, optimizer=torch.optim.SGD(rbm.parameters(), 1e30), epochs=20, batch_size=batch_size,
               generator=generator)  # fmt: skip
    assert all(bool(value.isfinite().all()) for value in rbm.parameters())
    assert all(bool(value.isfinite().all()) for value in objective.state_dict().values())
    if batch_size < 100:  # it broke inside the first epoch
        assert all(torch.equal(value, before[name]) for name, value in rbm.named_parameters())


def test_a_parameter_that_breaks_at_the_end_of_an_epoch_is_not_kept(generator: torch.Generator) -> None:
    rbm = make("Bernoulli")
    x = draw_data(rbm, 8, generator)
    before = rbm.weight.detach().clone()

    class Break(hm.WeightDecay):
        def after(self, model: nn.Module) -> None:
            with torch.no_grad():
                model.weight[0, 0] = torch.inf  # type: ignore[index, operator]

    with pytest.raises(hm.learning.TrainingDiverged, match="A parameter is not finite after update 1"):
        hm.fit(rbm, x, hm.CD(), optimizer=torch.optim.SGD(rbm.parameters(), 0.1), epochs=1, transforms=[Break(0.0)],
               monitors=[], generator=generator)  # fmt: skip
    assert torch.equal(rbm.weight, before)


@pytest.mark.parametrize("place", [(0, 0), (-1, -1)])
@pytest.mark.parametrize("kind", ["Bernoulli", "Multinary", "Gaussian"])
def test_a_weight_that_breaks_is_seen_at_the_next_update(
    kind: str, place: tuple[int, int], generator: torch.Generator
) -> None:
    """Bounded visible units have means that cannot grow; NaN still reaches the bias that is watched."""
    rbm = make(kind)
    x = draw_data(rbm, 32, generator)

    class Break(hm.WeightDecay):
        def after(self, model: nn.Module) -> None:
            with torch.no_grad():
                model.weight.view(-1, model.weight.shape[-1])[place] = torch.nan  # type: ignore[index, operator, union-attr]

    with pytest.raises(hm.learning.TrainingDiverged, match="The gradient of update 2"):
        hm.fit(rbm, x, hm.CD(), optimizer=torch.optim.SGD(rbm.parameters(), 1e-3), epochs=1, transforms=[Break(0.0)],
               batch_size=8, monitors=[], generator=generator)  # fmt: skip


def test_a_sane_rate_does_not_stop(generator: torch.Generator) -> None:
    rbm = make("Gaussian")
    x = draw_data(rbm, 100, generator)
    history = hm.fit(rbm, x, hm.PCD(n_chains=10), optimizer=torch.optim.SGD(rbm.parameters(), 1e-3), epochs=3,
                     generator=generator)  # fmt: skip
    assert len(history) == 3


def test_schedules_and_optimizers(generator: torch.Generator) -> None:
    rbm = make("Bernoulli")
    optimizer = torch.optim.AdamW(rbm.parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    hm.fit(rbm, draw_data(rbm, 20, generator), hm.CD(), optimizer=optimizer, epochs=3, schedule=schedule,
           generator=generator, monitors=[])  # fmt: skip
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1 / 8)


def test_one_update_is_the_gradient_step(generator: torch.Generator) -> None:
    """SGD of rate 1 on one batch: θ ← θ - ∇, with the gradient of the objective on the shuffled rows."""
    rbm = make("Gaussian")
    x = draw_data(rbm, 6, generator)
    before = rbm.weight.detach().clone()
    seed = torch.Generator().manual_seed(4)
    order = torch.randperm(6, generator=seed)
    hm.CD().accumulate_grad(rbm, x[order], generator=seed)
    expected = before - rbm.weight.grad
    hm.fit(rbm, x, hm.CD(), optimizer=torch.optim.SGD(rbm.parameters(), 1.0), epochs=1, monitors=[],
           generator=torch.Generator().manual_seed(4))  # fmt: skip
    assert torch.allclose(rbm.weight, expected, atol=1e-12)


class Quadratic(nn.Module):
    """An energy that is not a Boltzmann machine."""

    def __init__(self) -> None:
        super().__init__()
        self.center = nn.Parameter(torch.zeros(2))

    def free_energy(self, x: Tensor) -> Tensor:
        return (x - self.center).square().sum(-1) / 2


class MeanEnergy(Objective):
    """An objective of one's own: a loss and nothing else."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Tensor]] = []

    def loss(self, model: nn.Module, batch: Any, *, generator: torch.Generator | None = None) -> Tensor:
        self.seen.append(batch)
        return model.free_energy(batch["x"]).mean()  # type: ignore[operator]


def test_any_model_with_a_loss(generator: torch.Generator) -> None:
    model, objective = Quadratic(), MeanEnergy()
    x = 3.0 + 0.1 * torch.empty(64, 2).normal_(generator=generator)
    history = hm.fit(model, x, objective, optimizer=torch.optim.SGD(model.parameters(), 0.5), epochs=10, batch_size=32,
                     generator=generator)  # fmt: skip
    assert torch.allclose(model.center, x.mean(0), atol=0.05)
    assert len(history) == 10
    assert sorted(torch.cat([batch["x"] for batch in objective.seen[:2]]).tolist()) == sorted(x.tolist())
    with pytest.raises(ValueError, match="The data have 2 parts"):
        hm.fit(model, (x, torch.arange(64)), objective, optimizer=torch.optim.SGD(model.parameters(), 0.5), epochs=1)
    with pytest.raises(ValueError, match="`weights` need rows with numbers and a contrastive objective"):
        hm.fit(model, x, objective, optimizer=torch.optim.SGD(model.parameters(), 0.5), epochs=1,
               weights=torch.ones(64))  # fmt: skip


def test_labels_reach_an_objective(generator: torch.Generator) -> None:
    jem, objective = hm.JEM(hm.MLP(2, 64, generator=generator)), MeanEnergy()
    x = torch.empty(64, 2).normal_(generator=generator)
    hm.fit(jem, (x, torch.arange(64)), objective, optimizer=torch.optim.SGD(jem.parameters(), 0.0), epochs=1,
           batch_size=32, generator=generator)  # fmt: skip
    labels = torch.cat([batch["y"] for batch in objective.seen])
    assert sorted(labels.tolist()) == list(range(64))
    assert torch.equal(torch.cat([batch["x"] for batch in objective.seen]), x[labels])


def test_callbacks_and_stop(generator: torch.Generator) -> None:
    calls: list[str] = []

    class Watch(hm.learning.Callback):
        def on_start(self, training: Training) -> None:
            calls.append("start")

        def on_update(self, training: Training) -> None:
            calls.append(f"update {training.update}")
            training.stop = training.update == 5

        def on_epoch(self, training: Training, record: dict[str, Any]) -> None:
            calls.append(f"epoch {record['epoch']}")

    rbm = make("Bernoulli")
    hm.fit(rbm, draw_data(rbm, 30, generator), hm.CD(), optimizer=torch.optim.SGD(rbm.parameters(), 0.1), epochs=9,
           batch_size=10, callbacks=[Watch()], monitors=[], generator=generator)  # fmt: skip
    assert calls == ["start", "update 1", "update 2", "update 3", "epoch 1", "update 4", "update 5"]


def test_bad_input() -> None:
    rbm = hm.RBM(hm.Bernoulli(4), hm.Bernoulli(2))
    options: dict[str, Any] = {"optimizer": torch.optim.SGD(rbm.parameters(), 0.1), "epochs": 1}
    with pytest.raises(ValueError, match="The data has no rows"):
        hm.fit(rbm, torch.zeros(0, 4), hm.CD(), **options)
    with pytest.raises(ValueError, match="`batch_size` must be a whole number, at least 1. Got 0"):
        hm.fit(rbm, torch.zeros(3, 4), hm.CD(), batch_size=0, **options)
    with pytest.raises(ValueError, match="`epochs` must be a whole number, at least 0. Got 1.5"):
        hm.fit(rbm, torch.zeros(3, 4), hm.CD(), **options | {"epochs": 1.5})
    with pytest.raises(TypeError, match="`objective` must be an Objective, such as CD"):
        hm.fit(rbm, torch.zeros(3, 4), lambda model, batch: model.free_energy(batch).mean(), **options)  # type: ignore[arg-type]
    stranger = torch.optim.SGD(hm.RBM(hm.Bernoulli(4), hm.Bernoulli(2)).parameters(), 0.1)
    with pytest.raises(ValueError, match="The optimizer moves 3 parameters that are not those of this model"):
        hm.fit(rbm, torch.zeros(3, 4), hm.CD(), **options | {"optimizer": stranger})
    with pytest.raises(ValueError, match="All values of layer 'visible' are NaN"):
        hm.fit(rbm, torch.full((3, 4), torch.nan), hm.CD(), **options)
    with pytest.raises(ValueError, match=r"`visible` must have shape \(\*batch, 4\)"):
        hm.fit(rbm, torch.zeros(3, 5), hm.CD(), **options)
    with pytest.raises(ValueError, match=r"`visible` must lie in \[0, 1\].*Got values from 0 to 255"):
        hm.fit(rbm, torch.tensor([[0, 255, 0, 0]], dtype=torch.uint8), hm.CD(), **options)
    with pytest.raises(ValueError, match="infinity"):
        hm.fit(rbm, torch.full((3, 4), torch.inf), hm.CD(), **options)


def test_the_data_is_left_alone(generator: torch.Generator) -> None:
    x = small_bars()
    before = x.clone()
    rbm = hm.RBM(hm.Bernoulli(9), hm.Bernoulli(2), generator=generator)
    hm.fit(rbm, x, hm.PCD(n_chains=4), optimizer=torch.optim.SGD(rbm.parameters(), 0.1), epochs=2, generator=generator)
    assert x.dtype == torch.uint8
    assert torch.equal(x, before)
