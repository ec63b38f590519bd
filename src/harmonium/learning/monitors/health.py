"""The health of a training run, in plain words."""

from __future__ import annotations

from collections.abc import Sequence

from harmonium.learning.history import Record


class HealthWarning(UserWarning):
    """Something about the training looks wrong; the message says what and what to do."""


def messages(record: Record, past: Sequence[Record]) -> list[str]:
    """Return what a doctor would say about the newest metrics, given the earlier ones."""
    texts = []
    n_hidden = record.get("n_hidden")
    if record.get("dead", 0):
        texts.append(f"{record['dead']} of {n_hidden} hidden units never fire: lower the weight decay or the sparsity.")
    if record.get("saturated", 0) > 0.2 * (n_hidden or 1):
        texts.append(
            f"{record['saturated']} of {n_hidden} hidden units are always on: they carry no features. "
            "Lower the learning rate, or center the gradient (Centering)."
        )
    if _drifts(record, past):
        texts.append("Positive and negative free energies drift apart: lower the learning rate or add steps.")
    if record.get("r_hat", 1.0) > 1.5 and record.get("n_draws", 0) >= 20:
        texts.append("The chains do not mix: add steps, lower the learning rate, or use TemperedPCD.")
    if record.get("log_z_error", 0.0) > 1.0:
        texts.append(
            "The running log-likelihood is known only to a nat or worse: the parameters move too fast to be followed. "
            "Average them (ParameterAverage), or score the model at the end (log_likelihood)."
        )
    gap = record.get("free_energy_gap")
    if gap is not None and len(past) >= 5 and gap < -0.05 * abs(record.get("free_energy", 1.0)):
        texts.append(
            "Training data have much lower free energy than validation data: the model over-fits. "
            "Stop earlier, add weight decay, or use fewer hidden units."
        )
    return texts


def _drifts(record: Record, past: Sequence[Record]) -> bool:
    """Return whether the contrast of the phases has moved away from zero for five epochs and is large."""
    contrasts = [r["contrast"] for r in [*past[-4:], record] if "contrast" in r]
    if len(contrasts) < 5:
        return False
    sizes = [abs(c) for c in contrasts]
    growing = all(a < b for a, b in zip(sizes, sizes[1:], strict=False))
    return growing and sizes[-1] > 0.2 * abs(record.get("free_energy", 1.0))
