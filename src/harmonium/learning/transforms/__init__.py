"""What is done to gradients before an update and to parameters after it, one transform a file."""

from harmonium.learning.transforms.base import Transform as Transform
from harmonium.learning.transforms.centering import Centering as Centering
from harmonium.learning.transforms.clip_gradient import ClipGradient as ClipGradient
from harmonium.learning.transforms.each_layer import EachLayer as EachLayer
from harmonium.learning.transforms.l1_decay import L1Decay as L1Decay
from harmonium.learning.transforms.norm_limit import NormLimit as NormLimit
from harmonium.learning.transforms.parameter_average import ParameterAverage as ParameterAverage
from harmonium.learning.transforms.sparsity import Sparsity as Sparsity
from harmonium.learning.transforms.weight_decay import WeightDecay as WeightDecay
