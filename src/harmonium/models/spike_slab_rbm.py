"""Spikes and slabs: hidden units that say how much data vary along their filters."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.couplings import Bias, GroupBias, Subspace
from harmonium.models.machine import BoltzmannMachine
from harmonium.types import Values
from harmonium.units import Bernoulli, Gaussian


class SpikeSlabRBM(BoltzmannMachine):
    """Real data whose spikes h_j open slabs s_jk, real numbers along filters (Courville, Bergstra and Bengio 2011).

    `E(v, h, s) = Σ_i v_i²/2σ_i² + Σ_jk s_jk²/2 - Σ_ijk (v_i/σ_i²) W_ijk h_j s_jk - Σ_i b_i v_i/σ_i² - Σ_j c_j h_j
    - Σ_jk h_j D_jk s_jk`: the subspace machine with Gaussian slabs of variance 1 (another would only rescale W), and
    `D` their mean μ times α there. Slabs summed out, `p(h_j = 1 | v) = σ(c_j + Σ_k (W_jkᵀv/σ² + D_jk)²/2)`, and given
    the spikes v is Gaussian with precision `σ⁻² - Σ_jk h_j (W_jk/σ²)(W_jk/σ²)ᵀ`: an open spike frees v to vary along
    its filters.

    That is a precision for every h if and only if the largest singular value of `W/σ` is below 1. `project`, which
    learning calls after each update, keeps it at most at `limit`: all reachable parameters have a proper law.

    Give σ a floor to learn data with heavy tails, such as `Gaussian(n, floor=0.3)` for standardized values: spikes
    widen what σ leaves, so a σ that falls towards 0 stays there, and what lies far out costs 10⁵ nats.

    >>> machine = SpikeSlabRBM(Gaussian(192, floor=0.3), 128)
    >>> machine.spike_mean(torch.zeros(2, 192)).shape
    torch.Size([2, 128])
    """

    def __init__(
        self,
        visible: Gaussian,
        n_spikes: int,
        width: int = 1,
        limit: float = 0.95,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        if not isinstance(visible, Gaussian):
            raise TypeError(f"`visible` must be Gaussian units, of real data. Got {visible!r}.")
        if not 0 < limit < 1:
            raise ValueError(f"`limit` must be in (0, 1): at 1 the law has no normalizer. Got {limit}.")
        slab = Gaussian(n_spikes, width)
        slab.log_sigma.requires_grad_(False)
        super().__init__(
            {"visible": visible, "spike": Bernoulli(n_spikes), "slab": slab},
            [
                (("visible", "spike", "slab"), Subspace(visible.shape, n_spikes, width, generator=generator)),
                (("visible",), Bias(visible.shape)),
                (("spike",), Bias(n_spikes)),
                (("spike", "slab"), GroupBias(n_spikes, width)),
            ],
        )
        self.n_spikes, self.width, self.limit = n_spikes, width, limit
        self.project()

    @property
    def weight(self) -> Tensor:
        """The filters W, one row for each visible unit, those of a spike side by side in the columns."""
        return self.couplings[0].weight  # type: ignore[return-value]

    def scaled_weight(self) -> Tensor:
        """Return `W/σ`, whose singular values decide whether the law is proper."""
        return self.weight / self.layer("visible").sigma.reshape(-1, 1)  # type: ignore[operator]

    def largest_singular_value(self) -> float:
        """Return the largest singular value of `W/σ`; the law is proper where it is below 1."""
        scaled = self.scaled_weight().detach().double()
        gram = scaled @ scaled.t() if scaled.shape[0] <= scaled.shape[1] else scaled.t() @ scaled
        return float(torch.linalg.eigvalsh(gram)[-1].clamp_min(0).sqrt())

    @torch.no_grad()
    def project(self) -> None:
        """Bring `W/σ` to the nearest matrix without singular values above the limit: those above become the limit."""
        if self.largest_singular_value() > self.limit:
            left, values, right = torch.linalg.svd(self.scaled_weight(), full_matrices=False)
            nearest = (left * values.clamp_max(self.limit)) @ right
            self.weight.copy_(nearest * self.layer("visible").sigma.reshape(-1, 1))  # type: ignore[operator]

    def spike_mean(self, v: Values) -> Tensor:
        """Return `p(h_j = 1 | v)`, slabs summed out."""
        return self.distribution("spike", {"visible": v})[..., 1]

    def slab_mean(self, v: Values, h: Values) -> Tensor:
        """Return `E[s_jk | v, h] = h_j (W_jkᵀv/σ² + D_jk)`; their variance is 1."""
        return self.mean("slab", self.state({"visible": v, "spike": h}))

    def precision(self, h: Values) -> Tensor:
        """Return the precision of `v | h`, slabs summed out: `σ⁻² - Σ_jk h_j (W_jk/σ²)(W_jk/σ²)ᵀ`, `(*batch, n, n)`."""
        spikes = self.state({"spike": h})["spike"].repeat_interleave(self.width, -1)
        variance = self.layer("visible").sigma.flatten().square()  # type: ignore[operator]
        filters = self.weight / variance[:, None]
        return torch.diag(1 / variance) - torch.einsum("ij,...j,kj->...ik", filters, spikes, filters)
