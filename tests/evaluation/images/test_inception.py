"""Inception-v3 against features measured with two other implementations, with weights and images made by a formula."""

from __future__ import annotations

import hashlib
import math
from functools import cache, partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import avg_pool2d

from harmonium.evaluation.images import inception as reading
from harmonium.evaluation.images import inception_v3
from harmonium.evaluation.images.frechet import frechet_score
from harmonium.evaluation.images.inception import inception, inception_tensors, resized_for_inception
from harmonium.evaluation.images.inception_v3 import InceptionV3, inception_shapes

PERIOD = 1_000_003


@cache
def noise() -> Tensor:
    """Numbers in [0, 1) that look random, from integers alone: the same on every machine."""
    k = torch.arange(PERIOD)
    for shift, factor in ((16, 0x45D9F3B), (15, 0x119DE1F), (16, 1)):
        k = ((k ^ (k >> shift)) * factor) & 0xFFFFFFFF
    return (k.double() / 2**32).repeat(3)


def numbers(start: int, shape: tuple[int, ...]) -> Tensor:
    """Return a tensor of the numbers from `start` on, again from the first after the last."""
    return noise()[start : start + math.prod(shape)].view(shape)


@cache
def weights() -> dict[str, Tensor]:
    """Return parameters by formula: convolutions that keep the scale, normalizations far from the identity."""
    found = {}
    for i, (name, shape) in enumerate(inception_shapes().items()):
        x = numbers(7919 * i % PERIOD, shape)
        if name.endswith("conv.weight"):
            x = (x - 0.5) * math.sqrt(24 / math.prod(shape[1:]))
        elif name.endswith(("bn.weight", "running_var")):
            x = x + 0.5
        else:
            x = x - 0.5
        found[name] = x.float()
    return found


