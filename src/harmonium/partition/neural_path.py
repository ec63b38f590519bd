"""The road from a Gaussian or a uniform law to a neural energy."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium import workers
from harmonium.laws.gaussian import GaussianLaw
from harmonium.laws.uniform import UniformLaw
from harmonium.models.frozen import frozen
from harmonium.partition.path import PathPoint
from harmonium.samplers.gradient import energy_and_slope
from harmonium.samplers.mala import langevin_move
from harmonium.types import EnergyModel, State

Law = GaussianLaw | UniformLaw

_N_PILOT, _N_PROBES, _N_TUNING = 128, 33, 8
_TARGET = 0.6  # acceptance


class NeuralPath:
    """The laws `p_β(x) ∝ e^{-(1-β) R(x) - β F(x)}` from a normalized reference, `R = -log p_0`, to any energy F.

    The transitions are steps of the Metropolis-adjusted Langevin algorithm, in units of the reference's width, so that
    each leaves p_β exactly as it is. A pilot run tunes the step size to an acceptance near 0.6 at each β before the
    first chain starts; it does not change afterwards. Without a reference: a Gaussian of the model's `base_std`, else
    the uniform law on its `box`, which makes Z the integral over the box.
    """

    n_groups = 1

    def __init__(self, model: EnergyModel, reference: Law | None = None, *, n_steps: int = 1) -> None:
        self.model, self.n_steps = model, n_steps
        self.reference = default_law(model) if reference is None else reference
        some = next(model.parameters(), torch.zeros(0)) if isinstance(model, torch.nn.Module) else torch.zeros(0)
        self._like = some.detach()
        self.scale = self.reference.scale.to(self._like)
        self.log_steps: Tensor | None = None

    def log_z0(self) -> float:
        """Return log Z at β = 0: the reference is normalized."""
        return 0.0

    def start(self, n: int, *, generator: torch.Generator | None = None) -> PathPoint:
        """Draw `n` points at β = 0, exactly."""
        if self.log_steps is None:
            with workers.dividing(None):  # the pilot is the same for all workers
                self.log_steps = self._tuned(generator)
        return self.point({"x": self.reference.initial(n, generator=generator).to(self._like)})

    def point(self, state: State) -> PathPoint:
        """Return a point of the path with the energy and its slope."""
        x = state["x"]
        with frozen(self.model):
            energy, slope = energy_and_slope(self.model, x)
        return PathPoint({"x": x}, {"energy": energy, "slope": slope}, self.reference.free_energy(x) - energy)

    def log_ratio(self, point: PathPoint, beta: float, new: float) -> Tensor:
        """Return `log f_new(x) - log f_β(x) = (new - β)(R - F)` of each chain, in float64."""
        return (new - beta) * point.linear.double()

    def advance(self, point: PathPoint, beta: float, *, generator: torch.Generator | None = None) -> PathPoint:
        """Make MALA steps at β."""
        step_size = math.exp(self._log_step(beta))
        for _ in range(self.n_steps):
            point, _accepted = self._move(point, beta, step_size, generator)
        return point

    def _move(
        self, point: PathPoint, beta: float, alpha: float, generator: torch.Generator | None
    ) -> tuple[PathPoint, Tensor]:
        seen: list[PathPoint] = []

        def evaluate(x: Tensor) -> tuple[Tensor, Tensor]:
            seen.append(self.point({"x": x}))
            return self._energy(seen[-1], beta), self._slope(seen[-1], beta)

        accepted, x, _, _ = langevin_move(
            point.state["x"],
            self._energy(point, beta),
            self._slope(point, beta),
            evaluate,
            alpha,
            scale=self.scale,
            generator=generator,
        )
        new, wide = seen[0], accepted.reshape(*accepted.shape, *(1,) * self.scale.ndim)
        carried = PathPoint(
            {"x": x},
            {
                "energy": torch.where(accepted, new.fields["energy"], point.fields["energy"]),
                "slope": torch.where(wide, new.fields["slope"], point.fields["slope"]),
            },
            torch.where(accepted, new.linear, point.linear),
        )
        return carried, accepted

    def _energy(self, point: PathPoint, beta: float) -> Tensor:
        return point.fields["energy"] + (1 - beta) * point.linear  # βF + (1 - β)R

    def _slope(self, point: PathPoint, beta: float) -> Tensor:
        return beta * point.fields["slope"] + (1 - beta) * self.reference.slope(point.state["x"])

    def _tuned(self, generator: torch.Generator | None) -> Tensor:
        """Return the log step size at evenly spread β, each found by a few steps of stochastic approximation."""
        point = self.point({"x": self.reference.initial(_N_PILOT, generator=generator).to(self._like)})
        log_step, steps = math.log(0.5), torch.zeros(_N_PROBES, dtype=torch.float64)
        for i, beta in enumerate(torch.linspace(0.0, 1.0, _N_PROBES).tolist()):
            for _ in range(_N_TUNING * (3 if i == 0 else 1)):
                point, accepted = self._move(point, beta, math.exp(log_step), generator)
                log_step += accepted.double().mean().item() - _TARGET
            steps[i] = log_step = min(log_step, math.log(2.0))
        return steps

    def _log_step(self, beta: float) -> float:
        if self.log_steps is None:
            raise ValueError("The path has no step sizes yet. Draw its first chains with `start`.")
        place = beta * (_N_PROBES - 1)
        low = min(int(place), _N_PROBES - 2)
        return torch.lerp(self.log_steps[low], self.log_steps[low + 1], place - low).item()


def default_law(model: EnergyModel) -> Law:
    """Return a Gaussian of the model's `base_std`, else the uniform law on its `box`."""
    shape, box = getattr(model, "shape", None), getattr(model, "box", None)
    if shape is None or box is None:
        raise TypeError(
            f"{type(model).__name__} does not say where to anneal from. Give "
            "reference=GaussianLaw.fitted(data) or reference=UniformLaw(shape, low, high)."
        )
    std = getattr(model, "base_std", None)
    return UniformLaw(tuple(shape), *box) if std is None else GaussianLaw(torch.zeros(tuple(shape)), std)
