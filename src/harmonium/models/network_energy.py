"""What every energy made of a network shares: shapes, starting points, a base measure."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from harmonium.draws import draw_uniform
from harmonium.models.stored import Stored
from harmonium.types import check_dtype, check_shape


class NetworkEnergy(Stored, ABC):
    """`p(x) = e^{-F(x)}/Z` with F computed by a network, on `x` of a given `shape`.

    `shape` is that of one sample; a network that has an attribute `shape` need not be told. `box` is where chains
    start, uniformly (step 3 of section 6.3 of Tomczak's chapter); the law itself is not confined to it. `base_std`
    adds `‖x‖²/2·base_std²` to the energy, a Gaussian base measure: a network that grows more slowly than a square has
    a finite Z then.
    """

    def __init__(
        self,
        net: nn.Module,
        shape: int | Sequence[int] | None = None,
        *,
        box: tuple[float, float] = (-1.0, 1.0),
        base_std: float | None = None,
    ) -> None:
        super().__init__()
        shape = getattr(net, "shape", None) if shape is None else shape
        if shape is None:
            raise ValueError(
                f"The shape of one sample is not known, and {type(net).__name__} has no attribute `shape` to say it. "
                f"Give it: {type(self).__name__}(net, shape=(1, 28, 28))."
            )
        if not box[0] < box[1] or (base_std is not None and not base_std > 0):
            raise ValueError(f"`box` must rise and `base_std` be positive or None. Got box={box}, base_std={base_std}.")
        self.net = net
        self.shape: tuple[int, ...] = (shape,) if isinstance(shape, int) else tuple(shape)
        self.box = box
        self.base_std = base_std
        # Looked up once, since chains ask at every step; in a list, since it is the network's parameter and not ours.
        self._first = list(itertools.islice(net.parameters(), 1))

    @abstractmethod
    def free_energy(self, x: Tensor) -> Tensor:
        """Return `F(x)`, `(*batch,)`."""

    def outputs(self, x: Tensor) -> Tensor:
        """Return what the network gives for each sample, `(*batch, *outputs)`; it sees one batch axis."""
        check_shape(x, self.shape, name="x", layer="shape", owner=self.shape)
        for parameter in self._first:
            check_dtype(x, parameter, name="x")
        if x.ndim == 1 + len(self.shape):
            return self.net(x)
        values = self.net(x.reshape(-1, *self.shape))
        return values.reshape(*x.shape[: x.ndim - len(self.shape)], *values.shape[1:])

    def base_energy(self, x: Tensor) -> Tensor | float:
        """Return `‖x‖²/2·base_std²`, or 0 without a base measure."""
        if self.base_std is None:
            return 0.0
        return x.square().flatten(x.ndim - len(self.shape)).sum(-1) / (2 * self.base_std**2)

    @torch.no_grad()
    def initial(self, n: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw `n` points to start chains from, uniform in the box."""
        some = next(self.parameters(), torch.empty(0))
        like = torch.empty(n, *self.shape, dtype=some.dtype, device=some.device)
        low, high = self.box
        return draw_uniform(like, generator=generator).mul_(high - low).add_(low)

    def extra_repr(self) -> str:
        """Return the shape and the base measure for `repr`."""
        return f"shape={self.shape}" + ("" if self.base_std is None else f", base_std={self.base_std}")
