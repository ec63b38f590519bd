"""The inner loop of learning for an RBM with a dense coupling, in a straight line."""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Self, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from harmonium import workers
from harmonium.couplings import Bias, Coupling, Dense
from harmonium.models import RBM
from harmonium.products import make_contrast, product
from harmonium.types import State, gradient, mean_difference
from harmonium.units import Units


class Phase(NamedTuple):
    """A state of the two layers, with the statistic of the visible one, and the rows of the whole: n of all workers."""

    v: Tensor
    s_v: Tensor
    h: Tensor
    n: int


class DensePair:
    """The parts of an RBM with a dense coupling at hand: its fields, and the gradient of a contrast.

    The numbers are those of `RBM.field` and `RBM.add_gradient`, which know any graph of layers; the walk over the graph
    costs a small model as much as its products. The parameters of Gaussian units differ by rounding (`add_contrast`).
    """

    kind: ClassVar[type[Coupling]] = Dense
    """The coupling that a pair of this class is made of."""

    made: ClassVar[WeakKeyDictionary[nn.Module, DensePair]] = WeakKeyDictionary()
    """The pairs of this class that are at hand."""

    weight: nn.Parameter
    visible_bias: nn.Parameter
    hidden_bias: nn.Parameter

    def __init__(
        self, names: tuple[str, str], units: tuple[Units, Units], coupling: Coupling, biases: tuple[Bias, Bias]
    ) -> None:
        self.names = names
        self.coupling, self.biases = coupling, biases
        self.visible, self.hidden = units
        # Dictionaries of parameters: a look-up here costs a fraction of that in a module, and sees what is replaced.
        self._weights, self._visible_biases, self._hidden_biases = (
            cast("dict[str, nn.Parameter]", module._parameters) for module in (coupling, *biases)
        )
        self._is_flat = all(len(layer.shape) == 1 for layer in units)
        self._learned = [(axis, layer) for axis, layer in enumerate(units) if layer._parameters or layer._modules]

    @classmethod
    def of(cls, model: nn.Module, batch: State) -> DensePair | None:
        """Return the pair of a plain RBM whose gradients are still to be made, or None: the machine does the rest."""
        pair = cls.made.get(model)
        if pair is None:
            if type(model) is not RBM:
                return None
            (names, coupling), (_, below), (_, above) = model.terms
            if not (type(coupling) is cls.kind and type(below) is Bias and type(above) is Bias):
                return None
            units = (model.visible, model.hidden)
            pair = cls.made[model] = cls((names[0], names[1]), units, coupling, (below, above))
        x = batch.get(pair.names[0])
        is_plain = x is not None and len(batch) == 1 and x.ndim == 1 + len(pair.visible.shape)
        return pair if is_plain and pair._take_parameters() else None

    @classmethod
    def like(cls, pair: DensePair) -> Self:
        """Return a pair of this class with the parts of another."""
        made = cls(pair.names, (pair.visible, pair.hidden), pair.coupling, pair.biases)
        made._take_parameters()
        return made

    @property
    def units_learn(self) -> bool:
        """Whether units have parameters of their own."""
        return bool(self._learned)

    def _take_parameters(self) -> bool:
        """Look the parameters up, which a user may have replaced; return whether their gradients are to be made."""
        w, b, c = self._weights["weight"], self._visible_biases["bias"], self._hidden_biases["bias"]
        self.weight, self.visible_bias, self.hidden_bias = w, b, c
        return (
            w.requires_grad and b.requires_grad and c.requires_grad
            and w.grad is None and b.grad is None and c.grad is None
        )  # fmt: skip

    def above(self, v: Tensor) -> tuple[Phase, Tensor]:
        """Return the phase with v given and h at its means, and the field on h, `c + s(v)ᵀW`."""
        s_v = self.visible.statistic(v)
        if self._is_flat:
            field = product(s_v, self.weight, self.hidden_bias)
        else:
            field = product(s_v.flatten(1), self.weight).view(-1, *self.hidden.shape).add_(self.hidden_bias)
        return Phase(v, s_v, self.hidden.mean(field), workers.whole(v.shape[0])), field

    def below(self, h: Tensor) -> Tensor:
        """Return the field on the visible layer, `b + W s(h)`."""
        s_h = self.hidden.statistic(h)
        if self._is_flat:
            return product(s_h, self.weight.t(), self.visible_bias)
        return product(s_h.flatten(1), self.weight.t()).view(-1, *self.visible.shape).add_(self.visible_bias)

    def draw_hidden(self, phase: Phase, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw h given the v of a phase."""
        return self.hidden.sample_given_mean(field, phase.h, generator=generator)

    def chain(self, h: Tensor, n_steps: int, *, generator: torch.Generator | None = None) -> tuple[Phase, Tensor]:
        """Draw v | h, and h | v in between, `n_steps` times; return the last v with the means and the field of h."""
        phase, field = self.above(self.visible.sample(self.below(h), generator=generator))
        for _ in range(n_steps - 1):
            h = self.draw_hidden(phase, field, generator=generator)
            phase, field = self.above(self.visible.sample(self.below(h), generator=generator))
        return phase, field

    def begin(self, positive: Phase) -> None:
        """Make what the gradient needs of the positive phase alone. A hook of layers too large to stay at hand."""

    def add_contrast(self, positive: Phase, negative: Phase) -> None:
        """Make the gradients of the mean of `E(v⁺, h⁺)` less that of `E(v⁻, h⁻)`.

        `∂W = <s(v)s(h)ᵀ>⁻ - <s(v)s(h)ᵀ>⁺`, and so for the biases. Parameters of the visible units need
        `<θ∘s(v)>` with `θ = b + W s(h)`, and get it from what is there: `<θ_i s(v_i)>⁺ - <θ_i s(v_i)>⁻ =
        -Σ_j W_ij ∂W_ij - b_i ∂b_i`. That is one pass over W in place of two products.
        """
        v, v_model = positive.s_v, negative.s_v
        h, h_model = self.hidden.statistic(positive.h), self.hidden.statistic(negative.h)
        if not self._is_flat:
            v, v_model, h, h_model = (x.flatten(1) for x in (v, v_model, h, h_model))
        make_contrast(self.weight, (v_model, h_model, 1 / negative.n), (v, h, -1 / positive.n))
        b, c = (mean_difference(*x, negative.n, positive.n) for x in ((v_model, v), (h_model, h)))
        self.visible_bias.grad = b if self._is_flat else b.view(self.visible.shape)
        self.hidden_bias.grad = c if self._is_flat else c.view(self.hidden.shape)
        for axis, units in self._learned:
            bias = self.hidden_bias if axis else self.visible_bias
            through_weight = (self.weight * gradient(self.weight)).sum(1 - axis).view(bias.shape)
            work = -through_weight.addcmul_(bias, gradient(bias))
            for sign, part, phase in ((1.0, work, positive), (-1.0, 0.0, negative)):
                units.accumulate_grad(sign / phase.n, part, phase.h if axis else phase.v)
