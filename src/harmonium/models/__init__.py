"""Models: what is built from units and couplings, and energies made of networks."""

from harmonium.models.class_rbm import ClassRBM
from harmonium.models.conditioned import Conditioned
from harmonium.models.dbm import DBM
from harmonium.models.dbn import DBN
from harmonium.models.dense_hopfield import DenseHopfield
from harmonium.models.gated_rbm import GatedRBM
from harmonium.models.given_class import GivenClass
from harmonium.models.hopfield import Hopfield
from harmonium.models.jem import JEM
from harmonium.models.machine import BoltzmannMachine
from harmonium.models.network_energy import NetworkEnergy
from harmonium.models.neural import NeuralEBM
from harmonium.models.rating_rbm import RatingRBM
from harmonium.models.rbm import RBM
from harmonium.models.scale_mixture import ScaleMixture
from harmonium.models.spike_slab_rbm import SpikeSlabRBM
from harmonium.models.stored import Stored, load
from harmonium.models.subspace_rbm import SubspaceRBM
from harmonium.models.tempered import Tempered
from harmonium.models.temporal_rbm import TemporalRBM

__all__ = [
    "BoltzmannMachine",
    "ClassRBM",
    "Conditioned",
    "DBM",
    "DBN",
    "DenseHopfield",
    "GatedRBM",
    "GivenClass",
    "Hopfield",
    "JEM",
    "NetworkEnergy",
    "NeuralEBM",
    "RBM",
    "RatingRBM",
    "ScaleMixture",
    "Stored",
    "SpikeSlabRBM",
    "SubspaceRBM",
    "Tempered",
    "TemporalRBM",
    "load",
]
