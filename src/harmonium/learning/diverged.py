"""What is said when training leaves the realm of numbers."""

from __future__ import annotations


class TrainingDiverged(ArithmeticError):  # noqa: N818  (the name says what happened)
    """Training met a value that is not finite; the model is back at its last good state."""
