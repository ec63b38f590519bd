"""Hopfield's network."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from harmonium.couplings import Bias, Symmetric
from harmonium.models.associative_memory import DATA, AssociativeMemory, as_patterns
from harmonium.models.dense_hopfield import DenseHopfield
from harmonium.models.rbm import RBM
from harmonium.types import Values, as_tensor
from harmonium.units import Categorical, Gaussian, Spin


class Hopfield(AssociativeMemory):
    """Spins tied to each other: `E(x) = -½ xᵀWx - bᵀx`, W symmetric without diagonal (Hopfield 1982).

    A Boltzmann machine without hidden units: `fit` learns it, `sample` draws from `e^{-E}`, and it has a likelihood.
    `store` writes patterns into W in one go, `recall` completes them. `dense` and `modern` are its relatives of larger
    capacity.

    >>> patterns = torch.tensor([[1.0, 1, 1, -1, -1, -1], [1, -1, 1, -1, 1, -1]])
    >>> Hopfield.store(patterns).energy(patterns)
    tensor([-2.3333, -2.3333], grad_fn=<SubBackward0>)
    """

    def __init__(self, *shape: int) -> None:
        units = Spin(*shape)
        super().__init__({DATA: units}, [((DATA, DATA), Symmetric(shape)), ((DATA,), Bias(shape))])

    @classmethod
    def store(cls, patterns: Values, rule: str = "hebb") -> Hopfield:
        """Return a network that holds patterns `(n_patterns, *shape)` of -1 and 1.

        `rule` is `"hebb"` (about 0.138 patterns a unit), `"storkey"` (more of them, still one after another) or
        `"pseudo-inverse"` (all that are linearly independent, exactly); see `RULES` for their formulas.
        """
        x = as_patterns(patterns)
        if rule not in RULES:
            raise ValueError(f"`rule` must be one of {', '.join(map(repr, RULES))}. Got {rule!r}.")
        network = cls(*x.shape[1:]).to(x)
        with torch.no_grad():
            network.coupling.weight.copy_(RULES[rule](x.flatten(1).double()).fill_diagonal_(0.0))
        return network

    @staticmethod
    def dense(patterns: Values, order: int = 3) -> DenseHopfield:
        """Return the network of Krotov and Hopfield (2016) that holds the patterns: `E(x) = -N Σ_μ (ξ_μ·x/N)^order`."""
        return DenseHopfield.store(patterns, order)

    @staticmethod
    def modern(patterns: Values, beta: float = 1.0) -> RBM:
        """Return the network of Ramsauer et al. (2020) that holds patterns of any real values, as an RBM.

        With one hidden unit of a class for each pattern and `σ² = 1/β`, `F(x) = β(½|x|² - β⁻¹ log Σ_μ e^{βξ_μ·x})`, β
        times their energy, and one step of recall, `rbm.reconstruct(x) = Σ_μ ξ_μ softmax(βξ·x)_μ`, is attention.
        """
        x = as_tensor(patterns)
        if x.ndim < 2 or not beta > 0:
            raise ValueError(
                f"`patterns` must have shape (n_patterns, *shape) and `beta` be positive. Got {tuple(x.shape)}, {beta}."
            )
        x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
        visible = Gaussian(*x.shape[1:], initial_sigma=beta**-0.5, floor=min(1e-3, beta**-0.5))
        rbm = RBM(visible, Categorical(1, len(x))).to(x)
        with torch.no_grad():
            rbm.weight.copy_(x.flatten(1).t())
            visible.log_sigma.fill_(-math.log(beta) / 2)  # in the precision of the patterns
        return rbm

    @property
    def coupling(self) -> Symmetric:
        """The coupling of the units with each other."""
        return self.couplings[0]  # type: ignore[return-value]

    @property
    def weight(self) -> Tensor:
        """W, symmetric and without diagonal."""
        return self.coupling.matrix()

    @property
    def bias(self) -> Tensor:
        """The bias of the units, b."""
        return self.couplings[1].bias  # type: ignore[return-value]

    def directions(self) -> Tensor:
        """Return W."""
        return self.weight

    def local_fields(self, u: Tensor, x: Tensor, site: int | slice) -> Tensor:
        """Return `θ = Wx + b`, which is u and the bias."""
        return u[:, site] + self.bias.flatten()[site]

    def rounding(self) -> Tensor:
        """Return ε Σ_j |W_ij|."""
        return torch.finfo(self.bias.dtype).eps * (self.weight.abs().sum(1) + self.bias.flatten().abs())


def _hebb(x: Tensor) -> Tensor:
    """Return `W = (1/N) Σ_μ ξ_μ ξ_μᵀ` (Hebb; Hopfield 1982, eq. 2, over N)."""
    return x.t() @ x / x.shape[1]


def _storkey(x: Tensor) -> Tensor:
    """Return W after `W_ij += (ξ_i ξ_j - ξ_i h_ji - h_ij ξ_j)/N`, `h_ij = Σ_{k≠i,j} W_ik ξ_k`, of one pattern a time.

    Storkey (1997): local and incremental as Hebb's rule, with a capacity that grows as N/√(2 log N).
    """
    n = x.shape[1]
    weight = x.new_zeros(n, n)
    for pattern in x:
        total = weight @ pattern
        h = total[:, None] - weight * pattern  # the diagonal of W is zero: k ≠ i holds
        cross = h * pattern
        weight = weight + (torch.outer(pattern, pattern) - cross - cross.t()).fill_diagonal_(0.0) / n
    return weight


def _pseudo_inverse(x: Tensor) -> Tensor:
    """Return the projector onto the patterns, `W = (1/N) Σ_μν ξ_μ (C⁻¹)_μν ξ_νᵀ`, C their overlaps.

    Personnaz, Guyon and Dreyfus (1985). Without its diagonal the field on a pattern is `(1 - W_ii) ξ_i`: each is fixed.
    """
    return torch.linalg.pinv(x) @ x


RULES: dict[str, Callable[[Tensor], Tensor]] = {"hebb": _hebb, "storkey": _storkey, "pseudo-inverse": _pseudo_inverse}
"""The rules of storage: from patterns `(n_patterns, n)` to W, whose diagonal is then left out."""


def mean_field_overlap(n: int = 400) -> tuple[Tensor, Tensor]:
    """Return loads α = p/N and the overlap m with a pattern that Hebb's rule recalls there, for N → ∞ at T = 0.

    Amit, Gutfreund and Sompolinsky (1985): `m = erf(m/√(2αr))` with the noise r of the other patterns, which y =
    m/√(2αr) solves: `√(2α) = erf(y)/y - (2/√π) e^{-y²}`, `m = erf(y)`. The loads rise to the largest, 0.138.

    >>> loads, overlaps = mean_field_overlap()
    >>> round(loads.max().item(), 4), round(overlaps[-1].item(), 2)
    (0.1379, 0.97)
    """
    y = torch.linspace(6.0, 1.0, 20 * n, dtype=torch.float64)
    loads = (y.erf() / y - 2 / math.sqrt(math.pi) * (-(y**2)).exp()).square() / 2
    stable = slice(0, int(loads.argmax()) + 1)  # beyond its largest load the solution is a saddle
    picked = torch.linspace(0, int(loads.argmax()), n).long()
    return loads[stable][picked], y.erf()[stable][picked]
