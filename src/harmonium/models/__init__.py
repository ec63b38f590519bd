"""Models: what is built from units and couplings, and energies made of networks."""

from harmonium.models.dbn import DBN
from harmonium.models.gaussian_law import GaussianLaw
from harmonium.models.given_class import GivenClass
from harmonium.models.jem import JEM
from harmonium.models.machine import BoltzmannMachine
from harmonium.models.mlp import MLP
from harmonium.models.network_energy import NetworkEnergy
from harmonium.models.neural import NeuralEBM
from harmonium.models.rbm import RBM
from harmonium.models.small_conv import SmallConv
from harmonium.models.small_residual import SmallResidual
from harmonium.models.tempered import Tempered
from harmonium.models.uniform_law import UniformLaw

__all__ = [
    "BoltzmannMachine",
    "DBN",
    "GaussianLaw",
    "GivenClass",
    "JEM",
    "MLP",
    "NetworkEnergy",
    "NeuralEBM",
    "RBM",
    "SmallConv",
    "SmallResidual",
    "Tempered",
    "UniformLaw",
]
