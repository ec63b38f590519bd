"""Learning: objectives, gradient transforms, monitors and the loop that joins them."""

from harmonium.learning.centering import Centering
from harmonium.learning.class_gaussians import ClassGaussians
from harmonium.learning.cloud_starts import cloud_starts
from harmonium.learning.contrastive import CD, PCD, Contrastive, Phases, TemperedPCD
from harmonium.learning.each_layer import EachLayer
from harmonium.learning.fit import fit
from harmonium.learning.greedy import fit_greedy
from harmonium.learning.guard import Guard
from harmonium.learning.health import HealthWarning
from harmonium.learning.history import History
from harmonium.learning.initialize import initialize
from harmonium.learning.initialize_layers import initialize_layers
from harmonium.learning.joint import JointLikelihood
from harmonium.learning.joint_cd import JointCD, layer_phases
from harmonium.learning.joint_curves import JointCurves
from harmonium.learning.layer_fit import LayerFit
from harmonium.learning.layer_rates import layer_rates
from harmonium.learning.mean_field_cd import MeanFieldCD
from harmonium.learning.monitors import Fit, HiddenUnits, Mixing, Monitor, default_monitors
from harmonium.learning.noise_contrastive import NoiseContrastive
from harmonium.learning.replay import ReplayBuffer
from harmonium.learning.score_matching import DenoisingScoreMatching, SlicedScoreMatching
from harmonium.learning.snapshot import restore, snapshot
from harmonium.learning.training import Callback, Training, TrainingDiverged
from harmonium.learning.transforms import (
    ClipGradient,
    NormLimit,
    ParameterAverage,
    Sparsity,
    Transform,
    WeightDecay,
)

__all__ = [
    "ClassGaussians",
    "Guard",
    "JointLikelihood",
    "JointCurves",
    "NoiseContrastive",
    "ReplayBuffer",
    "DenoisingScoreMatching",
    "SlicedScoreMatching",
    "CD",
    "PCD",
    "Callback",
    "Centering",
    "ClipGradient",
    "Contrastive",
    "EachLayer",
    "Fit",
    "HealthWarning",
    "HiddenUnits",
    "History",
    "JointCD",
    "LayerFit",
    "MeanFieldCD",
    "Mixing",
    "Monitor",
    "NormLimit",
    "ParameterAverage",
    "Phases",
    "Sparsity",
    "TemperedPCD",
    "Training",
    "TrainingDiverged",
    "Transform",
    "WeightDecay",
    "default_monitors",
    "cloud_starts",
    "fit",
    "fit_greedy",
    "initialize",
    "initialize_layers",
    "layer_phases",
    "layer_rates",
    "restore",
    "snapshot",
]
