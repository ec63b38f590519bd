"""A start for a deep belief network at principal components, layer by layer."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import unfold

from harmonium.couplings import Conv2d
from harmonium.draws import draw_normal
from harmonium.laws.principal import PCAGaussian
from harmonium.models import DBN, RBM
from harmonium.units import Multinary

_N_BLOCKS, _INSIDE = 20_000, 0.01
_N_IMAGES, _CHUNK = 2500, 500


@torch.no_grad()
def principal_layers(dbn: DBN, x: Tensor, *, spread: float = 0.3, generator: torch.Generator | None = None) -> None:
    """Start a network of multinary units, untied, where every level holds principal components of the one below.

    Level l + 1 has coordinates `Fᵀ(v - v̄)`, `F = UQ`, with U the leading principal directions of level l over the data
    x and Q a random rotation, which gives all units about the same spread: the weights up are cF, those down
    F/(c s s'), with s and s' the slopes of the units above and below in the middle. To first order a code then comes
    back as its principal components, `v' - v̄ = UUᵀ(v - v̄)`, and what is learned is learned beyond these. c makes the
    standard deviation of `kθ` above `spread`. A convolution takes the blocks of pixels that its stride moves it by,
    the weights around the block are 0; Q then sums to 0 over the channels, since all places share one bias. It has many
    blocks in each image and looks at the first 2,500 of x; dense layers look at all of x.
    """
    _check(dbn)
    z, is_some = x[:_N_IMAGES].to(dbn[0].weight), len(x) > _N_IMAGES
    for i, (up, down) in enumerate(zip(dbn.recognition, dbn, strict=True)):
        if is_some and not isinstance(up.coupling, Conv2d):
            z, is_some = torch.cat([dbn.up(part.to(z), to=i) for part in x.split(_CHUNK)]), False
        v = dbn.enter(i, z)
        _start(up, down, v, spread, generator)  # type: ignore[arg-type]
        z = dbn.pass_up(i, dbn.hidden_mean(i, v))


def _start(up: RBM, down: RBM, v: Tensor, spread: float, generator: torch.Generator | None) -> None:
    conv, hidden, visible = up.coupling if isinstance(up.coupling, Conv2d) else None, up.hidden, up.visible
    n_units = hidden.shape[0]
    rows = v if conv is None else _blocks(v, conv, generator)
    n = min(n_units - (conv is not None), len(rows) - 1, rows.shape[1])
    principal = PCAGaussian.fit(rows, n)
    rotation = _rotation(n_units, n, conv is not None, v, generator)
    directions = principal.components.mT @ rotation
    low, high = visible.bounds()
    inside = _INSIDE * (high - low)
    shared = up.graph.biases["visible"].averaged(v.mean(0)).clamp(low + inside, high - inside)
    center, half = shared.expand(1, *visible.shape), v.new_full((1, *hidden.shape), hidden.bounds()[1] / 2)
    middle = hidden.link(half)
    factor = spread / (hidden.steepness * float(((rows - rows.mean(0)) @ directions).std()))
    slopes = float(hidden.variance(middle).mean()) * float(visible.variance(visible.link(shared)).mean())
    for rbm, weight in ((up, factor * directions), (down, directions / (factor * slopes))):
        rbm.weight.copy_(weight if conv is None else _filters(weight, rbm.weight, conv))
        rbm.hidden_bias.zero_()
        rbm.visible_bias.zero_()
    above = (middle - up.field("hidden", {"visible": center}))[0]
    below = (visible.link(center) - down.field("visible", {"hidden": half}))[0]
    up.hidden_bias.copy_(up.graph.biases["hidden"].averaged(above))
    down.visible_bias.copy_(down.graph.biases["visible"].averaged(below))


def _rotation(n_units: int, n: int, balanced: bool, like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Return n orthonormal rows of `n_units` values at random, each with sum 0 if `balanced`."""
    random = draw_normal(like.new_empty(n_units, n_units), generator=generator)
    if balanced:
        random[:, 0] = 1.0
    return torch.linalg.qr(random).Q.mT[int(balanced) :][:n]


def _blocks(v: Tensor, conv: Conv2d, generator: torch.Generator | None) -> Tensor:
    """Return blocks of stride × stride pixels, `(n, channels · stride²)`."""
    rows = unfold(v, conv.stride, stride=conv.stride).mT.flatten(0, 1)
    if len(rows) <= _N_BLOCKS:
        return rows
    return rows[draw_normal(rows[:, 0], generator=generator).argsort()[:_N_BLOCKS]]


def _filters(weight: Tensor, like: Tensor, conv: Conv2d) -> Tensor:
    """Return the weights of blocks as filters that are 0 around them."""
    filters, begin = torch.zeros_like(like), conv.padding
    inside = slice(begin, begin + conv.stride)
    filters[:, :, inside, inside] = weight.mT.reshape(*like.shape[:2], conv.stride, conv.stride)
    return filters


def _check(dbn: DBN) -> None:
    for rbm in dbn:
        conv = rbm.coupling if isinstance(rbm.coupling, Conv2d) else None
        if not isinstance(rbm.hidden, Multinary) or not isinstance(rbm.visible, Multinary):
            raise TypeError(f"A start at principal components is for multinary units. Got {rbm!r}.")
        if conv is not None and conv.kernel != conv.stride + 2 * conv.padding:
            raise ValueError(f"A convolution must divide the image by its stride to start so. Got {conv!r}.")
    if len(dbn.recognition) != len(dbn):
        raise ValueError("A start at principal components needs recognition weights: take `dbn.untied()`.")
