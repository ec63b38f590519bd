"""Learning with the units measured from their means."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from harmonium.couplings import Bias, Conv2d, Dense
from harmonium.learning.objectives.contrastive import Phases
from harmonium.learning.transforms.center_convolution import center_filters, fields_of_means
from harmonium.learning.transforms.transforms import Transform, need_phases
from harmonium.models import BoltzmannMachine
from harmonium.types import State, gradient


@dataclass
class Centering(Transform):
    """The machine with its units measured from their means μ and λ (Melchior et al. 2016), for any optimizer.

    `∇W' = ∇W - μ ∇cᵀ - ∇b λᵀ` before the optimizer's step, `b ← b - ΔW λ` and `c ← c - ΔWᵀ μ` after it, whatever step
    ΔW it was: the same model, better conditioned. Under plain gradient descent that is `∇b' = ∇b - ∇W'λ` and
    `∇c' = ∇c - ∇W'ᵀμ`. μ and λ are running means of both phases with memory `decay`. Couplings whose weights do not
    learn in an update are left alone.
    """

    decay: float = 0.99
    means: State = field(default_factory=dict, repr=False)
    before_step: dict[int, Tensor] = field(default_factory=dict, init=False, repr=False)

    @torch.no_grad()
    def before(self, model: nn.Module, phases: Phases | None) -> None:
        """Center the gradients of dense couplings and convolutions."""
        machine, both = need_phases(model, phases, "Centering")
        for name in machine.units:
            units = machine.layer(name)
            ends = (units.statistic(phase[name]).reshape(-1, *units.shape) for phase in (both.positive, both.negative))
            now = torch.stack([end.mean(0).flatten() for end in ends]).mean(0)
            self.means[name] = now if name not in self.means else self.means[name].lerp(now, 1 - self.decay)
        self.before_step = {}
        for i, (layers, coupling) in enumerate(machine.terms):
            if not isinstance(coupling, Dense | Conv2d) or coupling.weight.grad is None:
                continue
            lower, upper = _biases(machine, layers)
            mu, lam = (self.means[name] for name in layers)
            if isinstance(coupling, Conv2d):
                center_filters(coupling, (lower, upper), (mu, lam))
            else:
                grad_b, grad_c = gradient(lower.bias).view(-1), gradient(upper.bias).view(-1)
                coupling.weight.grad.addr_(mu, grad_c, alpha=-1.0).addr_(grad_b, lam, alpha=-1.0)
            self.before_step[i] = coupling.weight.detach().clone()

    @torch.no_grad()
    def after(self, model: nn.Module) -> None:
        """Let the biases follow the step of the weights."""
        if not isinstance(model, BoltzmannMachine):
            return
        for i, old in self.before_step.items():
            layers, coupling = model.terms[i]
            lower, upper = _biases(model, layers)
            mu, lam = (self.means[name] for name in layers)
            if isinstance(coupling, Conv2d):
                down, up = fields_of_means(coupling, coupling.weight - old, (lower, upper), (mu, lam))
            elif isinstance(coupling, Dense):
                step = coupling.weight - old
                down, up = (step @ lam).view_as(lower.bias), (step.t() @ mu).view_as(upper.bias)
            lower.bias.sub_(down)
            upper.bias.sub_(up)
        self.before_step = {}

    def state_dict(self) -> State:
        """Return the running means."""
        return dict(self.means)

    def load_state_dict(self, state: State) -> None:
        """Take up the running means."""
        self.means = dict(state)


def _biases(machine: BoltzmannMachine, layers: tuple[str, ...]) -> tuple[Bias, Bias]:
    """Return the biases of the two layers that a coupling ties."""
    found = {names[0]: coupling for names, coupling in machine.terms if isinstance(coupling, Bias)}
    return found[layers[0]], found[layers[1]]
