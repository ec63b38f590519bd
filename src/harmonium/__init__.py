"""Harmonium: Boltzmann machines and energy-based models, with likelihoods that carry their error.

>>> import harmonium as hm
>>> rbm = hm.RBM(hm.Bernoulli(784), hm.Bernoulli(500))
>>> rbm.free_energy(torch.zeros(1, 784)).shape
torch.Size([1])
"""

from harmonium.couplings import Bias, Conv2d, Coupling, Dense, Symmetric, ThirdOrder
from harmonium.evaluation.likelihood import log_likelihood
from harmonium.evaluation.likelihood_track import LikelihoodTrack
from harmonium.laws import GaussianLaw, UniformLaw
from harmonium.learning import (
    CD,
    PCD,
    Callback,
    Centering,
    ClassGaussians,
    ClipGradient,
    Contrastive,
    DenoisingScoreMatching,
    EachLayer,
    Guard,
    HealthWarning,
    History,
    JointCD,
    JointCurves,
    JointLikelihood,
    MeanFieldCD,
    NoiseContrastive,
    NormLimit,
    ParameterAverage,
    ReplayBuffer,
    SlicedScoreMatching,
    Sparsity,
    TemperedPCD,
    TrainingDiverged,
    WeightDecay,
    fit,
    fit_greedy,
    initialize,
    initialize_layers,
    layer_rates,
)
from harmonium.models import DBN, JEM, RBM, BoltzmannMachine, NeuralEBM, Tempered
from harmonium.networks import MLP, SmallConv, SmallResidual
from harmonium.partition import ais, exact_log_z, log_z, reverse_ais
from harmonium.samplers import (
    MALA,
    Gibbs,
    Langevin,
    Metropolis,
    ParallelTempering,
    Sampler,
    autocorrelation,
    autocorrelation_time,
    effective_sample_size,
    sample,
    split_r_hat,
)
from harmonium.types import EnergyModel, Estimate, State
from harmonium.units import (
    Activation,
    Bernoulli,
    Binomial,
    Categorical,
    Gaussian,
    MaxPooled,
    Mixed,
    Multinary,
    NReLU,
    Poisson,
    Spin,
    Units,
)

__version__ = "0.1.0"

__all__ = [
    # units
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
    # couplings
    "Bias",
    "Conv2d",
    "Coupling",
    "Dense",
    "Symmetric",
    "ThirdOrder",
    # models
    "DBN",
    "GaussianLaw",
    "JEM",
    "MLP",
    "NeuralEBM",
    "SmallConv",
    "SmallResidual",
    "UniformLaw",
    "BoltzmannMachine",
    "RBM",
    "Tempered",
    # samplers
    "Gibbs",
    "Langevin",
    "MALA",
    "Metropolis",
    "ParallelTempering",
    "Sampler",
    "autocorrelation",
    "autocorrelation_time",
    "effective_sample_size",
    "sample",
    "split_r_hat",
    # learning
    "ClassGaussians",
    "DenoisingScoreMatching",
    "EachLayer",
    "Guard",
    "JointCD",
    "JointCurves",
    "JointLikelihood",
    "NoiseContrastive",
    "ReplayBuffer",
    "SlicedScoreMatching",
    "CD",
    "Callback",
    "Centering",
    "ClipGradient",
    "Contrastive",
    "HealthWarning",
    "History",
    "LikelihoodTrack",
    "MeanFieldCD",
    "NormLimit",
    "PCD",
    "ParameterAverage",
    "Sparsity",
    "TemperedPCD",
    "TrainingDiverged",
    "WeightDecay",
    "fit",
    "fit_greedy",
    "initialize",
    "initialize_layers",
    "layer_rates",
    # how large is Z, how good is the model
    "ais",
    "exact_log_z",
    "log_likelihood",
    "log_z",
    "reverse_ais",
    # what they speak of
    "EnergyModel",
    "Estimate",
    "State",
]
