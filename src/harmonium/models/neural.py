"""Any network as an energy."""

from __future__ import annotations

from torch import Tensor

from harmonium.models.network_energy import NetworkEnergy


class NeuralEBM(NetworkEnergy):
    """`p(x) = e^{-E(x)}/Z` with `E(x) = net(x)`, for any module that returns one number a sample.

    `shape` is that of one sample, `box` where chains start, `base_std` the width of a Gaussian base measure
    (`NetworkEnergy` says more).

    >>> model = NeuralEBM(MLP(2), base_std=2.0)
    >>> model.free_energy(torch.zeros(5, 2)).shape, sample(model, 3, n_steps=5).shape
    (torch.Size([5]), torch.Size([3, 2]))
    """

    def free_energy(self, x: Tensor) -> Tensor:
        """Return `E(x)`, `(*batch,)`."""
        values = self.outputs(x)
        batch = x.shape[: x.ndim - len(self.shape)]
        if values.shape == (*batch, 1):
            values = values.squeeze(-1)
        if values.shape != batch:
            raise ValueError(
                f"The network of a NeuralEBM must return one energy a sample, (*batch,) or (*batch, 1). Got "
                f"{tuple(values.shape)} for x of shape {tuple(x.shape)}. Use JEM for a network that returns classes."
            )
        return values if self.base_std is None else values + self.base_energy(x)
