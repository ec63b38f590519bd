"""Learning: one loop, and in rooms of their own what goes into it: objectives, transforms, monitors, starts."""

from harmonium.learning.callback import Callback
from harmonium.learning.diverged import TrainingDiverged
from harmonium.learning.early_stopping import EarlyStopping
from harmonium.learning.fit import fit
from harmonium.learning.greedy import fit_greedy
from harmonium.learning.history import History
from harmonium.learning.loggers import TensorBoard, WeightsAndBiases
from harmonium.learning.progress import Progress
from harmonium.learning.training import Training

__all__ = [
    "Callback",
    "EarlyStopping",
    "History",
    "Progress",
    "TensorBoard",
    "Training",
    "TrainingDiverged",
    "WeightsAndBiases",
    "fit",
    "fit_greedy",
]
