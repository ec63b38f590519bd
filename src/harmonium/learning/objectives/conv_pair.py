"""The inner loop of learning for an RBM with a convolution, in a straight line."""

from __future__ import annotations

from typing import ClassVar
from weakref import WeakKeyDictionary

from torch import Tensor, nn

from harmonium import workers
from harmonium.couplings import Conv2d, Coupling
from harmonium.learning.objectives.dense_pair import DensePair, Phase
from harmonium.types import State, mean_difference
from harmonium.units import Bernoulli


class ConvPair(DensePair):
    """The parts of an RBM with a convolution at hand, for units without parameters of their own.

    Its layers are large: one of 128 images of 64 channels takes 8 MB, and a convolution whose input has left the cache
    takes a tenth more. So the means of binary hidden units take the place of their fields, from which nothing is drawn.
    """

    kind: ClassVar[type[Coupling]] = Conv2d
    made: ClassVar[WeakKeyDictionary[nn.Module, DensePair]] = WeakKeyDictionary()

    @classmethod
    def of(cls, model: nn.Module, batch: State) -> DensePair | None:
        """Return the pair of an RBM whose gradients are still to be made, or None: the machine does the rest."""
        pair = super().of(model, batch)
        return None if pair is None or pair.units_learn else pair

    def above(self, v: Tensor) -> tuple[Phase, Tensor]:
        """Return the phase with v given and h at its means, and the field on h, `c + s(v) ⋆ W`, or its means again."""
        s_v = self.visible.statistic(v)
        field = self.coupling.biased_field(self.hidden_bias, 1, s_v)
        mean = field.sigmoid_() if type(self.hidden) is Bernoulli else self.hidden.mean(field)
        return Phase(v, s_v, mean, workers.whole(v.shape[0])), field

    def below(self, h: Tensor) -> Tensor:
        """Return the field on the visible layer, b plus the transposed convolution of s(h)."""
        return self.coupling.biased_field(self.visible_bias, 0, self.hidden.statistic(h))

    def begin(self, positive: Phase) -> None:
        """Make the share of the positive phase in the gradient of the weights."""
        self.coupling.accumulate_grad(-1 / positive.n, positive.s_v, self.hidden.statistic(positive.h))

    def add_contrast(self, positive: Phase, negative: Phase) -> None:
        """Make the gradients of the mean of `E(v⁺, h⁺)` less that of `E(v⁻, h⁻)`, of which `begin` made a share.

        A bias sums over all places.
        """
        h, h_model = self.hidden.statistic(positive.h), self.hidden.statistic(negative.h)
        self.coupling.accumulate_grad(1 / negative.n, negative.s_v, h_model)
        self.visible_bias.grad = _contrast(negative.s_v, positive.s_v, negative.n, positive.n, self.visible_bias)
        self.hidden_bias.grad = _contrast(h_model, h, negative.n, positive.n, self.hidden_bias)


def _contrast(model: Tensor, data: Tensor, n_model: int, n_data: int, bias: Tensor) -> Tensor:
    """Return the difference of the means of images, summed over all places, in the shape of a bias that they share."""
    row = mean_difference(_as_rows(model), _as_rows(data), n_model, n_data)
    return row.view(-1, bias.numel()).sum(0).view(bias.shape)


def _as_rows(images: Tensor) -> Tensor:
    """Return images with channels innermost as a matrix, as they lie in memory: `(n, height · width · channels)`."""
    return images.permute(0, 2, 3, 1).flatten(1)
