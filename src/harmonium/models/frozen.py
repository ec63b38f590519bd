"""A model that only answers questions for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def frozen(model: object) -> Iterator[None]:
    """Hold a model in evaluation mode with its parameters frozen, and put both back as they were, come what may.

    Each module gets its own mode back, and a parameter that was frozen before stays so. What is not an `nn.Module` is
    left alone.

    >>> from harmonium.models.frozen import frozen
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Dropout())
    >>> with frozen(net):
    ...     net[1].training, net[0].weight.requires_grad
    (False, False)
    >>> net[1].training, net[0].weight.requires_grad
    (True, True)
    """
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    modes = [(module, module.training) for module in modules]
    learning = [p for p in model.parameters() if p.requires_grad] if isinstance(model, nn.Module) else []
    try:
        for module in modules:
            module.training = False
        for parameter in learning:
            parameter.requires_grad_(False)
        yield
    finally:
        for module, mode in modes:
            module.training = mode
        for parameter in learning:
            parameter.requires_grad_(True)
