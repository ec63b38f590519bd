"""The machines that are to be learned, and data drawn from them exactly."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn

from harmonium.draws import draw_normal
from harmonium.laws import IndependentUnits
from harmonium.learning.objectives import ExactLikelihood
from harmonium.learning.starts import initialize
from harmonium.models import RBM
from harmonium.partition import exact_log_z
from harmonium.units import Bernoulli, Gaussian, Units

VISIBLE: dict[str, type[Units]] = {"bernoulli": Bernoulli, "gaussian": Gaussian}
"""The visible units of a machine that is learned, by their name."""

_BIAS_NOISE = 0.2


def make_teacher(visible: str, n_visible: int, n_hidden: int, strength: float, *, generator: torch.Generator) -> RBM:
    """Return a machine with normal weights of standard deviation `strength`.

    Biases make up for half of the weights, so that a unit is on about half of the time, and small noise is added: with
    strong weights the law has modes that lie opposite each other. For 0/1 units `b = -½ Σ_j W_ij`, `c = -½ Σ_i W_ij`;
    for Gaussian ones `b` alone, since `log p(h) = c·h + ‖b + Wh‖²/2 + const` is even in `h - ½` then.
    """
    rbm = RBM(VISIBLE[visible](n_visible), Bernoulli(n_hidden)).requires_grad_(False)
    rbm.weight.copy_(strength * draw_normal(rbm.weight, generator=generator))
    for bias in (rbm.visible_bias, rbm.hidden_bias):
        bias.copy_(_BIAS_NOISE * draw_normal(bias, generator=generator))
    rbm.visible_bias.sub_(rbm.weight.sum(1) / 2)
    if visible == "bernoulli":
        rbm.hidden_bias.sub_(rbm.weight.sum(0) / 2)
    return rbm


class Lesson:
    """A machine to be learned, with training, validation and test data drawn from it exactly, `n_rows` of each.

    `truth` is its own exact mean log-likelihood of the test data, `independent` that of independent units fitted to the
    training data. The seed decides all of it, and what a learner draws.
    """

    def __init__(self, visible: str, n_visible: int, n_hidden: int, strength: float, seed: int, n_rows: int) -> None:
        self.strength, self.seed = strength, seed
        generator = torch.Generator().manual_seed(seed)
        self.teacher = make_teacher(visible, n_visible, n_hidden, strength, generator=generator)
        self.train, self.valid, self.test = (draw_rows(self.teacher, n_rows, generator=generator) for _ in range(3))
        (self.truth,) = nats(self.teacher, self.test)
        alone = IndependentUnits.fitted(self.teacher.visible, self.train)
        self.independent = -alone.free_energy(self.test).mean().item()

    def learner(self, *, generator: torch.Generator) -> RBM:
        """Return a machine of the same size that knows the means of the data and no more."""
        units = type(self.teacher.visible)(*self.teacher.visible.shape)
        rbm = RBM(units, Bernoulli(*self.teacher.hidden.shape), generator=generator)
        initialize(rbm, self.train)
        return rbm


def draw_rows(teacher: RBM, n: int, *, generator: torch.Generator) -> Tensor:
    """Draw n rows of data exactly: one layer from its law, by counting, and the visible one given it."""
    anything = {"visible": torch.zeros(n, *teacher.visible.shape)}
    state = ExactLikelihood().draw_negatives(teacher, anything, generator=generator)
    return state["visible"] if "visible" in state else teacher.sample("visible", state, generator=generator)


@torch.no_grad()
def nats(model: nn.Module, *sets: Tensor) -> tuple[float | None, ...]:
    """Return the mean exact log-likelihood of each set, in double precision; None where it is not finite."""
    rbm: RBM = copy.deepcopy(model).double()  # type: ignore[assignment]
    try:
        log_z = exact_log_z(rbm).value
    except ValueError:  # the energies overflow
        return tuple(None for _ in sets)
    found = [-rbm.energy(x.double()).mean().item() - log_z for x in sets]
    return tuple(value if math.isfinite(value) else None for value in found)
