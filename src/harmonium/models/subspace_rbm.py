"""Gates over groups of features: the subspace restricted Boltzmann machine."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.couplings import Bias, GroupBias, Subspace
from harmonium.models.gate_fields import gate_fields, gate_log_weights
from harmonium.models.machine import BoltzmannMachine
from harmonium.types import Values
from harmonium.units import Bernoulli, Units
from harmonium.units.base import require_units


class SubspaceRBM(BoltzmannMachine):
    """Gate h_j opens a group of `width` subspace units s_jk: eq. 6.44 of Tomczak's chapter (Tomczak, Gonczarek 2017).

    `E(x, h, S) = -Σ_ijk W_ijk x_i h_j s_jk - Σ_i b_i x_i - Σ_j c_j h_j - Σ_j h_j Σ_k D_jk s_jk`. A gate is on where its
    group as a whole fits the data: a feature that does not care which member of the group it was. Weights start with a
    spread of 1/√n over n visible units: from tiny ones the members of a group learn the same and stay one filter.

    >>> machine = SubspaceRBM(Bernoulli(784), 100, width=5)
    >>> machine.weight.shape, machine.gate_mean(torch.zeros(2, 784)).shape
    (torch.Size([784, 500]), torch.Size([2, 100]))
    """

    def __init__(
        self, visible: Units, n_gates: int, width: int = 3, *, generator: torch.Generator | None = None
    ) -> None:
        require_units(visible=visible)
        super().__init__(
            {"visible": visible, "gate": Bernoulli(n_gates), "subspace": Bernoulli(n_gates, width)},
            [
                (("visible", "gate", "subspace"), Subspace(visible.shape, n_gates, width, generator=generator)),
                (("visible",), Bias(visible.shape)),
                (("gate",), Bias(n_gates)),
                (("gate", "subspace"), GroupBias(n_gates, width)),
            ],
        )
        self.n_gates, self.width = n_gates, width
        with torch.no_grad():
            self.weight.div_(self.weight.std() * math.sqrt(len(self.weight)))

    @property
    def weight(self) -> Tensor:
        """The weights W, one row for each visible unit, the groups side by side in the columns."""
        return self.couplings[0].weight  # type: ignore[return-value]

    def gate_mean(self, v: Values) -> Tensor:
        """Return `p(h_j = 1 | x) = sigm(-K log 2 + c_j + Σ_k softplus(Σ_i W_ijk x_i + D_jk))` (eq. 6.47).

        The subspace units are summed out: K of them are free where the gate is closed, which costs `K log 2`.
        """
        return self.distribution("gate", {"visible": v})[..., 1]

    def gate_field(self, v: Values) -> Tensor:
        """Return the log-odds of the gates, `-K log 2 + c_j + Σ_k softplus(Σ_i W_ijk x_i + D_jk)`.

        Far from 0 they still tell how well a group fits, where `gate_mean` is 0 or 1 to the last digit.
        """
        present = self.state({"visible": v})
        summation = self.graph.summation(("gate", "subspace"))
        weights = gate_log_weights(self, summation, gate_fields(self, summation, present))
        return weights[..., 1] - weights[..., 0]

    def subspace_mean(self, v: Values, h: Values) -> Tensor:
        """Return `p(s_jk = 1 | x, h_j) = sigm(h_j (Σ_i W_ijk x_i + D_jk))` (eq. 6.46)."""
        return self.mean("subspace", self.state({"visible": v, "gate": h}))

    def visible_mean(self, h: Values, s: Values) -> Tensor:
        """Return `p(x_i = 1 | h, S) = sigm(Σ_jk W_ijk h_j s_jk + b_i)` (eq. 6.45), for any visible units their mean."""
        return self.mean("visible", self.state({"gate": h, "subspace": s}))
