"""The centered gradient of a convolution."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import conv2d, conv_transpose2d

from harmonium.couplings import Bias, Conv2d
from harmonium.types import gradient


@torch.no_grad()
def center_convolution(coupling: Conv2d, ends: tuple[Bias, Bias], means: tuple[Tensor, Tensor]) -> None:
    """Center the gradients of a convolution and of the biases at its ends, in place (Melchior et al. 2016).

    With `b = b̃ - L_λ W` and `c = c̃ - L_μ W`, where `L` is the field that the means of the other layer make, averaged
    over the places that share a bias: `∇W' = ∇W - L_λᵀ∇b - L_μᵀ∇c`, `∇b' = ∇b - L_λ∇W'`, `∇c' = ∇c - L_μ∇W'`. The
    transposes are the closed-form gradient of the convolution at the means. A mean is one for each channel.
    """
    lower, upper = ends
    mu, lam = (_flat_image(mean, bias) for mean, bias in zip(means, ends, strict=True))
    for v, h in ((_shares(lower), lam), (mu, _shares(upper))):
        coupling.accumulate_grad(-1.0, v[None], h[None])
    slope = gradient(coupling.weight)
    stride, padding = coupling.stride, coupling.padding
    down = conv_transpose2d(lam[None], slope, stride=stride, padding=padding)[0]
    up = conv2d(mu[None], slope, stride=stride, padding=padding)[0]
    gradient(lower.bias).sub_(_reduced(down, lower))
    gradient(upper.bias).sub_(_reduced(up, upper))


def _flat_image(mean: Tensor, bias: Bias) -> Tensor:
    """Return the mean of each channel at all of its places, where these share a bias."""
    image = mean.reshape(bias.shape)
    return image.mean((1, 2), keepdim=True).expand(bias.shape).contiguous() if bias.shared else image


def _shares(bias: Bias) -> Tensor:
    """Return the gradient of a bias dealt out to its places."""
    share = gradient(bias.bias)
    return (share * (share.numel() / torch.Size(bias.shape).numel())).expand(bias.shape).contiguous()


def _reduced(field: Tensor, bias: Bias) -> Tensor:
    """Return the average of a field over the places that share a bias."""
    return field.sum_to_size(bias.bias.shape) * (bias.bias.numel() / field.numel())
