"""Objectives: what is made small, one a file."""

from harmonium.learning.objectives.base import Objective as Objective
from harmonium.learning.objectives.base import Phases as Phases
from harmonium.learning.objectives.cd import CD as CD
from harmonium.learning.objectives.contrastive import Contrastive as Contrastive
from harmonium.learning.objectives.cross_entropy import CrossEntropy as CrossEntropy
from harmonium.learning.objectives.exact_likelihood import ExactLikelihood as ExactLikelihood
from harmonium.learning.objectives.fast_pcd import FastPCD as FastPCD
from harmonium.learning.objectives.hybrid import Hybrid as Hybrid
from harmonium.learning.objectives.joint_likelihood import JointLikelihood as JointLikelihood
from harmonium.learning.objectives.leave_one_out import LeaveOneOut as LeaveOneOut
from harmonium.learning.objectives.mean_field_cd import MeanFieldCD as MeanFieldCD
from harmonium.learning.objectives.noise_contrastive import NoiseContrastive as NoiseContrastive
from harmonium.learning.objectives.observed_likelihood import ObservedLikelihood as ObservedLikelihood
from harmonium.learning.objectives.pcd import PCD as PCD
from harmonium.learning.objectives.perturb_and_map import PerturbAndMAP as PerturbAndMAP
from harmonium.learning.objectives.probability_flow import ProbabilityFlow as ProbabilityFlow
from harmonium.learning.objectives.pseudo_likelihood import PseudoLikelihood as PseudoLikelihood
from harmonium.learning.objectives.ratio_matching import RatioMatching as RatioMatching
from harmonium.learning.objectives.reconstruction import Reconstruction as Reconstruction
from harmonium.learning.objectives.replay_buffer import ReplayBuffer as ReplayBuffer
from harmonium.learning.objectives.scaled_contrast import ScaledContrast as ScaledContrast
from harmonium.learning.objectives.score_matching import DenoisingScoreMatching as DenoisingScoreMatching
from harmonium.learning.objectives.score_matching import ScoreMatching as ScoreMatching
from harmonium.learning.objectives.score_matching import SlicedScoreMatching as SlicedScoreMatching
from harmonium.learning.objectives.summed_layers import SummedLayers as SummedLayers
from harmonium.learning.objectives.tempered_pcd import TemperedPCD as TemperedPCD
