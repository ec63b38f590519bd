"""The networks that a joint model can be made of, by their names."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from harmonium.networks import MLP, SmallConv, SmallResidual

NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "mlp": MLP,
    "small-conv": SmallConv,
    "small-residual": SmallResidual,
}
"""`network(shape, n_outputs, *, generator, **options)` by name; `model.options` are the options."""
