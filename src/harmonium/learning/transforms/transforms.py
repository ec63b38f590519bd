"""What is done to a gradient before the optimizer sees it, and to the parameters after."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from harmonium.couplings import Bias
from harmonium.learning.objectives.contrastive import Phases
from harmonium.models import BoltzmannMachine
from harmonium.types import State, gradient


class Transform(ABC):  # noqa: B024  (both hooks may stay as they are)
    """A change of the gradients before an update (`before`) or of the parameters after it (`after`).

    Where a contrastive objective wrote the gradients in closed form, both are called inside `torch.no_grad()`.
    """

    def before(self, model: nn.Module, phases: Phases | None) -> None:  # noqa: B027
        """Change the gradients in place."""

    def after(self, model: nn.Module) -> None:  # noqa: B027
        """Change the parameters in place."""

    def state_dict(self) -> State:
        """Return what must survive between updates."""
        return {}

    def load_state_dict(self, state: State) -> None:  # noqa: B027
        """Take it up again."""


@dataclass
class WeightDecay(Transform):
    """Add `rate · ∂/∂W (½‖W‖²) = rate · W` to the gradient of the weights; biases are left alone.

    >>> WeightDecay(1e-4)
    WeightDecay(rate=0.0001)
    """

    rate: float

    @torch.no_grad()
    def before(self, model: nn.Module, phases: Phases | None) -> None:
        """Add the decay to the gradients of the weights."""
        for weight in _weights(model):
            gradient(weight).add_(weight, alpha=self.rate)


@dataclass
class NormLimit(Transform):
    """Scale back the weights of each hidden unit whose norm grew beyond `limit`."""

    limit: float

    @torch.no_grad()
    def after(self, model: nn.Module) -> None:
        """Bring the norms of the weights back to the limit."""
        for weight in _weights(model):
            # A dense weight is visible × hidden, a filter bank hidden first.
            dims = tuple(range(weight.ndim - 1)) if weight.ndim == 2 else tuple(range(1, weight.ndim))
            norm = torch.linalg.vector_norm(weight, dim=dims, keepdim=True)
            weight.mul_((self.limit / norm.clamp_min(1e-12)).clamp_max(1.0))


@dataclass
class ClipGradient(Transform):
    """Scale all gradients so that their joint norm is at most `limit`."""

    limit: float

    def before(self, model: nn.Module, phases: Phases | None) -> None:
        """Clip the gradients."""
        nn.utils.clip_grad_norm_(model.parameters(), self.limit)


@dataclass
class Sparsity(Transform):
    """Push the mean activity q of each hidden unit towards `target`: `∂/∂c` gains `rate · (q - target)`.

    q is a running mean over the positive phases with memory `decay` (section 11 of Hinton's guide, 2012).
    """

    target: float
    rate: float
    decay: float = 0.95
    activity: Tensor | None = field(default=None, repr=False)

    @torch.no_grad()
    def before(self, model: nn.Module, phases: Phases | None) -> None:
        """Add the pressure to the gradients of the hidden biases."""
        machine, both = need_phases(model, phases, "Sparsity")
        means = both.positive
        for layers, coupling in machine.terms:
            if isinstance(coupling, Bias) and layers[0] != machine.data_layer:
                now = means[layers[0]].flatten(end_dim=-len(coupling.shape) - 1).mean(0)
                old = now if self.activity is None else self.activity
                self.activity = self.decay * old + (1 - self.decay) * now
                pressure = (self.activity - self.target).sum_to_size(coupling.bias.shape)
                gradient(coupling.bias).add_(pressure, alpha=self.rate)
                return

    def state_dict(self) -> State:
        """Return the running activity."""
        return {} if self.activity is None else {"activity": self.activity}

    def load_state_dict(self, state: State) -> None:
        """Take up the running activity."""
        self.activity = state.get("activity")


@dataclass
class ParameterAverage(Transform):
    """Keep an exponential average of the parameters, `θ̄ ← decay·θ̄ + (1 - decay)·θ`.

    Often a better model than the last one. The average starts at update `start`; `swap(model)` exchanges the
    parameters with their average.
    """

    decay: float = 0.999
    start: int = 0
    n_updates: int = 0
    average: State = field(default_factory=dict, repr=False)

    @torch.no_grad()
    def after(self, model: nn.Module) -> None:
        """Take the new parameters into the average."""
        self.n_updates += 1
        if self.n_updates <= self.start:
            return
        for name, parameter in model.named_parameters():
            if name in self.average:
                self.average[name].lerp_(parameter, 1 - self.decay)
            else:
                self.average[name] = parameter.detach().clone()

    @torch.no_grad()
    def swap(self, model: nn.Module) -> None:
        """Exchange the parameters of the model with their average."""
        for name, parameter in model.named_parameters():
            if name in self.average:
                kept = parameter.clone()
                parameter.copy_(self.average[name])
                self.average[name] = kept

    def state_dict(self) -> State:
        """Return the average and the count of updates."""
        return {**self.average, "n_updates": torch.tensor(self.n_updates)}

    def load_state_dict(self, state: State) -> None:
        """Take them up again."""
        self.average = {name: value.clone() for name, value in state.items() if name != "n_updates"}
        self.n_updates = int(state["n_updates"])


def _weights(model: nn.Module) -> list[nn.Parameter]:
    """Return the parameters of at least two axes that are neither biases nor widths of units."""
    named = model.named_parameters()
    return [p for name, p in named if p.ndim >= 2 and not name.endswith(("bias", "log_sigma")) and p.requires_grad]


def need_phases(model: nn.Module, phases: Phases | None, name: str) -> tuple[BoltzmannMachine, Phases]:
    """Return the machine and its phases, or raise: the transform of this name needs both."""
    if phases is None or not isinstance(model, BoltzmannMachine):
        raise TypeError(
            f"{name} needs the two phases of a contrastive objective on a Boltzmann machine. Leave it out; for a DBN "
            f"trained by JointCD wrap it: EachLayer({name}(...))."
        )
    return model, phases
