"""What is shown of a network of faces: samples, reconstructions, gray pictures in color, nearest neighbors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from harmonium.data import Data, MissingDataError, load
from harmonium.evaluation.neighbors import nearest_neighbors
from harmonium.models import DBN
from harmonium.runs.face_network import color_faces, fitted_size, gray_of, reconstruct_faces
from harmonium.runs.faces import FaceRun, as_floats


@dataclass(frozen=True, eq=False)
class FacePictures:
    """Rows of images in [0, 1], `(n, 3, size, size)` each, by the name of the row; one entry for each picture."""

    samples: Tensor
    reconstructions: dict[str, Tensor]
    not_faces: dict[str, Tensor]
    colored: dict[str, Tensor]
    photographs: dict[str, Tensor]
    neighbors: dict[str, Tensor]


def face_pictures(
    run: FaceRun, dbn: DBN, data: Data, drawn: dict[str, Tensor], *, n: int = 12, data_dir: str | None = None
) -> FacePictures:
    """Return the images to show; sets that are not in the data directory are left out."""
    test = as_floats(data.test if data.test is not None else data.train)[:n]
    gray = gray_of(test).expand(-1, 3, -1, -1)
    samples = drawn["dbn"]
    others = _other_images("cifar10", n, run.size, data_dir)
    old = _other_images("olivetti", n, run.size, data_dir)
    old = None if old is None else _framed(old)
    return FacePictures(
        samples=samples[:100],
        reconstructions=_rebuilt(dbn, test),
        not_faces={} if others is None else _rebuilt(dbn, others),
        colored={"gray": gray, "colored": color_faces(dbn, gray_of(test)), "original": test},
        photographs={} if old is None else {"gray": old, "colored": color_faces(dbn, gray_of(old))},
        neighbors=_neighbors(samples[:n], as_floats(data.train)),
    )


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
