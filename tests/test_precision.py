"""Half precision, autocast, inference mode and compiled models: they work, or say that they do not."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import harmonium as hm
from harmonium.draws import draw_bernoulli, draw_categorical

HALF = [torch.float16, torch.bfloat16]


def machine() -> hm.RBM:
    rbm = hm.RBM(hm.Bernoulli(5), hm.Categorical(2, 3), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        rbm.weight.mul_(100)
    return rbm


@pytest.mark.parametrize("dtype", HALF)
def test_draws_in_half_precision_are_those_of_single_precision(dtype: torch.dtype) -> None:
    p = torch.linspace(0, 1, 4000).to(dtype)
    drawn = draw_bernoulli(p, generator=torch.Generator().manual_seed(0))
    assert drawn.dtype == dtype
    assert torch.equal(drawn.float(), draw_bernoulli(p.float(), generator=torch.Generator().manual_seed(0)))
    shares = torch.tensor([1e-4, 0.3, 0.7]).to(dtype).expand(50_000, 3)
    rare = draw_categorical(shares, generator=torch.Generator().manual_seed(0))[:, 0].float().sum()
    assert rare < 30  # of 5; in half precision itself 2⁻⁸ of the numbers would be rounded to 0: 200


@pytest.mark.parametrize("dtype", HALF)
def test_samples_of_a_model_in_half_precision_follow_its_law(dtype: torch.dtype) -> None:
    rbm = machine().to(dtype)
    drawn = hm.sample(rbm, 2000, n_steps=30, generator=torch.Generator().manual_seed(0))
    assert drawn.dtype == dtype
    exact = hm.sample(rbm.float(), 2000, n_steps=30, generator=torch.Generator().manual_seed(1))
    assert (drawn.float().mean(0) - exact.mean(0)).abs().max() < 0.09  # 5.7 standard errors of a difference


@pytest.mark.parametrize("dtype", HALF)
def test_learning_in_half_precision_is_refused_in_words(dtype: torch.dtype) -> None:
    with pytest.raises(TypeError, match=r"model.float\(\)"):
        hm.fit(machine().to(dtype), torch.ones(4, 5), epochs=1)


def learned(within: Callable[[], object] | None = None) -> Tensor:
    rbm, x = machine(), (torch.arange(100).reshape(20, 5) % 3 == 0).float()
    generator = torch.Generator().manual_seed(0)
    if within is None:
        hm.fit(rbm, x, hm.PCD(n_chains=4), epochs=2, batch_size=10, generator=generator)
    else:
        with within():  # type: ignore[attr-defined]
            hm.fit(rbm, x, hm.PCD(n_chains=4), epochs=2, batch_size=10, generator=generator)
    return rbm.weight.detach().clone()


@pytest.mark.parametrize(
    "within", [lambda: torch.autocast("cpu", dtype=torch.bfloat16), torch.inference_mode, torch.no_grad]
)
def test_learning_is_the_same_inside_of_a_context(within: Callable[[], object]) -> None:
    assert torch.equal(learned(within), learned())


def test_sampling_works_under_autocast() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        drawn = hm.sample(machine(), 8, n_steps=2, generator=torch.Generator().manual_seed(0))
    assert bool(((drawn == 0) | (drawn == 1)).all())


@pytest.mark.parametrize(
    "work",
    [
        lambda model: hm.fit(model, torch.ones(4, 5), epochs=1),
        lambda model: hm.sample(model, 2),
        hm.log_z,
        lambda model: hm.log_likelihood(model, torch.ones(4, 5)),
    ],
)
def test_a_compiled_machine_is_refused_in_words(work: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match=r"torch.compile"):
        work(torch.compile(machine(), backend="eager"))


def test_a_compiled_network_inside_of_an_energy_is_taken() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.SiLU(), torch.nn.Linear(4, 3))
    compiled = hm.JEM(torch.compile(copy.deepcopy(net), backend="eager"), shape=(2,))
    x = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(compiled.free_energy(x), hm.JEM(net, shape=(2,)).free_energy(x))
