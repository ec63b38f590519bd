"""The health of a training run, in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harmonium.learning.history import Record
from harmonium.learning.objectives import TemperedPCD
from harmonium.learning.transforms import Centering, EachLayer, L1Decay, ParameterAverage, Sparsity, WeightDecay

if TYPE_CHECKING:
    from harmonium.learning.training import Training


class HealthWarning(UserWarning):
    """Something about the training looks wrong; the message says what and what to do."""


@dataclass(frozen=True)
class Setup:
    """What a run has that can be changed: messages name nothing else."""

    decays: bool = False
    is_sparse: bool = False
    is_centered: bool = False
    is_averaged: bool = False
    is_tempered: bool = False
    has_steps: bool = True
    can_center: bool = True

    @classmethod
    def of(cls, training: Training) -> Setup:
        """Return what a training has, by its transforms, its optimizer and its objective."""
        parts = [part.transform if isinstance(part, EachLayer) else part for part in training.transforms]
        decays = any(group.get("weight_decay", 0) for group in training.optimizer.param_groups)
        return cls(
            decays=decays or any(isinstance(part, WeightDecay | L1Decay) and part.rate > 0 for part in parts),
            is_sparse=any(isinstance(part, Sparsity) for part in parts),
            is_centered=any(isinstance(part, Centering) for part in parts),
            is_averaged=any(isinstance(part, ParameterAverage) for part in parts),
            is_tempered=isinstance(training.objective, TemperedPCD),
            has_steps=training.objective.n_steps is not None,
            can_center=training.phases is not None,
        )


def messages(record: Record, past: Sequence[Record], setup: Setup | None = None) -> list[str]:
    """Return what a doctor would say about the newest metrics, given the earlier ones and what the run has."""
    setup = Setup() if setup is None else setup
    texts = []
    wrong = [name for name, value in record.items() if isinstance(value, float) and math.isnan(value)]
    if wrong:
        texts.append(
            f"{', '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} not a number (NaN): nothing that is compared "
            "with it can be relied on. Look for constant or huge values in the data, or lower the learning rate."
        )
    n_hidden = record.get("n_hidden")
    rows = f" on the {record['n_rows']:,} rows looked at" if record.get("n_rows") else ""
    if record.get("dead", 0):
        texts.append(f"{record['dead']} of {n_hidden} hidden units never fire{rows}: {_revive(setup)}.")
    if record.get("saturated", 0) > 0.2 * (n_hidden or 1):
        center = ", or center the gradient (Centering)" if setup.can_center and not setup.is_centered else ""
        texts.append(
            f"{record['saturated']} of {n_hidden} hidden units are always on{rows}: they carry no features. "
            f"Lower the learning rate{center}."
        )
    if _drifts(record, past):
        steps = " or add steps" if setup.has_steps else ""
        texts.append(f"Positive and negative free energies drift apart: lower the learning rate{steps}.")
    if record.get("r_hat", 1.0) > 1.5 and record.get("n_draws", 0) >= 20:
        rest = "add temperatures" if setup.is_tempered else "use TemperedPCD"
        texts.append(f"The chains do not mix: add steps, lower the learning rate, or {rest}.")
    if record.get("log_z_error", 0.0) > 1.0:
        smoother = "" if setup.is_averaged else "Their average is easier to follow (ParameterAverage). "
        texts.append(
            "The running log-likelihood is known only to a nat or worse: the particles that follow the parameters "
            f"from epoch to epoch lost a mode, or are slow to forget. {smoother}Score the model at its end "
            "(log_likelihood)."
        )
    gap = record.get("free_energy_gap")
    if gap is not None and len(past) >= 5 and gap < -0.05 * abs(record.get("free_energy", 1.0)):
        texts.append(
            "Training data have much lower free energy than validation data: the model over-fits. "
            f"Stop earlier, {'raise the' if setup.decays else 'add'} weight decay, or use fewer hidden units."
        )
    return texts


def _revive(setup: Setup) -> str:
    """Return what may bring dead units back, of what the run has."""
    causes = [name for name, has in (("weight decay", setup.decays), ("sparsity", setup.is_sparse)) if has]
    if causes:
        return f"lower the {' or the '.join(causes)}"
    center = "center the gradient (Centering), " if setup.can_center and not setup.is_centered else ""
    return f"lower the learning rate, {center}or use fewer hidden units"


def _drifts(record: Record, past: Sequence[Record]) -> bool:
    """Return whether the contrast of the phases has moved away from zero for five epochs and is large."""
    contrasts = [r["contrast"] for r in [*past[-4:], record] if "contrast" in r]
    if len(contrasts) < 5:
        return False
    sizes = [abs(c) for c in contrasts]
    growing = all(a < b for a, b in zip(sizes, sizes[1:], strict=False))
    return growing and sizes[-1] > 0.2 * abs(record.get("free_energy", 1.0))
