"""The identities of section 3.2 of Hwang et al. 2020, each with its error as a function of k and N.

With `f(θ) = N g(kθ)` and offsets `o_n = f⁻¹(n - ½)`: the mean `Σ_n σ(θ - o_n) ≈ f(θ)`, the variance
`Σ_n σ'(θ - o_n) ≈ f'(θ) = N k g'(kθ)`, and the slope of the free energy `d/dθ Σ_n log(1 + e^{θ-o_n})` is
`Σ_n σ(θ - o_n) ≈ f(θ)` (eq. 5). The table holds the largest errors over θ: it says which k is sound.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from harmonium.units import Activation, Multinary
from harmonium.units.activation import ACTIVATIONS

ERRORS = {
    # (N, k·N): the largest |Σσ(θ - o_n) - f(θ)| in levels; the largest |Σσ'(θ - o_n) - f'(θ)| over max f' = Nk/4,
    # everywhere and where 0.2 < g < 0.8. Computed apart from the library, on 40,001 fields.
    (1, 0.25): (0.2745, 3.0000, 3.0000),
    (1, 1): (0.0, 0.0, 0.0),
    (1, 4): (0.2745, 0.7500, 0.7500),
    (7, 1): (0.2866, 0.7363, 0.3555),
    (7, 4): (0.2713, 0.1708, 0.1708),
    (7, 7): (0.5790, 0.3265, 0.3265),
    (15, 1): (0.3695, 0.8712, 0.3184),
    (15, 4): (0.1840, 0.1364, 0.0510),
    (15, 15): (1.2916, 0.3319, 0.3319),
    (63, 1): (0.4555, 0.9685, 0.3476),
    (63, 4): (0.3719, 0.2185, 0.0033),
    (63, 16): (0.6005, 0.0468, 0.0468),
    (63, 63): (5.4876, 0.3332, 0.3332),
    (255, 0.25): (0.4958, 3.9819, 3.3532),
    (255, 1): (0.4860, 0.9921, 0.3712),
    (255, 4): (0.4557, 0.2422, 0.0002),
    (255, 16): (0.3725, 0.0547, 0.0032),
    (255, 255): (22.2266, 0.3333, 0.3333),
}


def pair(levels: int, k: float, activation: str | Activation = "sigmoid") -> tuple[Multinary, Multinary, Tensor]:
    """Return the exact and the smooth unit, and fields that cover their bend and both tails."""
    exact = Multinary(1, levels=levels, k=k, activation=activation, exact=True).double()
    smooth = Multinary(1, levels=levels, k=k, activation=activation).double()
    reach = exact.offsets.abs().max().item() + 10
    return exact, smooth, torch.linspace(-reach, reach, 20001, dtype=torch.float64)[:, None]


@pytest.mark.parametrize(("levels", "kn"), ERRORS)
def test_mean_and_variance(levels: int, kn: float) -> None:
    """`Σ_n σ(θ - o_n)` against f, and its derivative, the variance, against `f' = N k g'(kθ)`."""
    exact, smooth, field = pair(levels, kn / levels)
    mean, variance, middle = ERRORS[levels, kn]
    assert (exact.mean(field) - smooth.mean(field)).abs().max().item() == pytest.approx(mean, rel=0.02, abs=1e-9)
    slope, share = smooth.variance(field), smooth.mean(field) / levels
    assert slope.max().item() == pytest.approx(kn / 4, rel=1e-3)  # N k g'(0)
    error = (exact.variance(field) - slope).abs() / (kn / 4)
    assert error.max().item() == pytest.approx(variance, rel=0.02, abs=1e-9)
    assert error[(share > 0.2) & (share < 0.8)].max().item() == pytest.approx(middle, rel=0.02, abs=1e-4)


STEEPEST = {"sigmoid": 0.25, "relu": 1.0, "tanh": 0.5, "softplus": 1.0, "atan": 1 / torch.pi}
"""The steepest slope of each activation."""


@pytest.mark.parametrize("activation", [*ACTIVATIONS, Activation("atan", lambda x: x.atan() / torch.pi + 0.5)], ids=str)
@pytest.mark.parametrize("levels", [1, 15, 255])
def test_free_energy(levels: int, activation: str | Activation) -> None:
    """Eq. 5: the slope of the exact free energy is the sum of sigmoids, that of the smooth one is f.

    Where offsets lie 1 apart at the steepest place, `k N max g' = 1`, the two are within half a level; the
    corner of relu is rounded off by `softplus(0) = log 2`.
    """
    exact, smooth, field = pair(levels, 1 / (levels * STEEPEST[str(activation)]), activation)
    field = field[::20].clone().requires_grad_()
    for unit, mean in ((exact, (field - exact.offsets).sigmoid().sum(-1, keepdim=True)), (smooth, smooth.mean(field))):
        (slope,) = torch.autograd.grad(unit.log_partition(field).sum(), field)
        assert torch.allclose(slope, mean, atol=1e-6 * levels)
    assert (exact.mean(field) - smooth.mean(field)).abs().max() <= 0.694


def test_k_that_is_too_steep_is_wrong_by_whole_levels() -> None:
    """A negative control of the table: with k = 1 the offsets of 255 levels crowd together and f is not the mean."""
    exact, smooth, field = pair(255, 1.0)
    assert (exact.mean(field) - smooth.mean(field)).abs().max() > 20
