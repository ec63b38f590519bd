"""The replay buffer and its informative starts."""

from __future__ import annotations

import pytest
import torch

import harmonium as hm
from harmonium.learning.objectives import ReplayBuffer


@pytest.fixture
def model(generator: torch.Generator) -> hm.JEM:
    return hm.JEM(hm.MLP(2, 3, generator=generator))


def test_chains_are_different_ones_and_go_on(model: hm.JEM, generator: torch.Generator) -> None:
    buffer = ReplayBuffer(20, renewal=0.0)
    index, x, labels = buffer.take(model, 8, generator=generator)
    assert len(index.unique()) == 8 and labels is None
    buffer.put(index, x + 100)
    everyone, now, _ = buffer.take(model, 20, generator=generator)
    assert (now > 50).all(1).sum() == 8
    assert sorted(everyone[(now > 50).all(1)].tolist()) == sorted(index.tolist())


@pytest.mark.parametrize("renewal", [0.0, 0.3, 1.0])
def test_some_start_anew(model: hm.JEM, renewal: float, generator: torch.Generator) -> None:
    n = 4000
    buffer = ReplayBuffer(n, renewal=renewal)
    index, x, _ = buffer.take(model, n, generator=generator)
    buffer.put(index, torch.full_like(x, 9.0))
    _, x, _ = buffer.take(model, n, generator=generator)
    share = (x.abs() <= 1).all(1).double().mean().item()
    assert abs(share - renewal) <= 4 * (renewal * (1 - renewal) / n) ** 0.5


def test_chains_of_a_class_stay_in_their_class(model: hm.JEM, generator: torch.Generator) -> None:
    means = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    labels = torch.arange(300) % 3
    data = means[labels] + torch.randn(300, 2, generator=generator)
    starts = hm.laws.ClassGaussians.fitted(data, labels)
    buffer = ReplayBuffer(30, renewal=0.5, n_classes=3, starts=starts)
    for _ in range(5):
        index, x, y = buffer.take(model, 12, generator=generator)
        assert y is not None and torch.equal(y, index % 3)
        assert (x - means[y]).norm(dim=1).max() < 6
        buffer.put(index, x)


def test_class_gaussians_have_the_moments_of_the_classes(generator: torch.Generator) -> None:
    mixing = torch.tensor([[1.0, 0.0], [0.8, 0.3]])
    labels = torch.tensor([0, 1]).repeat(2000)
    data = torch.randn(4000, 2, generator=generator) @ mixing.t() + labels[:, None] * 3.0
    laws = hm.laws.ClassGaussians.fitted(torch.cat([data, data[:9] + 1000]), torch.cat([labels, torch.full((9,), -1)]))
    for y in (0, 1):
        x = laws.initial(torch.full((20_000,), y), generator=generator)
        torch.testing.assert_close(x.mean(0), data[labels == y].mean(0), atol=0.05, rtol=0)
        torch.testing.assert_close(x.t().cov(), data[labels == y].t().cov(), atol=0.06, rtol=0)
    anyone = laws.initial(torch.full((2000,), -1), generator=generator)
    assert 0.4 < (anyone.mean(1) > 1.5).double().mean() < 0.6
    with pytest.raises(ValueError, match="Class 1 has 1 rows"):
        hm.laws.ClassGaussians.fitted(data[:3], torch.tensor([0, 0, 1]))


def test_the_buffer_is_saved_and_taken_up(model: hm.JEM, generator: torch.Generator) -> None:
    buffer, other = (
        ReplayBuffer(10, renewal=0.0),
        ReplayBuffer(10, renewal=0.0),
    )
    assert buffer.state_dict() == {}
    buffer.take(model, 4, generator=generator)
    other.load_state_dict(buffer.state_dict())
    assert other.chains is not None and buffer.chains is not None
    assert torch.equal(other.chains, buffer.chains) and other.chains is not buffer.chains


def test_arguments_are_checked(model: hm.JEM) -> None:
    with pytest.raises(ValueError, match="`renewal` a probability"):
        ReplayBuffer(10, renewal=1.5)
    with pytest.raises(ValueError, match="has 10 chains. Got n=11"):
        ReplayBuffer(10).take(model, 11)
    with pytest.raises(ValueError, match="empty"):
        ReplayBuffer(10).put(torch.arange(2), torch.zeros(2, 2))
