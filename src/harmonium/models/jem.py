"""A classifier as a generative model."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from harmonium.models.frozen import frozen
from harmonium.models.given_class import GivenClass
from harmonium.models.network_energy import NetworkEnergy


class JEM(NetworkEnergy):
    """One network `f: x → K values` is a joint density: `E(x, y) = -f(x)[y]` (eq. 6.5 of Tomczak's chapter).

    Its marginal has `F(x) = -LogSumExp_y f(x)[y]` (eq. 6.13), its conditional is `p(y|x) = softmax f(x)` (eq. 6.16):
    the joint energy model of Grathwohl et al. 2020. `shape` is that of one sample, `box` where chains start,
    `base_std` the width of a Gaussian base measure, which adds the same to every class.

    >>> jem = JEM(MLP(64, 10))
    >>> x = torch.zeros(5, 64)
    >>> jem.free_energy(x).shape, jem.energy(x, torch.arange(5)).shape, jem.predict_proba(x).shape
    (torch.Size([5]), torch.Size([5]), torch.Size([5, 10]))
    """

    def __init__(
        self,
        net: nn.Module,
        shape: int | Sequence[int] | None = None,
        n_classes: int | None = None,
        *,
        box: tuple[float, float] = (-1.0, 1.0),
        base_std: float | None = None,
    ) -> None:
        super().__init__(net, shape, box=box, base_std=base_std)
        self.n_classes: int | None = getattr(net, "n_outputs", None) if n_classes is None else n_classes

    def class_logits(self, x: Tensor) -> Tensor:
        """Return `f(x)`, `(*batch, n_classes)`."""
        values = self.outputs(x)
        n = self.n_classes
        if values.ndim != x.ndim - len(self.shape) + 1 or (n is not None and values.shape[-1] != n):
            raise ValueError(
                f"The network of a JEM must return (*batch, {n or 'n_classes'}). Got {tuple(values.shape)} for x of "
                f"shape {tuple(x.shape)}. Use NeuralEBM for a network that returns one energy."
            )
        return values

    def free_energy(self, x: Tensor) -> Tensor:
        """Return `F(x) = -LogSumExp_y f(x)[y]` (eq. 6.13)."""
        return self.free_energy_of(self.class_logits(x), x)

    def free_energy_of(self, logits: Tensor, x: Tensor) -> Tensor:
        """Return `F(x)` from class values that are known already."""
        return self.base_energy(x) - logits.logsumexp(-1)

    def energy(self, x: Tensor, y: Tensor | int) -> Tensor:
        """Return `E(x, y) = -f(x)[y]` (eq. 6.5); y is one class, or one for each sample."""
        logits = self.class_logits(x)
        index = torch.as_tensor(y, device=x.device).expand(logits.shape[:-1]).long()
        if index.numel() and (int(index.min()) < 0 or int(index.max()) >= logits.shape[-1]):
            raise ValueError(f"Classes must lie in 0..{logits.shape[-1] - 1}. Got {int(index.min())}..{index.max()}.")
        return self.base_energy(x) - logits.gather(-1, index.unsqueeze(-1)).squeeze(-1)

    def given_class(self, y: Tensor | int) -> GivenClass:
        """Return the model `p(x | y)` of one class, or of one class for each chain.

        >>> jem = JEM(MLP(64, 10))
        >>> sample(jem.given_class(torch.arange(10)), 10, n_steps=5).shape
        torch.Size([10, 64])
        """
        return GivenClass(self, y)

    @torch.no_grad()
    def predict_proba(self, x: Tensor) -> Tensor:
        """Return `p(y|x) = softmax f(x)` (eq. 6.16), in evaluation mode."""
        with frozen(self):
            return self.class_logits(x).softmax(-1)

    @torch.no_grad()
    def classify(self, x: Tensor) -> Tensor:
        """Return the most probable class of each sample, in evaluation mode."""
        with frozen(self):
            return self.class_logits(x).argmax(-1)
