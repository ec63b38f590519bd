"""Laws: distributions with exact draws, and densities where they have one. References, noise, starts and baselines."""

from harmonium.laws.class_gaussians import ClassGaussians
from harmonium.laws.clouds import cloud_starts
from harmonium.laws.gaussian import GaussianLaw
from harmonium.laws.independent_units import IndependentUnits
from harmonium.laws.principal import PCAGaussian, PixelGaussian
from harmonium.laws.uniform import UniformLaw

__all__ = [
    "ClassGaussians",
    "GaussianLaw",
    "IndependentUnits",
    "PCAGaussian",
    "PixelGaussian",
    "UniformLaw",
    "cloud_starts",
]
