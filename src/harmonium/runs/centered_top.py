"""Centering of the top machine of a deep belief network, for any optimizer."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from harmonium.learning import Phases, Transform, layer_phases
from harmonium.runs.layer_turns import network
from harmonium.types import State


@dataclass
class CenteredTop(Transform):
    """The top machine of a DBN with its units measured from their means μ and λ (Melchior et al. 2016).

    `∇W' = ∇W - μ ∇cᵀ - ∇b λᵀ` before the optimizer's step, `b ← b - ΔW λ` and `c ← c - ΔWᵀ μ` after it, whatever step
    it was. `Centering` is the same for plain gradient descent, whose step is known beforehand; under Adam, where every
    parameter has a step of its own, its biases fall behind the weights and the machine runs away. μ and λ are running
    means of both phases with memory `decay`.
    """

    decay: float = 0.99
    means: State = field(default_factory=dict, repr=False)
    before_step: Tensor | None = field(default=None, repr=False)

    @torch.no_grad()
    def before(self, model: nn.Module, phases: Phases | None) -> None:
        """Center the gradient of the weights, if the top machine learns."""
        dbn = network(model)
        rbm = dbn[-1]
        self.before_step = None
        slope, down, up = (p.grad for p in (rbm.weight, rbm.visible_bias, rbm.hidden_bias))
        if phases is None or slope is None or down is None or up is None:
            return
        both = layer_phases(phases, len(dbn) - 1)
        for name in ("visible", "hidden"):
            ends = torch.stack([end[name].flatten(0, -2).mean(0) for end in (both.positive, both.negative)])
            now = ends.mean(0)
            self.means[name] = now if name not in self.means else self.means[name].lerp(now, 1 - self.decay)
        slope.addr_(self.means["visible"], up, alpha=-1.0).addr_(down, self.means["hidden"], alpha=-1.0)
        self.before_step = rbm.weight.detach().clone()

    @torch.no_grad()
    def after(self, model: nn.Module) -> None:
        """Let the biases follow the step of the weights."""
        if self.before_step is None:
            return
        rbm = network(model)[-1]
        step = rbm.weight - self.before_step
        rbm.visible_bias.addmv_(step, self.means["hidden"], alpha=-1.0)
        rbm.hidden_bias.addmv_(step.t(), self.means["visible"], alpha=-1.0)

    def state_dict(self) -> State:
        """Return the running means."""
        return dict(self.means)

    def load_state_dict(self, state: State) -> None:
        """Take up the running means."""
        self.means = dict(state)
