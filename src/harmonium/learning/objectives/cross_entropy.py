"""Learn classes by backpropagation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from harmonium import workers
from harmonium.draws import draw_bernoulli, draw_categorical, draw_normal
from harmonium.learning.objectives.base import Case, Objective
from harmonium.models.layers import X, Y
from harmonium.types import State, as_state

_LINEAR = (nn.Linear, nn.Conv2d, nn.Flatten)


@dataclass
class CrossEntropy(Objective):
    """`-log softmax f(x)[y]` of a network f, the mean over the rows of a batch that have a label (not -1).

    With `dropout` each hidden unit is left out with that probability, the others scaled up, anew for each sample
    (Srivastava et al. 2014); with `input_dropout` each input. The network itself, an `nn.Sequential`, knows nothing of
    it: units are left out behind each of its activations.

    >>> network = RBM(Bernoulli(64), Bernoulli(100)).to_network(10)
    >>> CrossEntropy(dropout=0.5).loss(network, {"x": torch.zeros(3, 64), "y": torch.tensor([0, 1, -1])}).item()
    2.302...
    """

    dropout: float = 0.0
    input_dropout: float = 0.0
    metrics: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.dropout < 1 or not 0 <= self.input_dropout < 1:
            raise ValueError(f"Shares left out must lie in [0, 1). Got {self.dropout} and {self.input_dropout}.")

    @classmethod
    def examples(cls) -> list[Case]:
        """Return a small network and its own law of classes."""
        network = nn.Sequential(nn.Linear(2, 3), nn.Tanh()).double()
        with torch.no_grad():
            for i, parameter in enumerate(network.parameters()):
                parameter.copy_(draw_normal(parameter, generator=torch.Generator().manual_seed(i)))

        def draw(n: int, *, generator: torch.Generator | None = None) -> State:
            x = draw_normal(torch.empty(n, 2, dtype=torch.float64), generator=generator)
            share = network(x).detach().softmax(-1)
            return {X: x, Y: draw_categorical(share, generator=generator).argmax(-1)}

        return [Case(lambda *, generator: cls(), network, draw)]

    def check(self, model: nn.Module) -> None:
        """Raise unless units of the model can be left out, where they must be."""
        if self.dropout and not isinstance(model, nn.Sequential):
            raise TypeError(
                f"`dropout` needs an nn.Sequential, as to_network gives it. Got {type(model).__name__}. Put nn.Dropout "
                "into the network."
            )

    def divides(self, model: nn.Module) -> bool:
        """Return True: each row has its own loss."""
        return type(self) is CrossEntropy

    def loss(
        self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the mean over the rows that have a label; 0 without any."""
        self.check(model)
        state = as_state(batch, X)
        if Y not in state:
            raise ValueError("CrossEntropy learns from data and classes. Give a tuple (x, y), y being class numbers.")
        if state[Y].ndim == 1 and state[Y].is_floating_point():
            raise ValueError(f"Class numbers must be integers, -1 where unknown. Got {state[Y].dtype}. Use y.long().")
        known, x, y = state[Y] >= 0, state[X], state[Y]
        is_thinned, has_all = bool(self.dropout or self.input_dropout), bool(known.all())
        if not (has_all or is_thinned):  # rows that are thinned out have their draws whether or not they have a label
            x, y = x[known], y[known]
        x = _thinned(x, self.input_dropout, generator)
        if self.dropout and isinstance(model, nn.Sequential):
            for module in model:
                x = module(x)
                if not isinstance(module, _LINEAR):
                    x = _thinned(x, self.dropout, generator)
        else:
            x = model(x)
        if is_thinned and not has_all:
            x, y = x[known], y[known]
        if y.ndim == 1 and len(y) and int(y.max()) >= x.shape[-1]:
            raise ValueError(
                f"Class numbers must lie in 0..{x.shape[-1] - 1}: the network has {x.shape[-1]} outputs. Got "
                f"{int(y.max())}. Build it for as many classes."
            )
        n = workers.total(torch.tensor(float(len(y)))).item()
        loss = cross_entropy(x, y, reduction="sum") / n if len(y) else x.sum() * 0.0
        self.metrics = {"classification_loss": loss.item()} if n else {}
        return loss

    def measured(self) -> dict[str, float]:
        """Return the loss of the last update that had labels."""
        return self.metrics


def _thinned(x: Tensor, share: float, generator: torch.Generator | None) -> Tensor:
    """Return x with this share of its entries at 0 and the others scaled up."""
    if not share:
        return x
    keep = draw_bernoulli(torch.full_like(x, 1 - share, requires_grad=False), generator=generator)
    return x * keep / (1 - share)
