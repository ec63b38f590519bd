"""Deep Boltzmann machines."""

from __future__ import annotations

import itertools
from typing import Self

import torch
from torch import Tensor, nn

from harmonium.couplings import Bias, Dense
from harmonium.models.machine import BoltzmannMachine
from harmonium.models.network_step import NetworkStep, to_network
from harmonium.models.rbm import RBM
from harmonium.units import Mixed, Units
from harmonium.units.base import require_units


class DBM(BoltzmannMachine):
    """Layers in a row, each tied to the next: `E(v, h₁, …) = -Σ_l h_{l-1}ᵀW_l h_l - Σ_l b_lᵀh_l - log μ` with `h₀ = v`.

    Every layer hears those below and above it (Salakhutdinov and Hinton 2009, eq. 9), so that hidden layers are tied
    to each other and `p(v)` has no closed form: learn with `PCD(inference=MeanField())`, which raises a lower bound of
    it, best after `fit_doubled_pairs` and with `Centering()`; `log_likelihood` returns the bound. The layers are called
    "visible", "hidden_1", "hidden_2" and so on; even and odd ones are drawn in turn.

    >>> dbm = DBM(Bernoulli(784), Bernoulli(500), Bernoulli(1000))
    >>> dbm.blocks()
    [('visible', 'hidden_2'), ('hidden_1',)]
    """

    def __init__(self, *units: Units, generator: torch.Generator | None = None) -> None:
        if len(units) < 3:
            raise ValueError(
                f"A DBM has a visible and at least two hidden layers. Got {len(units)} in all. With one hidden layer, "
                "use RBM."
            )
        layers = {"visible" if i == 0 else f"hidden_{i}": layer for i, layer in enumerate(units)}
        require_units(**layers)
        ties = [
            ((below, above), Dense(layers[below].shape, layers[above].shape, generator=generator))
            for below, above in itertools.pairwise(layers)
        ]
        super().__init__(layers, [*ties, *(((name,), Bias(layer.shape)) for name, layer in layers.items())])

    @classmethod
    @torch.no_grad()
    def above(cls, rbm: RBM, *units: Units, generator: torch.Generator | None = None) -> Self:
        """Return a deep machine that starts as a trained RBM: more hidden layers on top, with small weights.

        With weights of zero above, the upper layers are independent of the rest and the law of the visible units is
        that of the RBM, so that the bound is its log-likelihood. What the layers above learn adds to it. Measured from
        their means as `Centering` does, they grow where the RBM's own law of its hidden units is not that of the data.

        >>> DBM.above(RBM(Bernoulli(784), Bernoulli(500)), Bernoulli(1000)).layers
        ('visible', 'hidden_1', 'hidden_2')
        """
        if not isinstance(rbm.coupling, Dense):
            raise TypeError(f"A DBM stands on an RBM with a dense coupling. Got {rbm.coupling!r}.")
        dbm = cls(rbm.visible, rbm.hidden, *units, generator=generator).to(rbm.weight)
        dbm.weights[0].copy_(rbm.weight)
        dbm.biases[0].copy_(rbm.visible_bias)
        dbm.biases[1].copy_(rbm.hidden_bias)
        return dbm

    @property
    def depth(self) -> int:
        """The number of hidden layers."""
        return len(self.units) - 1

    @property
    def weights(self) -> list[Tensor]:
        """The weights between each layer and the next, the lowest first."""
        return [coupling.weight for coupling in self.couplings[: self.depth]]  # type: ignore[misc]

    @property
    def biases(self) -> list[Tensor]:
        """The bias of each layer, that of the visible one first."""
        return [coupling.bias for coupling in self.couplings[self.depth :]]  # type: ignore[misc]

    @torch.no_grad()
    def to_network(self, n_classes: int, *, posterior: bool = False) -> nn.Sequential:
        """Return the way up as an ordinary network with an output for each class.

        Every hidden layer but the top one hears the layer below twice, in place of the one above (the recognition pass
        of Salakhutdinov and Larochelle 2010). With `posterior` the network sees `(x, m)` side by side, m the means of
        the second hidden layer under the mean field `q(h | x)` (Salakhutdinov and Hinton 2009, section 3.3), so that
        the first hidden layer hears both of its neighbors: `h₁ = σ(W₁ᵀx + W₂m + b₁)`. With two hidden layers its
        features are the means of q until it learns.

        >>> dbm, x = DBM(Bernoulli(6), Bernoulli(5), Bernoulli(4)), torch.zeros(2, 6)
        >>> dbm.to_network(3)(x).shape
        torch.Size([2, 3])
        >>> m = MeanField().fixed_point(dbm, {"visible": x}).state["hidden_2"]
        >>> dbm.to_network(3, posterior=True)(torch.cat([x, m], 1)).shape
        torch.Size([2, 3])
        """
        layers = [self.layer(name) for name in self.units]
        steps = [
            NetworkStep(
                layers[i],
                self.terms[i][1],
                self.biases[i + 1],
                layers[i + 1],
                factor=1.0 if i + 1 == self.depth else 2.0,
            )
            for i in range(self.depth)
        ]
        if posterior:
            beside, both = Mixed(layers[0], layers[2]), torch.cat([self.weights[0], self.weights[1].t()])
            tie = Dense(beside.shape, layers[1].shape).to(both)
            tie.weight.copy_(both)
            steps[0] = NetworkStep(beside, tie, self.biases[1], layers[1])
        return to_network(steps, n_classes)
