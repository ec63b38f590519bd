"""A step of an optimizer without the frames around it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from torch.optim import Optimizer, optimizer

from harmonium.types import without_gradient


@without_gradient
def take_step(of: Optimizer) -> None:
    """Do what `optimizer.step()` does, without what PyTorch wraps around it for its profiler, compiler and hooks.

    Between the products of a small model these frames cost as much as the step itself. Whoever uses them keeps them: an
    optimizer with hooks, with a `step` of its own (a schedule puts one there), or from outside PyTorch.
    """
    kind: Any = type(of)
    bare = _bare_step(kind)
    if bare is None or is_watched(of):
        of.step()
    else:
        bare(of)


@functools.cache
def _bare_step(kind: type[Optimizer]) -> Callable[[Optimizer], Any] | None:
    return inspect.unwrap(kind.step) if kind.__module__.startswith("torch.optim.") else None


def is_watched(of: Optimizer) -> bool:
    """Return whether somebody is called at a step: yes, too, where PyTorch has given its hooks other names."""
    own = of.__dict__
    return bool(
        "step" in own
        or own.get("_optimizer_step_pre_hooks", True)
        or own.get("_optimizer_step_post_hooks", True)
        or getattr(optimizer, "_global_optimizer_pre_hooks", True)
        or getattr(optimizer, "_global_optimizer_post_hooks", True)
        or of.defaults.get("differentiable", False)
    )
