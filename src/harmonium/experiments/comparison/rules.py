"""The learning rules that are compared, as they are used."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from harmonium.learning.objectives import (
    CD,
    PCD,
    DenoisingScoreMatching,
    ExactLikelihood,
    FastPCD,
    NoiseContrastive,
    Objective,
    PerturbAndMAP,
    ProbabilityFlow,
    PseudoLikelihood,
    RatioMatching,
    ScoreMatching,
    SlicedScoreMatching,
    TemperedPCD,
)
from harmonium.models import RBM

Maker = Callable[[RBM, Tensor], Objective]
"""`maker(rbm, x) -> objective` for a machine about to learn x."""

RULES: dict[str, Maker] = {
    "exact": lambda _rbm, _x: ExactLikelihood(),
    "cd-1": lambda _rbm, _x: CD(),
    "cd-10": lambda _rbm, _x: CD(n_steps=10),
    "pcd": lambda _rbm, _x: PCD(n_chains=128),
    "fast-pcd": lambda _rbm, _x: FastPCD(n_chains=128),
    "tempered-pcd": lambda _rbm, _x: TemperedPCD(n_chains=128),
    "pseudo-likelihood": lambda _rbm, _x: PseudoLikelihood(),
    "pseudo-likelihood, 2 units": lambda _rbm, _x: PseudoLikelihood(2),
    "ratio-matching": lambda _rbm, _x: RatioMatching(),
    "probability-flow": lambda _rbm, _x: ProbabilityFlow(),
    "noise-contrastive": lambda rbm, x: NoiseContrastive.of(rbm, x, ratio=4),
    "perturb-and-map": lambda _rbm, _x: PerturbAndMAP(),
    "score-matching": lambda _rbm, _x: ScoreMatching(),
    "sliced-score-matching": lambda _rbm, _x: SlicedScoreMatching(),
    "denoising-score-matching": lambda _rbm, _x: DenoisingScoreMatching(),
}
"""The rules by their names; each applies to some kinds of units."""


def rules_for(rbm: RBM, x: Tensor) -> list[str]:
    """Return the names of the rules that can train this machine, in order.

    >>> "score-matching" in rules_for(RBM(Bernoulli(3), Bernoulli(2)), torch.ones(4, 3))
    False
    """
    return [name for name in RULES if _applies(name, rbm, x)]


def _applies(name: str, rbm: RBM, x: Tensor) -> bool:
    try:
        RULES[name](rbm, x).check(rbm)
    except TypeError:
        return False
    return True
