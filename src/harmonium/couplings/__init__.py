"""How layers meet: one multilinear form a file."""

from harmonium.couplings.base import Coupling
from harmonium.couplings.bias import Bias
from harmonium.couplings.conv2d import Conv2d
from harmonium.couplings.dense import Dense
from harmonium.couplings.symmetric import Symmetric
from harmonium.couplings.third_order import ThirdOrder

__all__ = ["Bias", "Conv2d", "Coupling", "Dense", "Symmetric", "ThirdOrder"]
