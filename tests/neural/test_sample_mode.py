"""`sample` holds a network in evaluation mode with its parameters frozen, and gives both back, come what may."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import harmonium as hm


class Careless(nn.Module):
    """A network with dropout that notes in what mode it is asked, and may break at some call."""

    shape = (3,)

    def __init__(self, n_outputs: int, breaks_at: int | None = None) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Dropout(0.5), nn.Linear(16, n_outputs))
        self.breaks_at = breaks_at
        self.seen: list[tuple[bool, bool, bool]] = []
        self.freezes = 0

    def forward(self, x: Tensor) -> Tensor:
        weight = self.layers[0].weight
        self.seen.append((self.training, self.layers[2].training, weight.requires_grad))
        if len(self.seen) == self.breaks_at:
            raise RuntimeError("broken on purpose")
        return self.layers(x)


MODELS = {
    "one energy": lambda net: hm.NeuralEBM(net, base_std=1.0),
    "classes": lambda net: hm.JEM(net, base_std=1.0),
    "given a class": lambda net: hm.JEM(net, base_std=1.0).given_class(1),
}
SAMPLERS = [None, hm.MALA(0.1), hm.Langevin(0.1)]


def restored(net: Careless) -> bool:
    """Say whether the modes and the parameters are as they were made, one frozen by its owner included."""
    return (
        net.training
        and net.layers.training
        and net.layers[2].training
        and not net.layers[1].training
        and [p.requires_grad for p in net.parameters()] == [True, True, True, False]
        and all(p.grad is None for p in net.parameters())
    )


def careless(name: str, breaks_at: int | None = None) -> Careless:
    net = Careless(1 if name == "one energy" else 4, breaks_at)
    net.layers[1].eval()
    net.layers[3].bias.requires_grad_(False)
    return net


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("sampler", SAMPLERS, ids=["default", "mala", "langevin"])
def test_evaluation_mode_is_set_and_restored(
    name: str, sampler: hm.samplers.Sampler | None, generator: torch.Generator
) -> None:
    net = careless(name)
    x = hm.sample(MODELS[name](net), 4, sampler=sampler, n_steps=5, generator=generator)
    assert len(net.seen) >= 5 and set(net.seen) == {(False, False, False)}
    assert restored(net)
    assert not x.requires_grad and x.grad_fn is None


@pytest.mark.parametrize("breaks_at", [1, 3])
@pytest.mark.parametrize("sampler", SAMPLERS, ids=["default", "mala", "langevin"])
def test_also_after_an_exception(
    breaks_at: int, sampler: hm.samplers.Sampler | None, generator: torch.Generator
) -> None:
    net = careless("classes", breaks_at)
    with pytest.raises(RuntimeError, match="on purpose"):
        hm.sample(hm.JEM(net), 4, sampler=sampler, n_steps=5, generator=generator)
    assert len(net.seen) == breaks_at and restored(net)


def test_also_when_a_looker_on_breaks(generator: torch.Generator) -> None:
    net = careless("classes")

    def look(i: int, info: object) -> None:
        raise KeyError(i)

    with pytest.raises(KeyError):
        hm.sample(hm.JEM(net), 4, n_steps=5, generator=generator, on_step=look)
    assert restored(net)


def test_dropout_would_show(generator: torch.Generator) -> None:
    """The negative control: steps taken by hand in training mode see dropout, so that equal chains part."""
    net = careless("classes")
    jem, sampler, x = hm.JEM(net, base_std=1.0), hm.Langevin(0.1, noise=0.0), torch.zeros(2, 3)
    torch.testing.assert_close(*hm.sample(jem, 2, sampler=sampler, n_steps=5, start=x, generator=generator))
    state = sampler.init(jem, x)
    for _ in range(5):
        state, _ = sampler.step(jem, state, generator=generator)
    assert not torch.allclose(*state["x"])
    assert restored(net)  # no gradient reached a parameter either


def test_parameters_are_frozen_once_for_all_steps(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    original = nn.Parameter.requires_grad_

    def counted(self: nn.Parameter, value: bool = True) -> Tensor:
        nonlocal calls
        calls += 1
        return original(self, value)

    jem = hm.JEM(hm.MLP(3, 4, hidden=(8,), generator=generator))
    monkeypatch.setattr(nn.Parameter, "requires_grad_", counted)
    counts = []
    for n_steps in (1, 20):
        calls = 0
        hm.sample(jem, 4, n_steps=n_steps, generator=generator)
        counts.append(calls)
    assert counts[0] == counts[1] == 2 * len(list(jem.parameters()))


def test_chains_may_start_anywhere(generator: torch.Generator) -> None:
    jem = hm.JEM(hm.MLP(3, 4, hidden=(8,), generator=generator))
    start = torch.full((4, 3), 7.0)
    x = hm.sample(jem, 4, sampler=hm.Langevin(1e-6, noise=0.0), n_steps=1, start=start, generator=generator)
    torch.testing.assert_close(x, start, atol=1e-3, rtol=0)
    given = torch.tensor([1.0, float("nan"), float("nan")])
    x = hm.sample(jem, 4, sampler=hm.Langevin(1e-6, noise=0.0), n_steps=1, start=start, given=given)
    torch.testing.assert_close(x, torch.tensor([1.0, 7.0, 7.0]).expand(4, 3), atol=1e-3, rtol=0)
    with pytest.raises(ValueError, match="`start` must hold one sample for each"):
        hm.sample(jem, 3, start=start)
