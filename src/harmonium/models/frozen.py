"""A model that only answers questions for a while."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from torch import nn


@dataclass
class _Held:
    """How a model was before the first of those who hold it now, and how many they are."""

    modes: list[tuple[nn.Module, bool]]
    learning: list[nn.Parameter]
    holders: int = 0


_HELD: WeakKeyDictionary[nn.Module, _Held] = WeakKeyDictionary()
_LOCK = threading.Lock()


@contextmanager
def frozen(model: object) -> Iterator[None]:
    """Hold a model in evaluation mode with its parameters frozen, and put both back as they were, come what may.

    Each module gets its own mode back, and a parameter that was frozen before stays so. Several threads may hold one
    model: the first finds out how it was, the last puts it back. What is not an `nn.Module` is left alone.

    >>> from harmonium.models.frozen import frozen
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Dropout())
    >>> with frozen(net):
    ...     net[1].training, net[0].weight.requires_grad
    (False, False)
    >>> net[1].training, net[0].weight.requires_grad
    (True, True)
    """
    if not isinstance(model, nn.Module):
        yield
        return
    _hold(model)
    try:
        yield
    finally:
        _let_go(model)


def _hold(model: nn.Module) -> None:
    with _LOCK:
        held = _HELD.get(model)
        if held is None:
            modes = [(module, module.training) for module in model.modules()]
            held = _HELD[model] = _Held(modes, [p for p in model.parameters() if p.requires_grad])
            for module, _ in held.modes:
                module.training = False
            for parameter in held.learning:
                parameter.requires_grad_(False)
        held.holders += 1


def _let_go(model: nn.Module) -> None:
    with _LOCK:
        held = _HELD[model]
        held.holders -= 1
        if not held.holders:
            del _HELD[model]
            for module, mode in held.modes:
                module.training = mode
            for parameter in held.learning:
                parameter.requires_grad_(True)
