"""The weights that a machine looks at its data through."""

from __future__ import annotations

from torch import Tensor, nn

from harmonium.models.machine import BoltzmannMachine


def data_weight(model: nn.Module) -> Tensor:
    """Return the weights of the first coupling between the data layer and another (or itself).

    A dense coupling gives visible × hidden, a convolution hidden channels × visible channels × kernel × kernel.
    """
    if isinstance(model, BoltzmannMachine):
        for layers, coupling in model.terms:
            weight = getattr(coupling, "weight", None)
            if len(layers) == 2 and model.data_layer in layers and isinstance(weight, Tensor):
                transposed = weight.ndim == 2 and layers[0] != model.data_layer
                return (weight.t() if transposed else weight).detach()
    raise TypeError(
        f"Weights can be shown of a Boltzmann machine with a coupling to its data layer. Got {type(model).__name__}. "
        "Show its free energy or its samples instead."
    )
