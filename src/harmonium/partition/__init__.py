"""How large is Z."""

from harmonium.partition.ais import ais, reverse_ais
from harmonium.partition.exact import exact_log_z
from harmonium.partition.log_z import log_z

__all__ = ["ais", "exact_log_z", "log_z", "reverse_ais"]
