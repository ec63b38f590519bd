"""Learning: one loop, and in rooms of their own what goes into it: objectives, transforms, monitors, starts."""

from harmonium.learning.diverged import TrainingDiverged
from harmonium.learning.fit import fit
from harmonium.learning.greedy import fit_greedy
from harmonium.learning.history import History
from harmonium.learning.training import Callback, Training

__all__ = ["Callback", "History", "Training", "TrainingDiverged", "fit", "fit_greedy"]
