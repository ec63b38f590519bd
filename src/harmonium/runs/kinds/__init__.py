"""The kinds of models, a file each. A kind that is imported here is on the command line, in this order."""

from typing import Any

from harmonium.runs.kinds.base import AnyKind, Kind, PanelMaker

# isort: off
from harmonium.runs.kinds.rbm import RBMKind as RBMKind
from harmonium.runs.kinds.gaussian_rbm import GaussianRBMKind as GaussianRBMKind
from harmonium.runs.kinds.jem import JEMKind as JEMKind
from harmonium.runs.kinds.dbn import DBNKind as DBNKind
from harmonium.runs.kinds.hopfield import HopfieldKind as HopfieldKind
from harmonium.runs.kinds.subspace_rbm import SubspaceRBMKind as SubspaceRBMKind
from harmonium.runs.kinds.temporal_rbm import TemporalRBMKind as TemporalRBMKind
from harmonium.runs.kinds.boltzmann import BoltzmannKind as BoltzmannKind
from harmonium.runs.kinds.ratings import RatingsKind as RatingsKind
from harmonium.runs.kinds.table import TableKind as TableKind
from harmonium.runs.kinds.gated_rbm import GatedRBMKind as GatedRBMKind
from harmonium.runs.kinds.spike_slab_rbm import SpikeSlabRBMKind as SpikeSlabRBMKind
from harmonium.runs.kinds.scale_mixture import ScaleMixtureKind as ScaleMixtureKind
from harmonium.runs.kinds.class_rbm import ClassRBMKind as ClassRBMKind
from harmonium.runs.kinds.dbm import DBMKind as DBMKind
from harmonium.runs.kinds.network import NetworkKind as NetworkKind
# isort: on


def _is_kind(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Kind) and value is not Kind


KINDS: dict[str, AnyKind] = {kind.name: kind() for kind in filter(_is_kind, list(globals().values()))}
"""The kinds by their name: those imported above."""

__all__ = ["KINDS", "AnyKind", "Kind", "PanelMaker"]
