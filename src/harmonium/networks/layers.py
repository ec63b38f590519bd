"""Layers of networks with their first weights drawn from a generator, smooth activations, spectral normalization."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.nn.utils import parametrize

from harmonium.draws import draw_normal, draw_uniform
from harmonium.memory import check_parameter

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "silu": nn.SiLU,
    "gelu": nn.GELU,
    "softplus": nn.Softplus,
    "elu": nn.ELU,
    "tanh": nn.Tanh,
}
"""Activations with a slope that does not jump: chains follow the slope of the energy."""


def activation_of(name: str) -> nn.Module:
    """Return an activation by its name."""
    if name not in ACTIVATIONS:
        raise ValueError(f"`activation` must be one of {', '.join(ACTIVATIONS)}: smooth ones. Got {name!r}.")
    return ACTIVATIONS[name]()


def linear(n_inputs: int, n_outputs: int, *, spectral: bool = False, generator: torch.Generator | None) -> nn.Linear:
    """Return a dense layer, its weights uniform in `±√(3/n_inputs)` (variance 1/n_inputs) and its biases zero."""
    check_parameter((n_outputs, n_inputs))
    layer = nn.utils.skip_init(nn.Linear, n_inputs, n_outputs)
    _fill(layer, n_inputs, spectral, generator)
    return layer


def conv(
    n_inputs: int,
    n_outputs: int,
    kernel: int,
    *,
    stride: int = 1,
    spectral: bool = False,
    generator: torch.Generator | None,
) -> nn.Conv2d:
    """Return a convolution padded by half its kernel, its weights uniform with variance 1/fan-in, its biases zero."""
    check_parameter((n_outputs, n_inputs, kernel, kernel))
    layer = nn.utils.skip_init(nn.Conv2d, n_inputs, n_outputs, kernel, stride=stride, padding=kernel // 2)
    _fill(layer, n_inputs * kernel**2, spectral, generator)
    return layer


def redraw(network: nn.Sequential, *, generator: torch.Generator | None = None) -> nn.Sequential:
    """Draw all weights of a network anew, as `linear` and `conv` do, its biases at zero; return it.

    >>> from harmonium.networks.layers import redraw
    >>> redraw(RBM(Bernoulli(6), Bernoulli(4)).to_network(3))[0].bias
    Parameter containing:
    tensor([0., 0., 0., 0.], requires_grad=True)
    """
    for module in network:
        if isinstance(module, nn.Linear | nn.Conv2d):
            _fill(module, module.weight[0].numel(), False, generator)
    return network


@torch.no_grad()
def _fill(layer: nn.Linear | nn.Conv2d, fan_in: int, spectral: bool, generator: torch.Generator | None) -> None:
    layer.weight.copy_((2 * draw_uniform(layer.weight, generator=generator) - 1) * math.sqrt(3 / fan_in))
    if layer.bias is not None:
        layer.bias.zero_()
    if spectral:
        parametrize.register_parametrization(layer, "weight", _Spectral(layer.weight, generator))


class _Spectral(nn.Module):
    """`W / ‖W‖₂`, the norm by one step of power iteration each time in training (Miyato et al. 2018)."""

    u: Tensor

    def __init__(self, weight: Tensor, generator: torch.Generator | None) -> None:
        super().__init__()
        rows = weight.detach().flatten(1)
        self.register_buffer("u", normalize(draw_normal(rows[:, 0], generator=generator), dim=0))
        for _ in range(20):
            self._iterate(rows)

    @torch.no_grad()
    def _iterate(self, rows: Tensor) -> None:
        self.u.copy_(normalize(rows @ normalize(rows.t() @ self.u, dim=0), dim=0))

    def forward(self, weight: Tensor) -> Tensor:
        """Return the weight divided by its largest singular value."""
        rows = weight.flatten(1)
        if self.training:
            self._iterate(rows.detach())
        u = self.u.clone()  # the buffer may move before the gradient is taken
        v = normalize(rows.detach().t() @ u, dim=0)
        return weight / (u @ rows @ v)
