"""Transformations of images: a restricted Boltzmann machine of an output given an input."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.couplings import Bias, Factored
from harmonium.models.machine import BoltzmannMachine
from harmonium.types import Values
from harmonium.units import Gaussian, Units
from harmonium.units.base import require_units


class GatedRBM(BoltzmannMachine):
    """Hidden units that say how an output comes from an input (Memisevic and Hinton 2010).

    `E(y, h | x) = -log μ(y) - log μ(h) - Σ_f (x·U_f)(y·V_f)(h·W_f) - bᵀy - cᵀh`: the input x is given, and a pair of
    filters U_f, V_f compares it with the output. h sees the relation, not the content, and can be carried over to
    another input.

    >>> machine = GatedRBM(Bernoulli(169), Bernoulli(169), Bernoulli(100), n_factors=200)
    >>> machine.free_energy({"input": torch.zeros(2, 169), "output": torch.zeros(2, 169)}).shape
    torch.Size([2])
    """

    def __init__(
        self,
        input: Units | int | tuple[int, ...],  # noqa: A002  (the layer has this name)
        output: Units,
        hidden: Units,
        n_factors: int,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        require_units(output=output, hidden=hidden)
        given = input if isinstance(input, Units) else Gaussian(*((input,) if isinstance(input, int) else input))
        for parameter in given.parameters():
            parameter.requires_grad_(False)  # a condition has no law
        super().__init__(
            {"output": output, "hidden": hidden, "input": given},
            [
                (
                    ("input", "output", "hidden"),
                    Factored(given.shape, output.shape, hidden.shape, n_factors, generator=generator),
                ),
                (("output",), Bias(output.shape)),
                (("hidden",), Bias(hidden.shape)),
            ],
            given=["input"],
        )
        self.n_factors = n_factors

    @property
    def coupling(self) -> Factored:
        """The coupling of the three layers."""
        return self.terms[0][1]  # type: ignore[return-value]

    def hidden_mean(self, x: Values, y: Values) -> Tensor:
        """Return `E[h | x, y]`: which transformation it is."""
        return self.mean("hidden", self.state({"input": x, "output": y}))

    def output_mean(self, x: Values, h: Values) -> Tensor:
        """Return `E[y | x, h]`: the transformation h applied to x."""
        return self.mean("output", self.state({"input": x, "hidden": h}))

    def apply_analogy(self, x: Values, y: Values, other: Values) -> Tensor:
        """Return the transformation of a pair, `E[h | x, y]`, applied to another input: `E[y' | x', h]`."""
        return self.output_mean(other, self.hidden_mean(x, y))
