"""The means of units as a layer of a network."""

from __future__ import annotations

from torch import Tensor, nn

from harmonium.units import Units


class Mean(nn.Module):
    """`θ → E[x]` of some units: what a layer does where nothing is drawn; fields may come flat.

    >>> Mean(Bernoulli(2))(torch.zeros(1, 2))
    tensor([[0.5000, 0.5000]])
    """

    def __init__(self, units: Units) -> None:
        super().__init__()
        self.units = units

    def forward(self, field: Tensor) -> Tensor:
        """Return the means under fields, `(*batch, *shape)`."""
        shape = self.units.shape
        return self.units.mean(field if field.shape[-len(shape) :] == shape else field.unflatten(-1, shape))

    def __repr__(self) -> str:
        return f"Mean({self.units!r})"
