"""Precision and recall, neighbors and copies: hand-made examples with known answers."""

from __future__ import annotations

import math

import pytest
import torch

from harmonium.evaluation.images import neighbors
from harmonium.evaluation.images.neighbors import copy_check, nearest_neighbors
from harmonium.evaluation.images.precision_recall import precision_recall


def test_identical_and_disjoint_sets(generator: torch.Generator) -> None:
    x = torch.randn(700, 6, generator=generator)  # more than one chunk
    same = precision_recall(x, x)
    assert (same.precision, same.recall) == (1.0, 1.0)
    apart = precision_recall(x, x + 100)
    assert (apart.precision, apart.recall) == (0.0, 0.0)


def test_a_mode_dropped_and_a_mode_invented(generator: torch.Generator) -> None:
    """Data on A and B, samples on A and C: half of each lies in the other; all samples on A give precision 1."""
    a, b, c = (torch.randn(200, 3, generator=generator) + shift for shift in (0.0, 50.0, -50.0))
    data = torch.cat([a, b])
    mixed = precision_recall(data, torch.cat([a, c]))
    assert (mixed.precision, mixed.recall) == (0.5, 0.5)
    dropped = precision_recall(data, torch.cat([a, a]), n_neighbors=3)
    assert (dropped.precision, dropped.recall) == (1.0, pytest.approx(0.5, abs=0.25))
    assert dropped.recall >= 0.5  # every point of A is a sample


def test_by_hand() -> None:
    """Real points 0, 1, 3 with k = 1 have radii 1, 1, 2: balls [-1, 1], [0, 2] and [1, 5]."""
    real = torch.tensor([[0.0], [1.0], [3.0]])
    samples = torch.tensor([[-0.5], [4.5], [5.5], [6.5]])  # radii 5, 1, 1, 1
    found = precision_recall(real, samples, n_neighbors=1)
    assert found.precision == 0.5
    assert found.recall == 1.0  # the ball of -0.5 is [-5.5, 4.5]
    assert found.precision_error == pytest.approx(math.sqrt(0.25 / 7))  # of Beta(3, 3)
    assert found.recall_error == pytest.approx(math.sqrt(4 / 5 * 1 / 5 / 6))  # of Beta(4, 1)
    with pytest.raises(ValueError, match="n_neighbors"):
        precision_recall(real, samples, n_neighbors=3)


def test_progress_and_chunks_do_not_change_the_answer(
    generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = torch.randn(50, 4, generator=generator), torch.randn(40, 4, generator=generator) * 0.7
    whole = precision_recall(x, y)
    monkeypatch.setattr(neighbors, "_ROWS", 7)
    seen: list[tuple[int, int]] = []
    assert precision_recall(x, y, on_progress=lambda done, total: seen.append((done, total))) == whole
    assert seen[-1] == (180, 180)


def test_neighbors_against_all_pairs(generator: torch.Generator) -> None:
    x, reference = torch.randn(600, 5, generator=generator), torch.randn(90, 5, generator=generator)
    found = nearest_neighbors(x, reference, 4)
    pairs = torch.cdist(x.double(), reference.double(), compute_mode="donot_use_mm_for_euclid_dist")
    expected = pairs.sort(1)
    torch.testing.assert_close(found.distance, expected.values[:, :4])
    assert torch.equal(found.index, expected.indices[:, :4])


def test_a_copy_is_found_at_distance_zero(generator: torch.Generator) -> None:
    train = torch.rand(300, 3, 8, 8, generator=generator) * 255
    found = nearest_neighbors(train[[5, 17]], train)
    assert found.index.flatten().tolist() == [5, 17]
    assert found.distance.max() == 0


def test_copies_are_told_from_new_samples(generator: torch.Generator) -> None:
    train, test, new = (torch.rand(200, 30, generator=generator) for _ in range(3))
    honest = copy_check(new, train, test, generator=generator)
    assert honest.n_copies == 0
    assert abs(honest.ratio - 1) < 5 * honest.error + 0.02
    half = copy_check(torch.cat([new[:50], train[:150]]), train, test, generator=generator)
    assert half.n_copies == 150
    assert half.ratio == 0
    assert "150 of 200 samples are copies" in str(half)
    with pytest.raises(ValueError, match="among them"):
        copy_check(new, train, train)


def test_errors_say_what_to_do() -> None:
    x = torch.zeros(5, 3)
    with pytest.raises(ValueError, match="as many values"):
        nearest_neighbors(x, torch.zeros(5, 4))
    with pytest.raises(ValueError, match="n_neighbors"):
        nearest_neighbors(x, x, 6)
    with pytest.raises(ValueError, match="must be finite"):
        nearest_neighbors(x / 0, x)
    with pytest.raises(ValueError, match="as \\(n, …\\)"):
        nearest_neighbors(torch.zeros(5), x)
