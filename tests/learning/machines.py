"""Machines and data that the tests of learning share."""

from __future__ import annotations

import torch
from torch import Tensor

import harmonium as hm
from harmonium.data.lattice import bars_and_stripes
from harmonium.testing import scatter

MACHINES = {
    "Bernoulli": lambda: hm.RBM(hm.Bernoulli(5), hm.Bernoulli(3)),
    "Gaussian": lambda: hm.RBM(hm.Gaussian(4, initial_sigma=0.7), hm.Bernoulli(3)),
    "Gaussian hidden": lambda: hm.RBM(hm.Spin(4), hm.Gaussian(3, initial_sigma=0.7)),
    "Categorical": lambda: hm.RBM(hm.Categorical(2, 3), hm.Categorical(2, 2)),
    "Multinary": lambda: hm.RBM(hm.Multinary(4, levels=7), hm.Multinary(3, levels=5)),
    "Multinary exact": lambda: hm.RBM(hm.Multinary(4, levels=3, exact=True), hm.Multinary(3, levels=2, exact=True)),
    "Mixed": lambda: hm.RBM(hm.Mixed(hm.Bernoulli(2), hm.Gaussian(2), hm.Categorical(1, 3)), hm.Bernoulli(3)),
    "Poisson": lambda: hm.RBM(hm.Poisson(3), hm.Binomial(2, levels=3)),
    "Convolution": lambda: hm.RBM(hm.Gaussian(1, 4, 4), hm.Bernoulli(2, 2, 2), hm.Conv2d(1, 2, kernel=2, stride=2)),
    "Boltzmann": lambda: hm.BoltzmannMachine({"x": hm.Spin(4)}, [(("x", "x"), hm.Symmetric(4)), (("x",), hm.Bias(4))]),
}
"""A maker of a small machine for each kind of unit and coupling."""


def make(name: str) -> hm.BoltzmannMachine:
    """Return one of the machines in float64 with random parameters."""
    return scatter(MACHINES[name](), scale=0.3)


def draw_data(machine: hm.BoltzmannMachine, n: int, generator: torch.Generator) -> Tensor:
    """Return samples of the units under their biases: valid data."""
    return machine.initial(n, generator=generator)[machine.data_layer]


def gradient_of(machine: hm.BoltzmannMachine) -> dict[str, Tensor]:
    """Return a copy of the gradients by name."""
    return {name: p.grad.clone() for name, p in machine.named_parameters() if p.grad is not None}


def small_bars() -> Tensor:
    """Return the 14 bars and stripes of size 3, the double ones twice: 16 rows of 9 binary units."""
    patterns, probabilities = bars_and_stripes(3)
    times = (probabilities * 16).round().long()
    return patterns.flatten(1).repeat_interleave(times, dim=0)
