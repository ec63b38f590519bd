"""The layers of any model by their names: what a batch may hold."""

from __future__ import annotations

from torch import nn

from harmonium.models.class_rbm import ClassRBM
from harmonium.models.dbn import DBN
from harmonium.models.jem import JEM
from harmonium.models.machine import BoltzmannMachine
from harmonium.models.scale_mixture import ScaleMixture

X, Y = "x", "y"
"""The layers of a neural energy or a network: the data, and the class of a joint model or of a classifier."""


def check_eager(model: object) -> None:
    """Raise for what `torch.compile` returned: it has one method, and a Boltzmann machine is asked for many."""
    if hasattr(model, "_orig_mod"):
        raise TypeError(
            "A model that torch.compile was called on is not taken: it would run as it is, uncompiled. Give the model "
            "itself, and compile the network inside a neural energy: JEM(torch.compile(network))."
        )


def machine_of(model: object) -> BoltzmannMachine | None:
    """Return the Boltzmann machine that learns: the model itself, or that of a scale mixture; None of other models."""
    inner = model.machine if isinstance(model, ScaleMixture) else model
    return inner if isinstance(inner, BoltzmannMachine) else None


def data_layer(model: object) -> str:
    """Return the name of the layer that a bare tensor stands for: `"x"` where a model does not name it.

    >>> from harmonium.models.layers import data_layer
    >>> data_layer(RBM(Bernoulli(3), Bernoulli(2)))
    'visible'
    """
    check_eager(model)
    return model.data_layer if isinstance(model, BoltzmannMachine | DBN) else X


def layers_of(model: object) -> tuple[str, ...]:
    """Return the names of the layers that a state of the model may hold, the data layer first."""
    if isinstance(model, BoltzmannMachine):
        return (model.data_layer, *(name for name in model.units if name != model.data_layer))
    return (X, Y) if isinstance(model, JEM | nn.Sequential) else (data_layer(model),)


def paired_layers(model: object) -> tuple[str, ...]:
    """Return the layers that a tuple of parts stands for: data, and labels where the model has a place for them."""
    if isinstance(model, ClassRBM):
        return model.data_layer, "label"
    return (X, Y) if isinstance(model, JEM | nn.Sequential) else (data_layer(model),)