def image(height: int, width: int) -> Tensor:
    """Return a picture of bytes with coarse and fine structure, (1, 3, height, width)."""
    coarse = numbers(17, (1, 3, -(-height // 7), -(-width // 7))).repeat_interleave(7, -1).repeat_interleave(7, -2)
    fine = numbers(4242, (1, 3, height, width))
    return ((0.7 * coarse[..., :height, :width] + 0.3 * fine) * 255).to(torch.uint8)


@pytest.fixture(scope="module")
def network() -> InceptionV3:
    return InceptionV3(weights())


def features(network: InceptionV3, images: Tensor) -> Tensor:
    with torch.inference_mode():
        return network(resized_for_inception(images.float() / 255)).double()


PLACES = [0, 320, 500, 1000, 1088, 1500, 1800, 2047]
"""Features of each branch of the last block: 1x1, the four forks, and the pooled one."""

MEASURED = {
    (32, 32): ([3.8073311, 8.7069778, 0.0074583408, 1.4715408, 2.4057169, 0.0, 2.3629003, 0.27700329], 330.7287526),
    (64, 48): ([4.0114264, 9.3393564, 0.0016914825, 1.6170893, 2.6028893, 0.0, 2.2284367, 0.44265482], 357.7129859),
}
"""Features and their norm by FeatureExtractorInceptionV3 of torch-fidelity 0.4.0, given `weights()` and `image(…)`. The
network of pytorch-fid 0.3.0 gives the same on images resized the same way: both to 5e-7 of the norm."""


def same(got: Tensor, size: tuple[int, int]) -> bool:
    expected, norm = torch.tensor(MEASURED[size][0], dtype=torch.float64), MEASURED[size][1]
    close = (got[0, PLACES] - expected).abs().max() < 1e-5 * expected.max()
    return bool(close) and math.isclose(got.norm().item(), norm, rel_tol=1e-5)


@pytest.mark.parametrize("size", MEASURED, ids=str)
def test_features_are_those_of_other_implementations(network: InceptionV3, size: tuple[int, int]) -> None:
    got = features(network, image(*size))
    assert got.shape == (1, 2048)
    assert same(got, size)


@pytest.mark.parametrize(
    ("pool", "wrong"),
    [
        ("average", partial(avg_pool2d, kernel_size=3, stride=1, padding=1)),  # counts the padding
        ("largest", partial(avg_pool2d, kernel_size=3, stride=1, padding=1, count_include_pad=False)),
    ],
)
def test_other_pooling_differs(
    network: InceptionV3, pool: str, wrong: partial[Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: the Inception of other collections pools otherwise, and is found out."""
    monkeypatch.setitem(inception_v3._POOLS, pool, wrong)
    assert not same(features(network, image(32, 32)), (32, 32))


def test_images_are_resized_as_in_2015() -> None:
    """A row of n pixels is read at `i n/299`; an image of the right size stays; gray is gray; floats become bytes."""
    ramp = torch.tensor([0.0, 51.0, 255.0]).view(1, 1, 1, 3).expand(1, 3, 4, 3) / 255
    row = resized_for_inception(ramp)[0, 0, 100] * 128 + 128
    place = torch.arange(299) * 3 / 299
    expected = torch.where(place < 1, 51 * place, torch.where(place < 2, 51 + 204 * (place - 1), 255.0))
    torch.testing.assert_close(row, expected, rtol=0, atol=1e-3)
    centered = torch.nn.functional.interpolate(ramp * 255, (299, 299), mode="bilinear", align_corners=False)
    assert (centered[0, 0, 100] - expected).abs().max() > 20  # negative control: another resize
    right = image(299, 299)
    assert torch.equal(resized_for_inception(right.float() / 255), (right.float() - 128) / 128)
    gray = right[:, :1, :40, :30].float() / 255
    large = resized_for_inception(gray + 0.4 / 255)
    assert torch.equal(large, resized_for_inception(gray.expand(-1, 3, -1, -1)))


def test_file_names_the_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generator: torch.Generator) -> None:
    """The published file, known by its SHA-256, makes it FID; other weights with the same names do not."""
    path = tmp_path / "weights.safetensors"
    save_file(weights(), path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    other = inception(path)
    monkeypatch.setattr(reading, "_SHA256", digest)
    published = inception(path)
    path.unlink()
    assert same(published.features(image(32, 32)).double(), (32, 32))
    x = torch.randn(60, 2048, generator=generator)
    text = str(frechet_score(x[:40], x[40:], published, generator=generator))
    assert text.startswith("FID (Inception-v3 (2015-12-05), 2048 features)")
    text = str(frechet_score(x[:40], x[40:], other, generator=generator))
    assert text.startswith(f"Fréchet distance (Inception-v3 (weights {digest[:8]}), 2048 features)")


def hollow() -> dict[str, Tensor]:
    """Return tensors of the right shapes that take no room in a file."""
    shapes = inception_shapes() | {"fc.weight": (1008, 2048), "fc.bias": (1008,)}
    return {name: torch.ones(1).expand(shape) for name, shape in shapes.items()}


@pytest.mark.parametrize("as_zip", [True, False])
def test_both_formats_of_pth(tmp_path: Path, as_zip: bool) -> None:
    path = tmp_path / "weights.pth"
    tensors = hollow() | {"Conv2d_1a_3x3.bn.num_batches_tracked": torch.tensor(0)}
    torch.save(tensors, path, _use_new_zipfile_serialization=as_zip)
    assert path.stat().st_size < 1_000_000
    assert inception(path).n_features == 2048


def test_both_layouts_of_names() -> None:
    places = {"Conv2d_1a_3x3": "blocks.0.0", "Conv2d_4a_3x3": "blocks.1.1", "Mixed_6e": "blocks.2.7"}
    tensors = hollow()
    renamed = {}
    for name, value in tensors.items():
        first, _, rest = name.partition(".")
        renamed[f"{places.get(first, first)}.{rest}"] = value
    assert sum(name.startswith("blocks") for name in renamed) > 50
    found = inception_tensors(renamed)
    assert list(found) == list(inception_shapes())
    assert all(found[name] is tensors[name] for name in found)


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    wanted = r"Give pt_inception-2015-12-05-6726825d\.pth"
    tensors = hollow()
    with pytest.raises(
        ValueError, match=rf"fc\.weight .* \(1008, 2048\)\. Got \(1000, 2048\).*torchvision's\. {wanted}"
    ):
        inception_tensors(tensors | {"fc.weight": torch.zeros(1000, 2048)})
    with pytest.raises(ValueError, match=rf"0 are missing, and 1 are none .*\(AuxLogits\.fc\.bias\)\. {wanted}"):
        inception_tensors(tensors | {"AuxLogits.fc.bias": torch.zeros(1000)})
    del tensors["Mixed_7c.branch1x1.conv.weight"]
    with pytest.raises(ValueError, match=r"470 tensors 1 are missing \(Mixed_7c\.branch1x1\.conv\.weight\)"):
        inception_tensors(tensors, name="file")
    for name in ("weights.pth", "weights.safetensors"):
        path = tmp_path / name
        path.write_bytes(b"not a network")
        with pytest.raises(ValueError, match=rf"{name} cannot be read.*{wanted}"):
            inception(path)
    torch.save([torch.zeros(1)], tmp_path / "list.pth")
    with pytest.raises(ValueError, match="Got list"):
        inception(tmp_path / "list.pth")
    with pytest.raises(FileNotFoundError):
        inception(tmp_path / "nothing.pth")
