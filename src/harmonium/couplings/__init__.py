"""How layers meet: one multilinear form a file. A line here is all that a new one needs."""

from harmonium.couplings.base import Coupling as Coupling
from harmonium.couplings.bias import Bias as Bias
from harmonium.couplings.conv2d import Conv2d as Conv2d
from harmonium.couplings.dense import Dense as Dense
from harmonium.couplings.factored import Factored as Factored
from harmonium.couplings.group_bias import GroupBias as GroupBias
from harmonium.couplings.masked import Masked as Masked
from harmonium.couplings.rounded import Rounded as Rounded
from harmonium.couplings.subspace import Subspace as Subspace
from harmonium.couplings.symmetric import Symmetric as Symmetric
from harmonium.couplings.third_order import ThirdOrder as ThirdOrder
