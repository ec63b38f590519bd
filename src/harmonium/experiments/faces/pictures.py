"""What is shown of a network of faces: samples, reconstructions, gray pictures in color, nearest neighbors."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import interpolate, pad

from harmonium.data import MissingDataError, load
from harmonium.evaluation.images.neighbors import nearest_neighbors
from harmonium.experiments.faces.folder import FaceFolder, as_floats
from harmonium.experiments.faces.network import images_of, pictures_of, reconstruct_faces, sample_codes, values_of
from harmonium.experiments.faces.scores import draw_all
from harmonium.models import DBN
from harmonium.runs.panels import ImageGrid, ImageRows, Panel
from harmonium.units import Multinary

LUMINANCE = (0.299, 0.587, 0.114)
"""Red, green and blue in a gray value (ITU-R BT.601)."""


def face_panels(run: FaceFolder, *, n: int = 12) -> list[Panel]:
    """Return the pictures of a trained network; sets that are not in the data directory are left out."""
    dbn, data, samples = run.network(), run.data, draw_all(run)["dbn"]
    test = as_floats(data.test if data.test is not None else data.train)[:n]
    gray = gray_of(test).expand(-1, 3, -1, -1)
    nearest = _neighbors(samples[:n], as_floats(data.train))
    others, old = (_other_images(name, n, run.size, run.data_dir) for name in ("cifar10", "olivetti"))
    groups: dict[str, tuple[str, dict[str, Tensor]]] = {
        "reconstructions": ("Test images, and what each level knows of them.", _rebuilt(dbn, test)),
        "neighbors": ("Samples, and the training images that are nearest.", nearest),
        "colored": (
            "Test images in gray, the colors that the network gives them, and their own.",
            {"gray": gray, "colored": color_faces(dbn, gray_of(test)), "original": test},
        ),
    }
    if others is not None:
        groups["not_faces"] = ("Images that are no faces, and what each level makes of them.", _rebuilt(dbn, others))
    if old is not None:
        framed = _framed(old)
        rows = {"gray": framed, "colored": color_faces(dbn, gray_of(framed))}
        groups["photographs"] = ("Photographs in gray, and the colors that the network gives them.", rows)
    if run.recipe.layers:
        codes = sample_codes(dbn, 8, n_steps=run.n_steps, generator=run.generator(11))
        groups["walks"] = ("Walks from one sample to another, in equal steps of the code.", walks(dbn, codes, n))
        levels = range(1, len(dbn) - 1)
        shown = {f"level {i}": unit_images(dbn, as_floats(data.train[:100]), i, n) for i in levels}
        groups["units"] = ("What single units of each level add to the mean image; gray is nothing.", shown)
    drawn = ImageGrid("samples", "Mean images of codes drawn at the top.", samples[:100], limits=(0.0, 1.0))
    text = f"Independent chains of {run.n_steps:,} Gibbs steps in the top machine. Nothing was selected."
    return [
        Panel("Samples", text, [drawn]),
        Panel("Images through the network", "", [ImageRows(name, *group) for name, group in groups.items()]),
    ]


def gray_of(x: Tensor) -> Tensor:
    """Return the gray values `(n, 1, height, width)` of color images.

    >>> round(gray_of(torch.ones(1, 3, 1, 1)).item(), 6)
    1.0
    """
    weight = x.new_tensor(LUMINANCE).view(3, 1, 1)
    return (x * weight).sum(-3, keepdim=True)


@torch.no_grad()
def color_faces(dbn: DBN, gray: Tensor, *, n_steps: int | None = None) -> Tensor:
    """Return color images whose gray values are those given: the network fills in what they leave open.

    Starting from the mean image in this gray, each step reconstructs the image from its code and puts the given gray
    values back, which alternates projections onto the images that the network knows and onto those with this gray.
    `gray` is `(n, 1, height, width)` in [0, 1]. Steps are 100, but 3 above multinary units: the way through their
    curves is no projection, and colors grow from step to step.
    """
    if n_steps is None:
        n_steps = 3 if isinstance(dbn.visible, Multinary) else 100
    mean = dbn.down(gray.new_zeros(1, *dbn.shapes[-2]), len(dbn) - 1)
    target = values_of(dbn, gray)
    x = mean + (target - gray_of(mean))
    for _ in range(n_steps):
        made = dbn.reconstruct(x, len(dbn) - 1)
        x = made + (target - gray_of(made))
    return pictures_of(dbn, x)


def walks(dbn: DBN, codes: Tensor, n: int = 12) -> dict[str, Tensor]:
    """Return the images on the way from one code to the next, as many rows as pairs.

    A walk turns from one code z to the other z', `z sin((1-t)ω) + z' sin(tω)` over sin ω with ω the angle between them,
    so that all codes on it are as long as those at its ends.
    """
    rows = {}
    for i, (start, end) in enumerate(codes.view(-1, 2, codes.shape[-1]), 1):
        angle = torch.cosine_similarity(start, end, dim=0).clamp(-0.999, 0.999).acos()
        t = torch.linspace(0, 1, n)[:, None]
        turned = (((1 - t) * angle).sin() * start + (t * angle).sin() * end) / angle.sin()
        rows[f"walk {i}"] = images_of(dbn, turned)
    return rows


@torch.no_grad()
def unit_images(dbn: DBN, x: Tensor, level: int, n: int = 12) -> Tensor:
    """Return what units of a level stand for: how the image changes where one is a quarter of its range above its mean.

    The other units are at their means over the images x. Channels are taken evenly, in the middle of the image; gray
    is no change.
    """
    z = dbn.up(values_of(dbn, x), level).mean(0)
    low, high = dbn[level - 1].hidden.bounds()
    moved = z.expand(n, *z.shape).clone()
    place = tuple(side // 2 for side in z.shape[1:])
    for i, channel in enumerate(torch.linspace(0, len(z) - 1, n).long().tolist()):
        moved[(i, channel, *place)] += (high - low) / 4
    change = dbn.down(moved, level) - dbn.down(z[None], level)
    return 0.5 + change / (2 * change.flatten(1).abs().amax(1).clamp_min(1e-6).view(-1, 1, 1, 1))


def fitted_size(x: Tensor, size: int) -> Tensor:
    """Return images resized to `size` x `size`, in [0, 1]."""
    if x.shape[-1] == size and x.shape[-2] == size:
        return x
    return interpolate(x, size=(size, size), mode="bicubic", align_corners=False, antialias=True).clamp(0, 1)


def _rebuilt(dbn: DBN, x: Tensor) -> dict[str, Tensor]:
    rows = {f"from level {depth}": reconstruct_faces(dbn, x, depth) for depth in range(1, len(dbn) + 1)}
    return {"data": x} | rows


def _neighbors(samples: Tensor, train: Tensor) -> dict[str, Tensor]:
    index = nearest_neighbors(samples, train, 3).index
    rows = {f"neighbor {k + 1}": train[index[:, k]] for k in range(3)}
    return {"samples": samples} | rows


def _framed(x: Tensor, share: float = 0.65) -> Tensor:
    """Return pictures shrunk to a share of the frame, their edges drawn out to fill it: faces as large as in CelebA."""
    size = x.shape[-1]
    inner = round(share * size)
    left, top = (size - inner) // 2, (size - inner) // 2
    sides = (left, size - inner - left, top, size - inner - top)
    return pad(fitted_size(x, inner), sides, mode="replicate")


def _other_images(name: str, n: int, size: int, data_dir: str | None) -> Tensor | None:
    """Return test images of another set in three channels, or None if its files are not there."""
    try:
        data = load(name, data_dir=data_dir)
    except MissingDataError:
        return None
    x = as_floats(data.test if data.test is not None else data.train)
    rows = x[torch.linspace(0, len(x) - 1, n).long()]
    return fitted_size(rows.expand(-1, 3, -1, -1), size)
