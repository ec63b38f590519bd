"""Networks that energies are made of: ordinary modules whose first weights come from a generator."""

from harmonium.networks.mlp import MLP
from harmonium.networks.small_conv import SmallConv
from harmonium.networks.small_residual import SmallResidual

__all__ = ["MLP", "SmallConv", "SmallResidual"]
