"""How large is Z."""

from harmonium.partition.ais import ais, reverse_ais
from harmonium.partition.bethe import bethe
from harmonium.partition.exact import exact_log_z
from harmonium.partition.log_z import METHODS, log_z
from harmonium.partition.log_z_shift import log_z_shift
from harmonium.partition.mbar import mbar
from harmonium.partition.modes import Modes, mean_field_modes
from harmonium.partition.perturb_and_map import perturb_and_map
from harmonium.partition.states_bound import states_bound
from harmonium.partition.tree_bound import tree_bound

__all__ = [
    "METHODS",
    "Modes",
    "ais",
    "bethe",
    "exact_log_z",
    "log_z",
    "log_z_shift",
    "mbar",
    "mean_field_modes",
    "perturb_and_map",
    "reverse_ais",
    "states_bound",
    "tree_bound",
]
