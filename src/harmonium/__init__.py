"""Harmonium: Boltzmann machines and energy-based models, with likelihoods that carry their error.

The names that are used most are here; the rest are reached through their rooms, such as `harmonium.learning.monitors`.

>>> import harmonium as hm
>>> rbm = hm.RBM(hm.Bernoulli(784), hm.Bernoulli(500))
>>> rbm.free_energy(torch.zeros(1, 784)).shape
torch.Size([1])
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harmonium.names import *

__version__ = "0.1.0"

__all__ = [
    # units
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Gaussian",
    "Mixed",
    "Multinary",
    "NReLU",
    "Poisson",
    "Spin",
    # couplings
    "Bias",
    "Conv2d",
    "Dense",
    "Subspace",
    "Symmetric",
    # models
    "BoltzmannMachine",
    "ClassRBM",
    "Conditioned",
    "DBM",
    "DBN",
    "GatedRBM",
    "Hopfield",
    "JEM",
    "MLP",
    "NeuralEBM",
    "RBM",
    "SpikeSlabRBM",
    "SubspaceRBM",
    "TemporalRBM",
    "load",
    # samplers and inference
    "Gibbs",
    "Langevin",
    "MALA",
    "ParallelTempering",
    "sample",
    "MeanField",
    # learning
    "CD",
    "Centering",
    "PCD",
    "ParameterAverage",
    "Sparsity",
    "TemperedPCD",
    "WeightDecay",
    "fit",
    "initialize",
    # how large is Z, how good is the model
    "ais",
    "exact_log_z",
    "log_likelihood",
    "log_z",
    # what they speak of
    "Estimate",
    "State",
]


def __getattr__(name: str) -> Any:
    """Return a public name or a room; both are imported when they are first asked for, so that `--help` is quick."""
    if name in __all__:
        found = import_module("harmonium.names")
        globals().update({public: getattr(found, public) for public in __all__ if hasattr(found, public)})
        return globals()[name]
    if not name.startswith("_") and find_spec(f"harmonium.{name}") is not None:
        return import_module(f"harmonium.{name}")
    raise AttributeError(f"module 'harmonium' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names."""
    return [*__all__, "__version__"]
