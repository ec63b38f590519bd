"""What a line through the past says: the baseline of models of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

RIDGES = (0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0)


@dataclass(frozen=True, eq=False)
class LinearAutoregression:
    """The least-squares prediction `v_t = b + Σ_k A_k v_{t-k}` with a ridge, chosen on validation data.

    >>> film = torch.arange(24.0).reshape(2, 12, 1)
    >>> law = LinearAutoregression.fitted(film, film, order=2, ridges=(1e-6,))
    >>> (law.predict(film) - film[:, 2:]).abs().max() < 1e-3
    tensor(True)
    """

    order: int
    ridge: float
    weight: Tensor
    bias: Tensor

    @classmethod
    def fitted(
        cls, train: Tensor, valid: Tensor, order: int, *, ridges: Sequence[float] = RIDGES
    ) -> LinearAutoregression:
        """Fit sequences `(n, T, *frame)`; the ridge with the smallest squared error of `valid` is taken."""
        past, frame = windows(train, order)
        mean, target = past.mean(0), frame.mean(0)
        past, frame = past - mean, frame - target
        gram, cross = past.T @ past, past.T @ frame
        best: tuple[float, LinearAutoregression] | None = None
        for ridge in ridges:
            weight = torch.linalg.solve(gram + ridge * torch.eye(len(gram), dtype=gram.dtype), cross)
            law = cls(order, ridge, weight, target - mean @ weight)
            error = law.squared_error(valid)
            if best is None or error < best[0]:
                best = (error, law)
        if best is None:
            raise ValueError("`ridges` must hold at least one value to try.")
        return best[1]

    def predict(self, sequences: Tensor) -> Tensor:
        """Return the prediction of each frame with a whole past, `(n, T - order, *frame)`."""
        past, _ = windows(sequences, self.order)
        flat = past @ self.weight + self.bias
        return flat.reshape(len(sequences), -1, *sequences.shape[2:]).to(sequences)

    def squared_error(self, sequences: Tensor) -> float:
        """Return the mean over frames of the squared error summed over a frame."""
        past, frame = windows(sequences, self.order)
        return (past @ self.weight + self.bias - frame).square().sum(1).mean().item()


def windows(sequences: Tensor, order: int) -> tuple[Tensor, Tensor]:
    """Return the flat pasts `(rows, order · n)` and frames `(rows, n)` of sequences `(n, T, *frame)`, in float64."""
    x = sequences.double().flatten(2)
    n = x.shape[1] - order
    if n < 1:
        raise ValueError(f"Sequences must have more than order={order} frames. Got {x.shape[1]}.")
    past = torch.stack([x[:, lag : lag + n] for lag in range(order)], 2)
    return past.reshape(-1, order * x.shape[2]), x[:, order:].reshape(-1, x.shape[2])
