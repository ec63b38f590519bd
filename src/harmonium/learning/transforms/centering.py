"""Learning with the units measured from their means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor, nn

from harmonium.couplings import Bias, Coupling
from harmonium.learning.objectives import Phases
from harmonium.learning.transforms.base import Transform, need_phases
from harmonium.models import BoltzmannMachine
from harmonium.models.layers import machine_of
from harmonium.types import State, gradient


@dataclass
class Centering(Transform):
    """The machine with its units measured from their means μ and λ (Melchior et al. 2016), for any optimizer.

    `∇W' = ∇W - μ ∇cᵀ - ∇b λᵀ` before the optimizer's step, `b ← b - ΔW λ` and `c ← c - ΔWᵀ μ` after it, whatever step
    ΔW it was: the same model, better conditioned. Under plain gradient descent that is `∇b' = ∇b - ∇W'λ` and
    `∇c' = ∇c - ∇W'ᵀμ`. For any bilinear coupling these are its closed-form gradient and its fields at the means; places
    that share a bias share a mean; layers that share one (twins) share its step. μ and λ are running means of both
    phases with memory `decay`. Layers that are given have a mean and no bias. Couplings that do not learn in an update
    are left alone.
    """

    sees_phases: ClassVar[bool] = True

    decay: float = 0.99
    means: State = field(default_factory=dict, repr=False)
    before_step: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict, init=False, repr=False)

    @torch.no_grad()
    def before(self, model: nn.Module, phases: Phases | None) -> None:
        """Center the gradients of the couplings between two layers."""
        machine, both = need_phases(model, phases, "Centering")
        for name in machine.units:
            shape = machine.layer(name).shape
            ends = (machine.statistic(name, phase[name]).reshape(-1, *shape) for phase in both[:2])
            now = torch.stack([end.mean(0).flatten() for end in ends]).mean(0)
            self.means[name] = now if name not in self.means else self.means[name].lerp(now, 1 - self.decay)
        self.before_step = {}
        for i, (layers, coupling) in enumerate(machine.terms):
            if _centers(machine, layers, coupling):
                mu, lam = (self._mean(machine, name) for name in layers)
                of_first, of_second = (_shares(machine, name) for name in layers)
                for v, h in ((mu, of_second), (of_first, lam)):
                    if v is not None and h is not None:
                        coupling.accumulate_grad(-1.0, v[None], h[None])
                self.before_step[i] = coupling.field(0, lam), coupling.field(1, mu)

    @torch.no_grad()
    def after(self, model: nn.Module) -> None:
        """Let the biases follow the step of the weights."""
        machine = machine_of(model)
        if machine is None:
            return
        for i, old in self.before_step.items():
            layers, coupling = machine.terms[i]
            means = [self._mean(machine, name) for name in layers]
            for to, name in enumerate(layers):
                bias = machine.graph.biases.get(name)
                if bias is not None and name not in machine.given:
                    step = coupling.field(to, means[1 - to]) - old[to]
                    bias.bias.sub_(bias.averaged(step) / _n_sharing(machine, bias))
        self.before_step = {}

    def _mean(self, machine: BoltzmannMachine, name: str) -> Tensor:
        """Return the mean of a layer, the same at all places that share a bias."""
        mean, bias = self.means[name].reshape(machine.layer(name).shape), machine.graph.biases.get(name)
        return mean if bias is None else bias.averaged(mean).expand(bias.shape).contiguous()

    def state_dict(self) -> State:
        """Return the running means."""
        return dict(self.means)

    def load_state_dict(self, state: State) -> None:
        """Take up the running means."""
        self.means = dict(state)


def _centers(machine: BoltzmannMachine, layers: tuple[str, ...], coupling: Coupling) -> bool:
    """Return whether a coupling is centered now; raise if it cannot be."""
    if isinstance(coupling, Bias) or all(p.grad is None for p in coupling.parameters()):
        return False
    if len(layers) != 2:
        raise TypeError(
            f"Centering centers couplings of two layers. {coupling!r} ties {len(layers)}: {', '.join(layers)}. "
            "Leave Centering out, or hold that coupling fixed (requires_grad_(False))."
        )
    for name in layers:
        if name not in machine.given and name not in machine.graph.biases:
            raise TypeError(
                f"Centering moves the biases of both layers of {coupling!r}, and layer {name!r} has none. Add a Bias."
            )
    return True


def _shares(machine: BoltzmannMachine, name: str) -> Tensor | None:
    """Return the gradient of a layer's bias dealt out to its places; None where the layer is given."""
    if name in machine.given:
        return None
    bias = machine.graph.biases[name]
    share = gradient(bias.bias) / _n_sharing(machine, bias)
    return (share * (share.numel() / torch.Size(bias.shape).numel())).expand(bias.shape).contiguous()


def _n_sharing(machine: BoltzmannMachine, bias: Bias) -> int:
    """Return how many layers have this bias: twins share one, and each brings a part of its gradient and its step."""
    return sum(other is bias for other in machine.graph.biases.values())
