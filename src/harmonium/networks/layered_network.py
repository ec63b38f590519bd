"""What the networks that come with the package share."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn


class LayeredNetwork(nn.Module):
    """`x → layers(x)`, one layer after the other, with what `NetworkEnergy` asks of a network: `shape`, `n_outputs`.

    A subclass makes `layers`. `n_axes` is how many axes one sample must have, None for any number.
    """

    layers: nn.Sequential
    n_axes: int | None = None

    def __init__(self, shape: int | Sequence[int], n_outputs: int, *, activation: str, spectral: bool) -> None:
        super().__init__()
        self.shape: tuple[int, ...] = (shape,) if isinstance(shape, int) else tuple(shape)
        if self.n_axes is not None and len(self.shape) != self.n_axes:
            raise ValueError(f"`shape` must be (channels, height, width). Got {self.shape}. Try (1, 28, 28).")
        self.n_outputs, self.activation, self.spectral = n_outputs, activation, spectral

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, `(n, n_outputs)`."""
        return self.layers(x)
