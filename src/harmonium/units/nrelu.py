"""Noisy rectified linear units."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.draws import draw_categorical
from harmonium.types import softplus
from harmonium.units.base import Units

_N_TERMS = 40  # Σ_{n > 40} softplus(½ - n) < 1e-17
_WINDOW = 10  # P(|x - E x| > 10) < 1e-22: the law is lighter than a Gaussian of variance 1
_RIPPLE = 2 * math.exp(-2 * math.pi**2)
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_LOG_EULER = sum(math.log1p(-math.exp(-n)) for n in range(1, 200))


class NReLU(Units):
    """Infinitely many binary copies with offsets ½, 3/2, 5/2, … (Nair and Hinton 2010; eq. 2 of Hwang et al. 2020).

    The number of active copies is 0, 1, 2, … with `A(θ) = Σ_n log(1 + e^{θ-n+½})` and mean `Σ_n σ(θ-n+½)`, nearly
    `log(1 + e^θ)`. Euler's product gives its base measure in closed form, `μ(x) = e^{-x²/2} / Π_{m≤x} (1 - e^{-m})`,
    so the unit has a likelihood. Nair and Hinton's rule `max(0, θ + √σ(θ) ε)` is the Gaussian approximation of the
    draw made here.

    >>> NReLU(2).mean(torch.tensor([-10.0, 10.0]))
    tensor([4.3561e-05, 1.0000e+01])
    """

    support = "integer"

    def log_partition(self, field: Tensor) -> Tensor:
        """Return `A(θ) = Σ_n log(1 + e^{θ-n+½})`.

        For θ > 0 Jacobi's triple product and Poisson's summation turn the sum into a short one:
        `A(θ) + A(-θ) = θ²/2 + ½ log 2π - Σ_n log(1 - e^{-n}) + log(1 + 2 e^{-2π²} cos 2πθ)`.
        """
        short = softplus(self._negative(field).unsqueeze(-1) - self._offsets(field)).sum(-1)
        reflection = field.square() / 2 + _HALF_LOG_2PI - _LOG_EULER
        reflection = reflection + (_RIPPLE * (2 * math.pi * field).cos()).log1p()
        return torch.where(field > 0, reflection - short, short)

    def mean(self, field: Tensor) -> Tensor:
        """Return `Σ_n σ(θ-n+½)`, by the same reflection for θ > 0."""
        short = (self._negative(field).unsqueeze(-1) - self._offsets(field)).sigmoid().sum(-1)
        angle = 2 * math.pi * field
        ripple = _RIPPLE * 2 * math.pi * angle.sin() / (1 + _RIPPLE * angle.cos())
        return torch.where(field > 0, field - ripple + short, short)

    def variance(self, field: Tensor) -> Tensor:
        """Return `Σ_n σ'(θ-n+½)`: almost 1 for large θ."""
        short = self._negative(field).unsqueeze(-1) - self._offsets(field)
        short = (short.sigmoid() * (-short).sigmoid()).sum(-1)
        ripple = _RIPPLE * (2 * math.pi) ** 2 * (2 * math.pi * field).cos()
        return torch.where(field > 0, 1 - ripple - short, short)

    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw the number of active copies exactly, among the values around the mean that carry all the mass."""
        values = self._window(field)
        drawn = draw_categorical(self._window_log_law(field, values).softmax(-1), generator=generator)
        return (drawn * values).sum(-1)

    def mode(self, field: Tensor) -> Tensor:
        """Return the most probable number of active copies."""
        values = self._window(field)
        best = self._window_log_law(field, values).argmax(-1, keepdim=True)
        return values.gather(-1, best).squeeze(-1)

    def log_base(self, x: Tensor) -> Tensor:
        """Return `log μ(x) = -x²/2 - Σ_{m≤x} log(1 - e^{-m})`, and -∞ below zero."""
        m = torch.arange(1, _N_TERMS + 1, dtype=x.dtype, device=x.device)
        tail = torch.cat([m.new_zeros(1), (-(-m).exp()).log1p().cumsum(0)])
        inside = x.clamp_min(0)
        index = inside.nan_to_num(0.0).clamp_max(_N_TERMS).long()  # NaN stays NaN by its square
        value = -inside.square() / 2 - tail[index]
        return torch.where(x < 0, -torch.inf, value)

    def _negative(self, field: Tensor) -> Tensor:
        # -|θ|, but with a derivative at zero.
        return torch.where(field > 0, -field, field)

    def _offsets(self, field: Tensor) -> Tensor:
        return torch.arange(_N_TERMS, dtype=field.dtype, device=field.device) + 0.5

    def _window(self, field: Tensor) -> Tensor:
        start = (self.mean(field).round() - _WINDOW).clamp_min(0).unsqueeze(-1)
        return start + torch.arange(2 * _WINDOW + 1, dtype=field.dtype, device=field.device)

    def _window_log_law(self, field: Tensor, values: Tensor) -> Tensor:
        # (θ - x)²/2 instead of θx - x²/2: the constant θ²/2 would swallow the digits at large fields.
        return self.log_base(values) + values.square() / 2 - (field.unsqueeze(-1) - values).square() / 2
