"""Weights of 16 bits against the same weights as floats, and machines with them against counting."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor

import harmonium as hm
from harmonium import planes
from harmonium.couplings import Rounded
from harmonium.partition import log_z_shift
from harmonium.planes import Planes


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def machine(scale: float = 1.0) -> hm.RBM:
    rbm = hm.RBM(hm.Bernoulli(6), hm.Bernoulli(4))
    with torch.no_grad():
        for i, parameter in enumerate(rbm.parameters()):
            parameter.copy_(scale * normal(*parameter.shape, seed=i))
    return rbm


def require_exact() -> None:
    if not planes.is_exact():
        pytest.skip("products of bytes saturate with these instructions, and are not used")


@pytest.fixture(params=[True, False], ids=["bytes", "floats"])
def in_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Multiply as bytes or not, whatever the processor is fast at."""
    if request.param:
        require_exact()
    monkeypatch.setattr(planes, "INTEGERS", request.param)
    return request.param


@pytest.mark.parametrize("scale", [1e-3, 1.0, 7.3, 1e4])
def test_the_grid_is_as_fine_as_16_bits_allow(scale: float) -> None:
    weight = scale * normal(50, 30)
    made = Planes.of(weight)
    largest = float(weight.abs().max())
    assert 127 * 256 / 2 < largest / made.step <= 127 * 256 + 127
    assert ((made.weight() - weight).abs() <= made.step / 2).all()
    assert torch.equal(Planes.of(made.weight()).weight(), made.weight())  # what lies on the grid stays
    assert not torch.equal(made.weight(), weight)


def test_weights_that_are_all_zero() -> None:
    assert not Planes.of(torch.zeros(3, 2)).weight().any()


@pytest.mark.parametrize("values", ["bits", "spins", "levels", "means"])
@pytest.mark.parametrize("to", [0, 1])
@pytest.mark.parametrize("batch", [(5,), (2, 3), ()])
def test_fields_are_those_of_the_rounded_weights(in_bytes: bool, values: str, to: int, batch: tuple[int, ...]) -> None:
    rounded = Rounded.of(hm.Dense(40, 30, generator=torch.Generator().manual_seed(0)))
    x = normal(*batch, (30, 40)[to], seed=1)
    x = {"bits": (x > 0).float(), "spins": x.sign(), "levels": (20 * x).round().clamp(-128, 127), "means": x}[values]
    weight = rounded.weight.double()
    exact = x.double() @ (weight.t() if to == 0 else weight)
    found = rounded.field(to, x)
    assert found.shape == exact.shape
    assert torch.allclose(found.double(), exact, atol=1e-6, rtol=1e-6)
    assert not torch.allclose(found.double() + rounded.planes.step, exact, atol=1e-6, rtol=1e-6)


def test_whole_numbers_lose_nothing_but_the_last_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    require_exact()
    monkeypatch.setattr(planes, "INTEGERS", True)
    rounded = Rounded.of(hm.Dense(784, 3, generator=torch.Generator().manual_seed(0)))
    x = (normal(64, 784, seed=1) > 0).float()
    exact = x.double() @ rounded.weight.double()
    assert torch.equal(rounded.field(1, x), exact.float())


def test_sums_beyond_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    require_exact()
    monkeypatch.setattr(planes, "INTEGERS", True)
    made = Planes.of(torch.full((2000, 2), 3.0))
    x = torch.full((4, 2000), 127.0)
    assert made.product(x)[0, 0].item() == 3.0 * 127 * 2000  # type: ignore[index]


def test_products_that_saturate_are_not_used() -> None:
    assert planes.is_exact() or not planes.INTEGERS


def test_steps_say_whether_they_used_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harmonium.couplings.rounded.INTEGERS", True)
    for rbm, used in ((machine().rounded(), True), (machine(), False)):
        sampler = hm.Gibbs()
        _, info = sampler.step(rbm, sampler.init(rbm, torch.zeros(2, 6)))
        assert info["bytes"] is used


def test_a_rounded_machine_is_the_machine_of_its_weights(in_bytes: bool) -> None:
    rbm = machine()
    rounded, plain = rbm.rounded(), machine()
    with torch.no_grad():
        plain.weight.copy_(rounded.weight)
    assert hm.exact_log_z(rounded).value == pytest.approx(hm.exact_log_z(plain).value, abs=1e-5)
    x = (normal(8, 6) > 0).float()
    assert torch.allclose(rounded.free_energy(x), plain.free_energy(x), atol=1e-5)
    assert torch.equal(rounded.visible_bias, rbm.visible_bias)


def test_saved_and_copied(tmp_path: Path, in_bytes: bool) -> None:
    rounded = machine().rounded()
    x = (normal(8, 6) > 0).float()
    fields = rounded.field("hidden", {"visible": x})
    rounded.save(tmp_path / "rounded.safetensors")
    loaded = hm.load(tmp_path / "rounded.safetensors")
    for same in (loaded, copy.deepcopy(rounded)):
        assert torch.equal(same.field("hidden", {"visible": x}), fields)
    other = machine(2.0).rounded()
    other.load_state_dict(rounded.state_dict())
    assert torch.equal(other.field("hidden", {"visible": x}), fields)


@torch.no_grad()
def test_the_shift_of_log_z_lies_between_its_bounds() -> None:
    rbm, coarse = machine(), machine()
    with torch.no_grad():  # a grid far coarser than 16 bits, so that there is something to see
        coarse.weight.copy_((rbm.weight / 0.25).round() * 0.25)
    exact = hm.exact_log_z(coarse).value - hm.exact_log_z(rbm).value
    assert abs(exact) > 0.02
    states = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * 6)
    means = []
    for law in (rbm, coarse):  # the bounds themselves, by counting
        p = torch.softmax(-law.double().free_energy(states.double()), 0)
        change = rbm.double().free_energy(states.double()) - coarse.double().free_energy(states.double())
        means.append((p @ change).item())
    assert means[0] <= exact <= means[1]
    rbm, coarse = rbm.float(), coarse.float()
    generator = torch.Generator().manual_seed(0)
    x, y = (hm.sample(law, 4000, n_steps=100, generator=generator) for law in (rbm, coarse))
    shift = log_z_shift(rbm, coarse, x, y)
    assert shift.lower <= exact <= shift.upper
    assert means[0] - 12 * shift.error <= shift.lower <= means[0]
    assert means[1] <= shift.upper <= means[1] + 12 * shift.error
    assert abs(log_z_shift(rbm, rbm.rounded(), x, x).value) < 1e-3


def test_what_cannot_be_rounded_is_said() -> None:
    with pytest.raises(ValueError, match="single precision"):
        machine().double().rounded()
    with pytest.raises(ValueError, match="at least two samples"):
        log_z_shift(machine(), machine(), torch.zeros(1, 6), torch.zeros(1, 6))
