"""The restricted Boltzmann machine."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from harmonium.couplings import Bias, Coupling, Dense, Rounded
from harmonium.models.machine import BoltzmannMachine
from harmonium.models.mean import Mean
from harmonium.models.network_step import NetworkStep, to_network
from harmonium.types import State, Values, as_tensor, check_dtype, check_shape
from harmonium.units import Units
from harmonium.units.base import require_units


class RBM(BoltzmannMachine):
    """A visible and a hidden layer of any units: `E(v, h) = -log μ(v) - log μ(h) - vᵀWh - bᵀv - cᵀh` (eq. 6.33).

    `p(v) = e^{-F(v)}/Z` with `F(v) = -log μ(v) - bᵀv - Σ_j A(c_j + vᵀW_j)` (eq. 6.36 and 6.37). Here v and h stand
    for the statistics of the units, `x/σ²` for Gaussian ones.

    >>> rbm = RBM(Bernoulli(784), Bernoulli(500))
    >>> rbm.weight.shape, rbm.free_energy(torch.zeros(2, 784)).shape
    (torch.Size([784, 500]), torch.Size([2]))
    """

    def __init__(
        self,
        visible: Units,
        hidden: Units,
        coupling: Coupling | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        require_units(visible=visible, hidden=hidden)
        if coupling is None:
            coupling = Dense(visible.shape, hidden.shape, generator=generator)
        shared = coupling.shares_places
        super().__init__(
            {"visible": visible, "hidden": hidden},
            [
                (("visible", "hidden"), coupling),
                (("visible",), Bias(visible.shape, shared=shared)),
                (("hidden",), Bias(hidden.shape, shared=shared)),
            ],
        )

    @property
    def visible(self) -> Units:
        """The visible layer."""
        return self.layer("visible")

    @property
    def hidden(self) -> Units:
        """The hidden layer."""
        return self.layer("hidden")

    @property
    def coupling(self) -> Coupling:
        """The coupling between the two layers."""
        return self.terms[0][1]

    @property
    def weight(self) -> Tensor:
        """The weights of the coupling, W; visible × hidden for a dense one."""
        return self.couplings[0].weight  # type: ignore[return-value]

    @property
    def visible_bias(self) -> Tensor:
        """The bias of the visible layer, b."""
        return self.couplings[1].bias  # type: ignore[return-value]

    @property
    def hidden_bias(self) -> Tensor:
        """The bias of the hidden layer, c."""
        return self.couplings[2].bias  # type: ignore[return-value]

    def hidden_mean(self, v: Values) -> Tensor:
        """Return `E[h | v]` (eq. 6.38 for binary units)."""
        return self.mean("hidden", self._checked("visible", v, "v"))

    def visible_mean(self, h: Values) -> Tensor:
        """Return `E[v | h]` (eq. 6.39 for binary units)."""
        return self.mean("visible", self._checked("hidden", h, "h"))

    def reconstruct(self, v: Values) -> Tensor:
        """Return `E[v | E[h | v]]`: down again from the mean of the hidden layer."""
        return self.visible_mean(self.hidden_mean(v))

    def to_linear(self) -> nn.Sequential:
        """Return `v → E[h | v]` as an ordinary `nn.Linear` and a curve: for a network of one's own, or `torch.export`.

        It starts from copies of the parameters: `θ = c + Wᵀs(v)`, with `s(v) = v/σ²` taken into the weights.

        >>> rbm = RBM(Gaussian(4), Bernoulli(3))
        >>> rbm.to_linear()
        Sequential(
          (0): Linear(in_features=4, out_features=3, bias=True)
          (1): Mean(Bernoulli(3))
        )
        """
        if not isinstance(self.coupling, Dense) or len(self.visible.shape) != 1:
            raise ValueError(f"to_linear() is for a dense coupling on a flat layer. Got {self.coupling!r}.")
        n_visible, n_hidden = self.weight.shape
        linear = nn.Linear(n_visible, n_hidden, dtype=self.weight.dtype, device=self.weight.device)
        with torch.no_grad():
            slope = self.visible.statistic(torch.ones_like(self.weight[:, 0]))
            linear.weight.copy_((self.weight * slope.unsqueeze(1)).t())
            linear.bias.copy_(self.hidden_bias.flatten())
        return nn.Sequential(linear, Mean(copy.deepcopy(self.hidden)))

    def rounded(self) -> RBM:
        """Return a copy whose weights have 16 bits, for chains and annealing in products of bytes (`Rounded`).

        It is a machine of its own, and all that is drawn or measured is exact for it; `log_z_shift` says how far its
        log Z is from that of this one. It does not learn.

        >>> RBM(Bernoulli(784), Bernoulli(500)).rounded().coupling
        Rounded(left=(784,), right=(500,))
        """
        if type(self.coupling) is not Dense or self.weight.dtype != torch.float32:
            raise ValueError(
                f"rounded() is for a dense coupling in single precision. Got {self.coupling!r} in {self.weight.dtype}."
            )
        machine = RBM(copy.deepcopy(self.visible), copy.deepcopy(self.hidden), Rounded.of(self.coupling))
        with torch.no_grad():
            machine.visible_bias.copy_(self.visible_bias)
            machine.hidden_bias.copy_(self.hidden_bias)
        return machine.requires_grad_(False)

    def to_network(self, n_classes: int) -> nn.Sequential:
        """Return the way up as an ordinary network with an output for each class, which `fit(network, (x, y))` tunes.

        >>> RBM(Bernoulli(64), Bernoulli(100)).to_network(10)
        Sequential(
          (0): Linear(in_features=64, out_features=100, bias=True)
          (1): Sigmoid()
          (2): Linear(in_features=100, out_features=10, bias=True)
        )
        """
        return to_network([NetworkStep(self.visible, self.coupling, self.hidden_bias, self.hidden)], n_classes)

    def _checked(self, layer: str, x: Values, name: str) -> State:
        units = self.layer(layer)
        value = units.encoded(as_tensor(x, like=self.weight), like=self.weight)
        check_shape(value, units.shape, name=name, layer=layer, owner=units)
        check_dtype(value, self.weight, name=name)
        units.check_support(value, name)
        return {layer: value}
