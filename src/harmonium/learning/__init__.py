"""Learning: objectives, gradient transforms, monitors and the loop that joins them."""

from harmonium.laws.class_gaussians import ClassGaussians
from harmonium.laws.clouds import cloud_starts
from harmonium.learning.fit import fit
from harmonium.learning.greedy import fit_greedy
from harmonium.learning.history import History
from harmonium.learning.monitors.depths import LayerFit
from harmonium.learning.monitors.guard import Guard
from harmonium.learning.monitors.health import HealthWarning
from harmonium.learning.monitors.joint_curves import JointCurves
from harmonium.learning.monitors.monitors import Fit, HiddenUnits, Mixing, Monitor, default_monitors
from harmonium.learning.objectives.contrastive import CD, PCD, Contrastive, Phases, TemperedPCD
from harmonium.learning.objectives.joint_likelihood import JointLikelihood
from harmonium.learning.objectives.mean_field_cd import MeanFieldCD
from harmonium.learning.objectives.noise_contrastive import NoiseContrastive
from harmonium.learning.objectives.replay_buffer import ReplayBuffer
from harmonium.learning.objectives.score_matching import DenoisingScoreMatching, SlicedScoreMatching
from harmonium.learning.objectives.summed_layers import JointCD, layer_phases
from harmonium.learning.snapshot import restore, snapshot
from harmonium.learning.starts.initialize import initialize
from harmonium.learning.starts.initialize_layers import initialize_layers
from harmonium.learning.starts.layer_rates import layer_rates
from harmonium.learning.training import Callback, Training, TrainingDiverged
from harmonium.learning.transforms.centering import Centering
from harmonium.learning.transforms.each_layer import EachLayer
from harmonium.learning.transforms.transforms import (
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
