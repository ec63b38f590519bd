"""Harmonium: Boltzmann machines and energy-based models, with likelihoods that carry their error.

The names that are used most are here; the rest are reached through their rooms, such as `harmonium.learning.monitors`.

>>> import harmonium as hm
>>> rbm = hm.RBM(hm.Bernoulli(784), hm.Bernoulli(500))
>>> rbm.free_energy(torch.zeros(1, 784)).shape
torch.Size([1])
"""

from harmonium.couplings import Bias, Conv2d, Dense, Subspace, Symmetric
from harmonium.evaluation.likelihood import log_likelihood
from harmonium.inference import MeanField
from harmonium.learning import fit
from harmonium.learning.objectives import CD, PCD, TemperedPCD
from harmonium.learning.starts import initialize
from harmonium.learning.transforms import Centering, ParameterAverage, Sparsity, WeightDecay
from harmonium.models import DBN, JEM, RBM, BoltzmannMachine, Conditioned, Hopfield, NeuralEBM, load
from harmonium.networks import MLP
from harmonium.partition import ais, exact_log_z, log_z
from harmonium.samplers import MALA, Gibbs, Langevin, ParallelTempering, sample
from harmonium.types import Estimate, State
from harmonium.units import Bernoulli, Binomial, Categorical, Gaussian, Mixed, Multinary, NReLU, Poisson, Spin

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
    "Conditioned",
    "DBN",
    "Hopfield",
    "JEM",
    "MLP",
    "NeuralEBM",
    "RBM",
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
