"""Products of both libraries against double precision."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import harmonium as hm
from harmonium import products

SHAPES = [((5, 7), 3), ((2, 4, 7), 3), ((1, 7), 1), ((0, 7), 3), ((64, 100), 200)]


@pytest.fixture(params=["mkl", "onednn"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let every product go to one library, however small it is."""
    if request.param == "onednn" and not torch.backends.mkldnn.is_available():
        pytest.skip("This build of PyTorch has no oneDNN.")
    monkeypatch.setattr(products, "ONEDNN", request.param == "onednn")
    monkeypatch.setattr(products, "SMALL", 0)
    monkeypatch.setattr(products, "SMALL_SUM", 0)
    return request.param


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def agree(found: Tensor, exact: Tensor, n: int) -> bool:
    """Return whether sums of n products of normal numbers agree up to the rounding of single precision."""
    return bool(((found.double() - exact).abs() <= 1e-6 * n).all())


@pytest.mark.parametrize(("shape", "m"), SHAPES)
@pytest.mark.parametrize("with_bias", [False, True])
def test_a_product(library: str, shape: tuple[int, ...], m: int, with_bias: bool) -> None:
    left, right, bias = normal(*shape), normal(shape[-1], m, seed=1), normal(m, seed=2)
    exact = left.double() @ right.double() + (bias.double() if with_bias else 0)
    found = products.product(left, right, bias if with_bias else None)
    assert found.shape == exact.shape
    assert found.dtype == torch.float32
    assert agree(found, exact, shape[-1])
    if exact.numel():
        assert not agree(found + 1e-3, exact, shape[-1])  # the comparison can fail


@pytest.mark.parametrize("lie", ["transposed", "every other", "offset"])
def test_however_it_lies_in_memory(library: str, lie: str) -> None:
    left = {
        "transposed": normal(70, 20).t(),
        "every other": normal(20, 140)[:, ::2],
        "offset": normal(21, 70)[1:],
    }[lie]
    right = normal(30, 70, seed=1).t()
    assert agree(products.product(left, right), left.double() @ right.double(), 70)


def test_a_gradient_is_added_to(library: str) -> None:
    parameter = nn.Parameter(normal(6, 4))
    v, h = normal(9, 6, seed=1), normal(9, 4, seed=2)
    exact = v.double().t() @ h.double()
    products.add_product(parameter, v.t(), h, 0.5)
    assert parameter.grad is not None
    assert agree(parameter.grad, 0.5 * exact, 9)
    products.add_product(parameter, v.t(), h, -2.0)
    assert agree(parameter.grad, -1.5 * exact, 9)
    assert not agree(parameter.grad, 0.5 * exact, 9)


@pytest.mark.parametrize("n_model", [9, 4])
def test_a_contrast_is_the_difference_of_two_products(library: str, n_model: int) -> None:
    parameter = nn.Parameter(normal(6, 4))
    v, h = normal(9, 6, seed=1), normal(9, 4, seed=2)
    x, y = normal(n_model, 6, seed=3), normal(n_model, 4, seed=4)
    products.make_contrast(parameter, (x, y, 0.5), (v, h, -2.0))
    model, data = x.double().t() @ y.double(), v.double().t() @ h.double()
    assert parameter.grad is not None
    assert agree(parameter.grad, 0.5 * model - 2.0 * data, 2 * (9 + n_model))
    assert not agree(parameter.grad, 0.5 * data - 2.0 * model, 2 * (9 + n_model))


def test_autograd_sees_a_product(library: str) -> None:
    left, right = normal(8, 5), normal(5, 3, seed=1).requires_grad_()
    products.product(left, right).sum().backward()
    assert right.grad is not None
    assert agree(right.grad, left.double().t() @ torch.ones(8, 3).double(), 8)


def test_the_same_bits_twice(library: str) -> None:
    left, right = normal(33, 65), normal(65, 17, seed=1)
    assert torch.equal(products.product(left, right), products.product(left.clone(), right.clone()))


@pytest.mark.parametrize("hidden", [hm.Bernoulli(12), hm.Categorical(3, 4)], ids=repr)
def test_learning_by_either_library_is_the_same_up_to_rounding(
    library: str, hidden: hm.Bernoulli | hm.Categorical, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gradients() -> list[Tensor]:
        generator = torch.Generator().manual_seed(0)
        rbm = hm.RBM(hm.Bernoulli(20), hidden, generator=generator)
        x = torch.randint(0, 2, (16, 20), generator=generator).float()
        hm.PCD(n_steps=1).accumulate_grad(rbm, {"visible": x}, generator=generator)
        return [p.grad for p in rbm.parameters() if p.grad is not None]

    found = gradients()
    monkeypatch.setattr(products, "ONEDNN", False)
    for ours, plain in zip(found, gradients(), strict=True):
        assert torch.allclose(ours, plain, atol=1e-6)


def test_double_precision_stays_double() -> None:
    left, right = normal(5, 4).double(), normal(4, 3, seed=1).double()
    assert torch.equal(products.product(left, right), left @ right)
