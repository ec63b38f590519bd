"""Local contrast, whitening by a filter, patches."""

from __future__ import annotations

import pytest
import torch

from harmonium.data import draw_patches, local_contrast, whiten_locally


def smooth_images(n: int, channels: int, size: int) -> torch.Tensor:
    """Return Gaussian noise blurred over 3 x 3 pixels and mixed between channels: neighbors are correlated."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(n, channels, size + 2, size + 2, generator=generator)
    mixed = noise + 0.5 * noise.mean(1, keepdim=True)
    return torch.nn.functional.avg_pool2d(mixed, 3, stride=1) * 3


def neighbor_correlation(x: torch.Tensor) -> float:
    left, right = x[..., :-1].flatten(), x[..., 1:].flatten()
    return torch.corrcoef(torch.stack([left, right]))[0, 1].item()


def test_patches_are_cut_from_where_they_are() -> None:
    x = torch.arange(2 * 64, dtype=torch.float32).view(2, 1, 8, 8)
    patches = draw_patches(x, 300, 3, generator=torch.Generator().manual_seed(1))
    corner = patches[:, :1, :1, :1]
    place = torch.arange(3)[:, None] * 8 + torch.arange(3)
    assert torch.equal(patches, corner + place)
    assert len(corner.unique()) == 2 * 36  # every image and place, none beyond the border


@pytest.mark.parametrize(("size", "n"), [(9, 5), (0, 5), (3, 0)])
def test_patches_must_fit(size: int, n: int) -> None:
    with pytest.raises(ValueError, match="size"):
        draw_patches(torch.zeros(1, 1, 8, 8), n, size)


def test_local_contrast_ignores_brightness_and_contrast() -> None:
    x = smooth_images(10, 3, 16).double()
    y = local_contrast(x, floor=1e-6)
    assert torch.allclose(y, local_contrast(5 * x + 3, floor=1e-6), atol=1e-5)
    assert not torch.allclose(y, local_contrast(x.square(), floor=1e-6), atol=1e-1)
    assert local_contrast(x, floor=1e3).abs().max() < 1e-1  # far below the floor nothing is raised


def test_local_contrast_of_a_center_by_hand() -> None:
    x = torch.zeros(1, 1, 3, 3, dtype=torch.float64)
    x[0, 0, 1, 1] = 9.0
    # Mirrored, every pixel of a 3 x 3 image sees 1, 2 or 4 copies of the center; around the center there is one.
    y = local_contrast(x, size=3, floor=1e-9)
    copies = torch.tensor([[4.0, 2.0, 4.0], [2.0, 1.0, 2.0], [4.0, 2.0, 4.0]], dtype=torch.float64)
    rest = x[0, 0] - copies
    assert y[0, 0, 1, 1].item() == pytest.approx((rest[1, 1] / rest.square().mean().sqrt()).item())


def test_whitened_neighbors_and_channels_are_uncorrelated() -> None:
    x = smooth_images(400, 2, 20)
    assert neighbor_correlation(x) > 0.5
    whitening = whiten_locally(x, size=7, eps=1e-3, generator=torch.Generator().manual_seed(2))
    y = whitening.apply(x)[..., 3:-3, 3:-3]
    patches = y.unfold(2, 2, 2).unfold(3, 2, 2).permute(0, 2, 3, 1, 4, 5).reshape(-1, 8)
    covariance = patches.T.cov()
    assert torch.allclose(covariance, torch.eye(8), atol=0.1)
    # The control: a large eps leaves the images as they were, up to scale.
    same = whiten_locally(x, size=7, eps=1e4, generator=torch.Generator().manual_seed(2)).apply(x)
    assert neighbor_correlation(same) == pytest.approx(neighbor_correlation(x), abs=0.05)


def test_whitening_needs_a_center() -> None:
    with pytest.raises(ValueError, match="odd"):
        whiten_locally(torch.zeros(1, 1, 8, 8), size=4)
