"""Features of layers, pooled and streamed."""

from __future__ import annotations

import pytest
import torch

import harmonium as hm
from harmonium.evaluation.classify.features import extract_features


def small_network(levels: int = 3) -> hm.DBN:
    generator = torch.Generator().manual_seed(0)
    network = hm.DBN.from_spec("conv 4 3x3 pad 0, dense 5", shape=(1, 8, 8), levels=levels, generator=generator)
    with torch.no_grad():
        for rbm in network:
            rbm.weight.mul_(30)
    return network


def images(n: int) -> torch.Tensor:
    return torch.rand(n, 1, 8, 8, generator=torch.Generator().manual_seed(1))


def test_features_are_the_scaled_pooled_means() -> None:
    network, x = small_network(), 3 * images(7)
    features = extract_features(network, x, levels=[1, 2], grid=2, batch_size=3)
    first, second = network.up(x, 1) / 3, network.up(x, 2) / 3
    cells = first.view(7, 4, 2, 3, 2, 3).mean((3, 5)).flatten(1)
    assert torch.allclose(features, torch.cat([cells, second], 1), atol=1e-6)
    whole = extract_features(network, x, levels=[1, 2], grid=2, batch_size=100)
    assert torch.allclose(features, whole, atol=1e-6)


def test_states_are_whole_levels_and_means_are_not() -> None:
    network, x = small_network(), 3 * images(7)
    generator = torch.Generator().manual_seed(2)
    for reading in ("mode", "sample"):
        states = 3 * extract_features(network, x, levels=[1], reading=reading, generator=generator)
        assert torch.allclose(states, states.round(), atol=1e-5)
    means = 3 * extract_features(network, x, levels=[1])
    assert not torch.allclose(means, means.round(), atol=1e-2)


def test_draws_have_the_means() -> None:
    rbm = hm.RBM(hm.Bernoulli(4), hm.Bernoulli(3), generator=torch.Generator().manual_seed(0))
    x = torch.tensor([[1.0, 0.0, 1.0, 1.0]]).repeat(4000, 1)
    drawn = extract_features(rbm, x, reading="sample", generator=torch.Generator().manual_seed(3))
    p = rbm.hidden_mean(x[:1])[0]
    assert ((drawn.mean(0) - p).abs() < 5 * (p * (1 - p) / 4000).sqrt()).all()


def test_images_are_prepared_batch_by_batch() -> None:
    network, sizes = small_network(), []

    def prepare(part: torch.Tensor) -> torch.Tensor:
        sizes.append(len(part))
        return part.float() * 3 / 255

    x = (255 * images(7)).to(torch.uint8)
    assert extract_features(network, x, batch_size=3, prepare=prepare).shape == (7, 5)
    assert sizes == [3, 3, 1]


@pytest.mark.parametrize("wrong", [{"levels": [0]}, {"levels": [3]}, {"levels": []}, {"reading": "best"}, {"grid": 0}])
def test_what_cannot_be_read(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        extract_features(small_network(), images(2), **wrong)  # type: ignore[arg-type]
