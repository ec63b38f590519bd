"""Bouncing balls: the physics, and what is drawn."""

from __future__ import annotations

import pytest
import torch

from harmonium.data import load
from harmonium.data.films import BOX, RADIUS, bouncing_balls, moved, rendered


def test_energy_is_kept_and_balls_stay_in_the_box(generator: torch.Generator) -> None:
    x = torch.tensor([[[3.0, 5.0], [7.0, 5.1]]], dtype=torch.float64)
    v = torch.tensor([[[0.5, 0.0], [-0.3, 0.1]]], dtype=torch.float64)
    met = False
    for _ in range(4000):
        before = v
        x, v = moved(x, v, 0.25)
        met = met or bool(((before - v).abs() > 1e-12).all(-1).any())  # both components turn in a collision only
        assert bool(((x > RADIUS - 0.3) & (x < BOX - RADIUS + 0.3)).all())
    assert met
    torch.testing.assert_close(v.square().sum().item(), 0.35, rtol=1e-9, atol=1e-9)


def test_a_head_on_collision_trades_velocities() -> None:
    x = torch.tensor([[[4.0, 5.0], [6.3, 5.0]]], dtype=torch.float64)
    v = torch.tensor([[[0.4, 0.2], [-0.1, 0.0]]], dtype=torch.float64)
    _, after = moved(x, v, 0.0)
    torch.testing.assert_close(after, torch.tensor([[[-0.1, 0.2], [0.4, 0.0]]], dtype=torch.float64))


def test_pixels_are_on_inside_balls() -> None:
    frame = rendered(torch.tensor([[[5.0, 2.0]]], dtype=torch.float64), 50)[0]
    assert frame.sum().item() == pytest.approx(3.14159 * RADIUS**2 * 25, rel=0.05)
    rows, columns = frame.nonzero().float().mean(0).tolist()
    assert rows == pytest.approx(2.0 * 5 - 0.5, abs=0.3) and columns == pytest.approx(5.0 * 5 - 0.5, abs=0.3)


def test_the_loader(generator: torch.Generator) -> None:
    data = load("bouncing-balls", n_samples=20, n_frames=6)
    assert data.train.shape == (16, 6, 15, 15) and data.kind == "binary" and data.shape == (6, 15, 15)
    assert torch.equal(data.train, load("bouncing-balls", n_samples=20, n_frames=6).train)
    one, two = bouncing_balls(1, generator=generator), bouncing_balls(1, generator=generator)
    assert not torch.equal(one, two)
    with pytest.raises(ValueError, match="`n_balls` in 1..6"):
        bouncing_balls(1, n_balls=9)
