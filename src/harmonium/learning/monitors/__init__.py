"""What is watched while a model learns, one monitor a file."""

from harmonium.learning.monitors.base import Monitor as Monitor
from harmonium.learning.monitors.depths import Depths as Depths
from harmonium.learning.monitors.energies import Energies as Energies
from harmonium.learning.monitors.guard import Guard as Guard
from harmonium.learning.monitors.health import HealthWarning as HealthWarning
from harmonium.learning.monitors.hidden_units import HiddenUnits as HiddenUnits
from harmonium.learning.monitors.joint_curves import JointCurves as JointCurves
from harmonium.learning.monitors.keep_best import KeepBest as KeepBest
from harmonium.learning.monitors.layer_turns import LayerTurns as LayerTurns
from harmonium.learning.monitors.mixing import Mixing as Mixing
from harmonium.learning.monitors.patience import Patience as Patience
from harmonium.learning.monitors.rating_error import RatingError as RatingError


def default_monitors() -> list[Monitor]:
    """Return the monitors that `fit` uses unless told otherwise."""
    return [Energies(), HiddenUnits(), Mixing(), Depths()]
