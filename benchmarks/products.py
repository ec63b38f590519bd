"""The floor: the bare products that a piece of work cannot do without, in preallocated buffers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.runner import Contender
from harmonium.products import ONEDNN, product


def batch_sizes(n_rows: int, batch_size: int) -> list[int]:
    """Return the sizes of the batches of an epoch: the last may be smaller."""
    full, rest = divmod(n_rows, batch_size)
    return [batch_size] * full + [rest] * bool(rest)


def contrastive_epoch(n_visible: int, n_hidden: int, n_rows: int, batch_size: int) -> Callable[[], None]:
    """Return a function that does the five products of each CD-1 update of an epoch.

    Up, down and up again, and the two outer products of the gradient, the second added in place.
    """
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(n_visible, n_hidden, generator=generator) * 0.01
    v = torch.rand(batch_size, n_visible, generator=generator).round_()
    h = torch.rand(batch_size, n_hidden, generator=generator)
    down, up, gradient = torch.empty_like(v), torch.empty_like(h), torch.empty_like(weight)
    sizes = batch_sizes(n_rows, batch_size)

    def run() -> None:
        for n in sizes:
            torch.mm(v[:n], weight, out=up[:n])
            torch.mm(v[:n].t(), h[:n], out=gradient)
            torch.mm(h[:n], weight.t(), out=down[:n])
            torch.mm(down[:n], weight, out=up[:n])
            gradient.addmm_(down[:n].t(), up[:n], alpha=-1.0)

    return run


def contrastive_epoch_by_onednn(n_visible: int, n_hidden: int, n_rows: int, batch_size: int) -> Callable[[], None]:
    """Return a function that does the same products by the library that `harmonium.products` chose here."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(n_visible, n_hidden, generator=generator) * 0.01
    v = torch.rand(batch_size, n_visible, generator=generator).round_()
    h = torch.rand(batch_size, n_hidden, generator=generator)
    sizes = batch_sizes(n_rows, batch_size)

    def run() -> None:
        for n in sizes:
            product(v[:n], weight)
            gradient = product(v[:n].t(), h[:n])
            down = product(h[:n], weight.t())
            up = product(down, weight)
            gradient.sub_(product(down.t(), up))

    return run


def gibbs_sweeps_by_onednn(n_visible: int, n_hidden: int, n_chains: int, n_sweeps: int) -> Callable[[], None]:
    """Return a function that does the products of sweeps by the library that `harmonium.products` chose here."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(n_visible, n_hidden, generator=generator) * 0.01
    v = torch.rand(n_chains, n_visible, generator=generator).round_()
    h = torch.rand(n_chains, n_hidden, generator=generator).round_()

    def run() -> None:
        for _ in range(n_sweeps):
            product(h, weight.t())
            product(v, weight)

    return run


def by_onednn(run: Callable[[], None]) -> list[Contender]:
    """Return the bare products by oneDNN as a contender, where Harmonium makes them by it."""
    return [Contender("bare oneDNN", run, "the floor's products by oneDNN, which ours are made by here")] * ONEDNN


def gibbs_sweeps(n_visible: int, n_hidden: int, n_chains: int, n_sweeps: int) -> Callable[[], None]:
    """Return a function that does the two products, down and up, of each sweep."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(n_visible, n_hidden, generator=generator) * 0.01
    v = torch.rand(n_chains, n_visible, generator=generator).round_()
    h = torch.rand(n_chains, n_hidden, generator=generator).round_()
    down, up = torch.empty_like(v), torch.empty_like(h)

    def run() -> None:
        for _ in range(n_sweeps):
            torch.mm(h, weight.t(), out=down)
            torch.mm(v, weight, out=up)

    return run


def convolution_updates(
    lower: tuple[int, int, int],
    upper: tuple[int, int, int],
    *,
    kernel: int,
    stride: int,
    padding: int,
    batch_size: int,
    n_updates: int,
) -> Callable[[], None]:
    """Return a function that does the five convolutions of each CD-1 update, channels last.

    Two forward, one transposed, and the two weight gradients.
    """
    generator = torch.Generator().manual_seed(0)

    def last(x: Tensor) -> Tensor:
        return x.contiguous(memory_format=torch.channels_last)

    weight = last(torch.randn(upper[0], lower[0], kernel, kernel, generator=generator) * 0.01)
    v = last(torch.rand(batch_size, *lower, generator=generator).round_())
    h = last(torch.rand(batch_size, *upper, generator=generator))
    pair = [stride, stride], [padding, padding]

    def weight_gradient(output: Tensor, image: Tensor) -> None:
        torch.ops.aten.convolution_backward(
            output, image, weight, None, *pair, [1, 1], False, [0, 0], 1, [False, True, False]
        )

    @torch.no_grad()
    def run() -> None:
        for _ in range(n_updates):
            torch.conv2d(v, weight, stride=stride, padding=padding)
            weight_gradient(h, v)
            torch.conv_transpose2d(h, weight, stride=stride, padding=padding)
            torch.conv2d(v, weight, stride=stride, padding=padding)
            weight_gradient(h, v)

    return run
