"""Starts at clouds against the covariances that they are made from."""

from __future__ import annotations

import math

import pytest
import torch

from harmonium.laws.clouds import cloud_starts


def test_clouds_have_their_covariance_and_the_rest_that_of_the_images(generator: torch.Generator) -> None:
    x = torch.rand(400, 2, 3, 4, generator=generator)
    laws = cloud_starts(x, lengths=(1.5,), level=-0.2, spread=0.5, floor=0.1)
    assert laws.mean.shape == (3, 2, 3, 4)
    products = laws.factor @ laws.factor.transpose(1, 2)
    expected = torch.cov(x.flatten(1).t()) + 0.01 * torch.eye(24)
    torch.testing.assert_close(products[0], expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(products[1], 4 * expected, rtol=1e-4, atol=1e-5)
    cloud = products[2]
    assert cloud[0, 0].item() == pytest.approx(0.25 * 1.001, rel=1e-5)
    assert cloud[0, 1].item() == pytest.approx(0.25 * math.exp(-1 / 4.5), rel=1e-5)  # a column apart
    assert cloud[0, 5].item() == pytest.approx(0.25 * math.exp(-2 / 4.5), rel=1e-5)  # a row and a column apart
    assert not cloud[:12, 12:].any()  # channels are independent
    assert (laws.mean[2] == -0.2).all()
    assert not torch.allclose(cloud, expected)  # the control: clouds are not blurred images


def test_all_kinds_are_drawn_equally_often(generator: torch.Generator) -> None:
    x = torch.full((50, 1, 2, 2), 0.9) + 0.01 * torch.rand(50, 1, 2, 2, generator=generator)
    laws = cloud_starts(x, lengths=(1.0, 3.0), level=-50.0)
    drawn = laws.initial(torch.full((4000,), -1), generator=generator)
    share = (drawn.mean((1, 2, 3)) < -25).double().mean().item()
    assert abs(share - 0.5) < 5 * math.sqrt(0.25 / 4000)


def test_rows_that_are_no_images_are_refused() -> None:
    with pytest.raises(ValueError, match="must hold images"):
        cloud_starts(torch.zeros(5, 3))
