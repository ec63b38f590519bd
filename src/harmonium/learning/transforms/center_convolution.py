"""The centered gradient of a convolution, and the fields of its means."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import conv2d, conv_transpose2d

from harmonium.couplings import Bias, Conv2d
from harmonium.types import gradient


def center_filters(coupling: Conv2d, ends: tuple[Bias, Bias], means: tuple[Tensor, Tensor]) -> None:
    """Center the gradient of a convolution in place (Melchior et al. 2016): `∇W' = ∇W - L_λᵀ∇b - L_μᵀ∇c`.

    `L` is the field that the means of the other layer make, averaged over the places that share a bias. The transposes
    are the closed-form gradient of the convolution at the means. A mean is one for each channel.
    """
    lower, upper = ends
    mu, lam = (_flat_image(mean, bias) for mean, bias in zip(means, ends, strict=True))
    for v, h in ((_shares(lower), lam), (mu, _shares(upper))):
        coupling.accumulate_grad(-1.0, v[None], h[None])


def fields_of_means(
    coupling: Conv2d, filters: Tensor, ends: tuple[Bias, Bias], means: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Return `L_λ W` and `L_μ W`: the fields on both layers that filters W make at the means of the other."""
    mu, lam = (_flat_image(mean, bias) for mean, bias in zip(means, ends, strict=True))
    stride, padding = coupling.stride, coupling.padding
    down = conv_transpose2d(lam[None], filters, stride=stride, padding=padding)[0]
    up = conv2d(mu[None], filters, stride=stride, padding=padding)[0]
    return _reduced(down, ends[0]), _reduced(up, ends[1])


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
