"""Models: what is built from units and couplings."""

from harmonium.models.machine import BoltzmannMachine
from harmonium.models.rbm import RBM
from harmonium.models.tempered import Tempered

__all__ = ["RBM", "BoltzmannMachine", "Tempered"]
