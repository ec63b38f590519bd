"""The feature network of FID, with weights from a file: Inception-v3 of 2015-12-05."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load as tensors_from_bytes
from torch import Tensor

from harmonium.evaluation.images.feature_network import FeatureNetwork
from harmonium.evaluation.images.inception_v3 import N_CLASSES, N_FEATURES, SIDE, InceptionV3, inception_shapes

INCEPTION_V3 = "Inception-v3 (2015-12-05)"

_SHA256 = "6726825d0af5f729cebd5821db510b11b1cfad8faad88a03f1befd49fb9129b2"
_WANTED = f"Give pt_inception-2015-12-05-{_SHA256[:8]}.pth of pytorch-fid, or the same tensors as .safetensors."
_PLACES = (  # of the layers in the blocks of pytorch-fid's module
    ("Conv2d_1a_3x3", "Conv2d_2a_3x3", "Conv2d_2b_3x3"),
    ("Conv2d_3b_1x1", "Conv2d_4a_3x3"),
    tuple(f"Mixed_{name}" for name in ("5b", "5c", "5d", "6a", "6b", "6c", "6d", "6e")),
    ("Mixed_7a", "Mixed_7b", "Mixed_7c"),
)
_CLASSES = {"fc.weight": (N_CLASSES, N_FEATURES), "fc.bias": (N_CLASSES,)}  # not needed, but they tell networks apart


def inception(path: str | os.PathLike[str]) -> FeatureNetwork:
    """Return Inception-v3 with the weights of a file: 2048 pooled features of images resized to 299 x 299.

    The file is `pt_inception-2015-12-05-6726825d.pth` of pytorch-fid, byte for byte the one that torch-fidelity calls
    `weights-inception-…`. Known by its SHA-256, it makes the score an FID (Heusel et al. 2017). Another file, .pth or
    .safetensors, with the same names and shapes serves too, but cannot be known to hold the same weights: the network
    is then named after the start of its SHA-256, and the score is a Fréchet distance.
    """
    file = Path(path)
    content = file.read_bytes()
    got = hashlib.sha256(content).hexdigest()
    network = InceptionV3(inception_tensors(_read(file, content), name=str(file)))
    if got == _SHA256:
        return FeatureNetwork(INCEPTION_V3, network, N_FEATURES, resized_for_inception, "FID")
    return FeatureNetwork(f"Inception-v3 (weights {got[:8]})", network, N_FEATURES, resized_for_inception)


def inception_tensors(tensors: Mapping[str, Tensor], *, name: str = "`tensors`") -> dict[str, Tensor]:
    """Return the parameters by their published names, all there and of the right shapes; `name` is said in errors.

    Names are `Mixed_5b.branch1x1.conv.weight` as published, or `blocks.2.0.branch1x1.conv.weight` as in the state of
    pytorch-fid's module. Counts of batches and the weights of the classes are left out.
    """
    renamed = {_published(key): value for key, value in tensors.items() if not key.endswith("num_batches_tracked")}
    wanted = inception_shapes()
    missing = [key for key in wanted if key not in renamed]
    unknown = [key for key in renamed if key not in wanted and key not in _CLASSES]
    if missing or unknown:
        raise ValueError(
            f"{name} does not hold Inception-v3 of 2015-12-05: of its {len(wanted)} tensors {len(missing)} are missing"
            f"{_first(missing)}, and {len(unknown)} are none of its own{_first(unknown)}. {_WANTED}"
        )
    for key, shape in (wanted | _CLASSES).items():
        got = tuple(renamed[key].shape) if key in renamed else shape
        if got != shape:
            raise ValueError(
                f"{key} of Inception-v3 of 2015-12-05 must have shape {shape}. Got {got} in {name}: another network, "
                f"such as torchvision's. {_WANTED}"
            )
    return {key: renamed[key] for key in wanted}


def resized_for_inception(images: Tensor) -> Tensor:
    """Return images in [0, 1] as the network wants them: three channels of bytes, 299 x 299, `(x - 128)/128`.

    Resized as the graph of 2015 does, and torch-fidelity: linearly between pixel `⌊i n/299⌋` and the next, so that
    centers are not aligned and shrinking does not average. `interpolate`, as in pytorch-fid, aligns centers: unless the
    images are 299 x 299, its features are not those of the original.
    """
    pixels = images.mul(255).round()
    rows, columns = (_linear(n).to(pixels) for n in images.shape[-2:])
    large = (rows @ pixels @ columns.mT).sub_(128).div_(128)
    if images.shape[1] == 1:
        large = large.expand(-1, 3, -1, -1)
    return large.contiguous(memory_format=torch.channels_last)


def _linear(n: int) -> Tensor:
    """Return the `(299, n)` weights of n pixels in the resized ones."""
    place = torch.arange(SIDE, dtype=torch.float32) * (n / SIDE)
    low = place.long()
    share = (place - low)[:, None]
    unit = torch.eye(n)
    return unit[low] * (1 - share) + unit[(low + 1).clamp_max(n - 1)] * share


def _read(file: Path, content: bytes) -> dict[str, Tensor]:
    """Return the tensors in a file by their names there."""
    try:
        if file.suffix == ".safetensors":
            return tensors_from_bytes(content)
        found = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError(
            f"{file} cannot be read as a file of tensors: it is damaged or of another kind. {_WANTED}"
        ) from error
    if not isinstance(found, dict) or not all(isinstance(value, Tensor) for value in found.values()):
        raise ValueError(f"{file} must hold tensors by their names. Got {type(found).__name__}. {_WANTED}")
    return found


def _published(name: str) -> str:
    """Return the published name of a tensor: `blocks.1.0.bn.bias` is `Conv2d_3b_1x1.bn.bias`."""
    for i, names in enumerate(_PLACES):
        for j, layer in enumerate(names):
            if name.startswith(place := f"blocks.{i}.{j}."):
                return f"{layer}.{name.removeprefix(place)}"
    return name


def _first(names: list[str]) -> str:
    return f" ({names[0]}{', …' if len(names) > 1 else ''})" if names else ""
