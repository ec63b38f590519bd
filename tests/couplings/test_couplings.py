"""Known answers and bad input of the couplings."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import conv2d, conv_transpose2d

from harmonium.couplings import Bias, Conv2d, Dense, Symmetric, ThirdOrder
from harmonium.models import RBM, BoltzmannMachine
from harmonium.units import Bernoulli, Multinary


def normal(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.float64).normal_(generator=torch.Generator().manual_seed(sum(shape)))


def test_dense_is_a_double_sum() -> None:
    coupling = Dense(3, 2).double()
    v, h = normal(3), normal(2)
    weight = coupling.weight.tolist()
    expected = sum(v[i].item() * weight[i][j] * h[j].item() for i in range(3) for j in range(2))
    assert coupling(v, h).item() == pytest.approx(expected, abs=1e-14)


def test_symmetric_has_no_diagonal() -> None:
    coupling = Symmetric(3).double()
    with torch.no_grad():
        coupling.weight.copy_(normal(3, 3))
    matrix = coupling.matrix()
    assert torch.equal(matrix, matrix.t())
    assert torch.equal(matrix.diagonal(), torch.zeros(3, dtype=torch.float64))
    x = normal(3)
    expected = sum(matrix[i, j].item() * x[i].item() * x[j].item() for i in range(3) for j in range(i))
    assert coupling(x, x).item() == pytest.approx(expected, abs=1e-14)


def test_third_order_is_a_triple_sum() -> None:
    coupling = ThirdOrder(2, 3, 2).double()
    x, y, z = normal(2), normal(3), normal(2)
    weight = coupling.weight.tolist()
    triples = [(i, j, k) for i in range(2) for j in range(3) for k in range(2)]
    expected = sum(weight[i][j][k] * x[i].item() * y[j].item() * z[k].item() for i, j, k in triples)
    assert coupling(x, y, z).item() == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(3, 1, 0), (4, 2, 1), (1, 1, 0), (2, 2, 0), (3, 2, 1)])
def test_convolution_down_is_the_transpose_of_up(kernel: int, stride: int, padding: int) -> None:
    coupling = Conv2d(2, 3, kernel=kernel, stride=stride, padding=padding).double()
    size = 4 * stride + kernel - 2 * padding
    v = normal(5, 2, size, size)
    up = coupling.field(1, v)
    assert up.shape[1:] == coupling.upper_shape((2, size, size))
    h = normal(*up.shape)
    down = coupling.field(0, h)
    assert down.shape == v.shape
    assert torch.allclose((up * h).flatten(1).sum(1), (down * v).flatten(1).sum(1), rtol=1e-12, atol=1e-12)
    assert torch.equal(up, conv2d(v, coupling.weight, stride=stride, padding=padding))


@pytest.mark.parametrize("channels", [1, 3, 8, 9])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(4, 2, 1), (2, 2, 0), (6, 3, 2), (6, 2, 2), (8, 4, 2), (3, 2, 1)]
)
def test_few_channels_are_convolved_downwards_block_by_block(
    channels: int, kernel: int, stride: int, padding: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    coupling = Conv2d(channels, 5, kernel=kernel, stride=stride, padding=padding).double()
    h, b = normal(2, 4, 5, 3, 4), normal(channels, 1, 1)
    expected = conv_transpose2d(h.flatten(0, 1), coupling.weight, b.flatten(), stride=stride, padding=padding)
    by_blocks = channels <= 8 and kernel % stride == 0
    monkeypatch.setattr("harmonium.couplings.conv2d.conv_transpose2d", None if by_blocks else conv_transpose2d)
    found = coupling.biased_field(b, 0, h)
    assert torch.allclose(found.flatten(0, 1), expected, rtol=1e-12, atol=1e-12)
    assert found[0].is_contiguous(memory_format=torch.channels_last)
    assert torch.allclose(coupling.field(0, h), found - b, rtol=1e-12, atol=1e-12)
    (slope,) = torch.autograd.grad(coupling.field(0, h).square().sum(), coupling.weight)
    assert slope.abs().sum() > 0


def test_convolution_that_does_not_fit() -> None:
    coupling = Conv2d(3, 8, kernel=4, stride=2, padding=1)
    with pytest.raises(
        ValueError, match=r"does not tile a side of 7: \(7 \+ 2·1 - 4\) must be a multiple of the stride 2"
    ):
        coupling.upper_shape((3, 7, 8))
    with pytest.raises(ValueError, match=r"needs a lower layer of shape \(3, height, width\). Got \(1, 8, 8\)"):
        coupling.upper_shape((1, 8, 8))
    with pytest.raises(ValueError, match="does not tile a side of 1"):
        Conv2d(3, 8, kernel=4).upper_shape((3, 1, 8))
    with pytest.raises(ValueError, match=r"needs a layer 'hidden' of shape \(8, 4, 4\). Got Bernoulli\(8, 5, 4\)"):
        RBM(Bernoulli(3, 8, 8), Bernoulli(8, 5, 4), coupling)
    with pytest.raises(ValueError, match=r"needs a lower layer of shape \(3, height, width\). Got \(192,\)"):
        RBM(Bernoulli(192), Bernoulli(8, 4, 4), coupling)
    with pytest.raises(ValueError, match="Got kernel=0, stride=1, padding=0"):
        Conv2d(3, 8, kernel=0)


def test_convolutional_machine_of_the_design() -> None:
    machine = RBM(
        Multinary(3, 8, 8, levels=255),
        Multinary(4, 4, 4, levels=255),
        Conv2d(3, 4, kernel=4, stride=2, padding=1),
    )
    assert machine.visible_bias.shape == (3, 1, 1)
    assert machine.hidden_bias.shape == (4, 1, 1)
    v = torch.rand(2, 3, 8, 8, generator=torch.Generator()) * 255
    assert machine.free_energy(v).shape == (2,)
    assert machine.reconstruct(v).shape == v.shape


def test_shared_bias_covers_the_image() -> None:
    """The field of a shared bias alone has the shape of the layer, with and without a batch."""
    machine = BoltzmannMachine(
        {"x": Bernoulli(2, 3, 3), "y": Bernoulli(4)},
        [(("x",), Bias((2, 3, 3), shared=True)), (("y",), Bias(4))],
    )
    assert machine.field("x", {"y": torch.zeros(4)}).shape == (2, 3, 3)
    assert machine.field("x", {"y": torch.zeros(5, 4)}).shape == (5, 2, 3, 3)
    assert machine.energy({"y": torch.zeros(5, 4)}).shape == (5,)


def test_weights_start_small_and_follow_the_generator() -> None:
    first, second = (Dense(40, 50, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first.weight, second.weight)
    assert 0.009 < first.weight.std().item() < 0.011
    assert torch.equal(Bias(3).bias, torch.zeros(3))


@pytest.mark.parametrize(
    ("coupling", "text"),
    [
        (Dense(3, (1, 2)), "Dense(left=(3,), right=(1, 2))"),
        (Bias((2, 1), shared=True), "Bias(shape=(2, 1), shared=True)"),
        (Conv2d(1, 2, kernel=3), "Conv2d(lower_channels=1, upper_channels=2, kernel=3, stride=1, padding=0)"),
    ],
)
def test_repr_shows_the_arguments(coupling: Dense, text: str) -> None:
    assert repr(coupling) == text
