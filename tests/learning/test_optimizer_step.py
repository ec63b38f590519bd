"""A bare step is the optimizer's step, and whoever looks on is still called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop
from torch.optim.optimizer import register_optimizer_step_post_hook

import harmonium.learning.optimizer_step as module
from harmonium.learning.optimizer_step import take_step

OPTIMIZERS: dict[str, Callable[[list[nn.Parameter]], Optimizer]] = {
    "SGD": lambda p: SGD(p, 0.1),
    "fused SGD": lambda p: SGD(p, 0.1, momentum=0.9, fused=True),
    "Nesterov": lambda p: SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda p: Adam(p, 0.1),
    "fused Adam": lambda p: Adam(p, 0.1, fused=True),
    "AdamW": lambda p: AdamW(p, 0.1, amsgrad=True),
    "RMSprop": lambda p: RMSprop(p, 0.1),
    "Adagrad": lambda p: Adagrad(p, 0.1),
}


def parameters() -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(1)
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in ((3, 4), (4,))]


def stepped(optimizer: Optimizer, step: Callable[[Optimizer], Any], n_steps: int = 4) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    found = [p for group in optimizer.param_groups for p in group["params"]]
    for _ in range(n_steps):
        for p in found:
            p.grad = torch.randn(p.shape, generator=generator)
        step(optimizer)
    return [p.detach() for p in found]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_bare_steps_are_the_steps(name: str) -> None:
    ours = stepped(OPTIMIZERS[name](parameters()), take_step)
    theirs = stepped(OPTIMIZERS[name](parameters()), lambda optimizer: optimizer.step())
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    fewer = stepped(OPTIMIZERS[name](parameters()), take_step, n_steps=3)
    assert not any(torch.equal(a, b) for a, b in zip(ours, fewer, strict=True))


def test_the_frames_are_left_out_only_where_nobody_looks_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a step that counts its calls is not called at all without hooks."""
    framed: list[str] = []
    optimizer = SGD(parameters(), 0.1)
    monkeypatch.setattr(SGD, "step", lambda self: framed.append("framed"))
    monkeypatch.setattr(module, "_bare_step", lambda kind: lambda self: framed.append("bare"))
    take_step(optimizer)
    handle = optimizer.register_step_pre_hook(lambda *_: None)
    take_step(optimizer)
    handle.remove()
    take_step(optimizer)
    assert framed == ["bare", "framed", "bare"]


@pytest.mark.parametrize("register", ["register_step_pre_hook", "register_step_post_hook"])
def test_hooks_are_called(register: str) -> None:
    calls: list[int] = []
    optimizer = SGD(parameters(), 0.1)
    getattr(optimizer, register)(lambda *_: calls.append(1))
    stepped(optimizer, take_step, n_steps=3)
    assert len(calls) == 3


def test_hooks_of_all_optimizers_are_called() -> None:
    calls: list[int] = []
    handle = register_optimizer_step_post_hook(lambda *_: calls.append(1))
    try:
        stepped(SGD(parameters(), 0.1), take_step, n_steps=3)
    finally:
        handle.remove()
    assert len(calls) == 3


def test_a_schedule_sees_the_steps() -> None:
    """PyTorch warns if a schedule moves before the optimizer has: warnings are errors here."""
    optimizer = SGD(parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    stepped(optimizer, take_step, n_steps=1)
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.05)


def test_an_optimizer_of_your_own_is_stepped_as_it_is() -> None:
    calls: list[int] = []

    class Counted(SGD):
        def step(self, closure: Any = None) -> Any:
            calls.append(1)
            return super().step(closure)

    ours = stepped(Counted(parameters(), 0.1), take_step)
    assert len(calls) == 4
    assert all(torch.equal(a, b) for a, b in zip(ours, stepped(SGD(parameters(), 0.1), take_step), strict=True))


def test_gradients_stay_on_where_they_were_on() -> None:
    assert torch.is_grad_enabled()
    stepped(SGD(parameters(), 0.1), take_step)
    assert torch.is_grad_enabled()
