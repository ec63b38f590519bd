"""The kinds of units: one law a file."""

from harmonium.units.activation import Activation
from harmonium.units.base import Units
from harmonium.units.bernoulli import Bernoulli
from harmonium.units.binomial import Binomial
from harmonium.units.categorical import Categorical
from harmonium.units.gaussian import Gaussian
from harmonium.units.max_pooled import MaxPooled
from harmonium.units.mixed import Mixed
from harmonium.units.multinary import Multinary
from harmonium.units.nrelu import NReLU
from harmonium.units.poisson import Poisson
from harmonium.units.spin import Spin

__all__ = [
    "Activation",
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Gaussian",
    "MaxPooled",
    "Mixed",
    "Multinary",
    "NReLU",
    "Poisson",
    "Spin",
    "Units",
]
