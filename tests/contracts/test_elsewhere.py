"""Nothing assumes the CPU: every unit, coupling, sampler and objective works on another device, to the same numbers."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch

from harmonium import native
from harmonium.couplings import Coupling
from harmonium.draws import draw_normal
from harmonium.samplers import Sampler
from harmonium.testing import ALL_COUPLINGS, ALL_OBJECTIVES, ALL_SAMPLERS, ALL_UNITS, tiny_rbm
from harmonium.types import as_state
from harmonium.units import Binomial, Multinary, Poisson, Units
from tests.elsewhere import Elsewhere, TwoDevicesError, elsewhere


@pytest.fixture(autouse=True)
def no_loops_of_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides draw by PyTorch, so that the numbers can be compared."""
    monkeypatch.setattr(native, "LIBRARY", None)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def away(x: torch.Tensor) -> torch.Tensor:
    return x.to("meta")


@pytest.mark.parametrize("make", ALL_UNITS, ids=lambda make: repr(make()))
def test_units(make: Callable[[], Units]) -> None:
    units = make().double()
    field = draw_normal(torch.empty(5, *units.shape, dtype=torch.float64), generator=seeded())
    with elsewhere():
        there = copy.deepcopy(units).to("meta")
        for name in ("mean", "variance", "mode", "log_partition"):
            found = getattr(there, name)(away(field))
            assert isinstance(found, Elsewhere), name
            torch.testing.assert_close(found.held, getattr(units, name)(field))
        found = there.sample(away(field), generator=seeded())
        assert isinstance(found, Elsewhere)
        if not isinstance(units, Binomial | Multinary | Poisson):  # these draws have no values on the `meta` device
            torch.testing.assert_close(found.held, units.sample(field, generator=seeded()))


@pytest.mark.parametrize(("make", "shapes"), ALL_COUPLINGS, ids=lambda value: repr(value()) if callable(value) else "")
def test_couplings(make: Callable[[], Coupling], shapes: tuple[tuple[int, ...], ...]) -> None:
    coupling = make().double()
    xs = [draw_normal(torch.empty(4, *shape, dtype=torch.float64), generator=seeded()) for shape in shapes]
    with elsewhere():
        there = copy.deepcopy(coupling).to("meta")
        far = [away(x) for x in xs]
        for to in range(len(xs)):
            others = [x for i, x in enumerate(far) if i != to]
            expected = coupling.field(to, *(x for i, x in enumerate(xs) if i != to))
            torch.testing.assert_close(there.field(to, *others).held, expected)
        there.accumulate_grad(1.0, *far)
        coupling.accumulate_grad(1.0, *xs)
        for found, expected in zip(there.parameters(), coupling.parameters(), strict=True):
            torch.testing.assert_close(found.grad.held, expected.grad)


@pytest.mark.parametrize("make", ALL_SAMPLERS, ids=lambda make: repr(make()))
def test_samplers(make: Callable[[], Sampler]) -> None:
    sampler = make()
    for visible in ("Bernoulli", "Gaussian"):
        model = tiny_rbm(visible, "Bernoulli").double()
        start = model.initial(6, generator=seeded(1))
        try:
            state = sampler.init(model, start[model.data_layer], generator=seeded(2))
        except TypeError:
            continue  # it follows a slope, which binary units have not
        state, _ = sampler.step(model, state, generator=seeded(3))
        with elsewhere():
            there = copy.deepcopy(model).to("meta")
            found = sampler.init(there, away(start[model.data_layer]), generator=seeded(2))
            found, _ = sampler.step(there, found, generator=seeded(3))
            for name, value in state.items():
                assert isinstance(found[name], Elsewhere), name
                torch.testing.assert_close(found[name].held, value)


@pytest.mark.parametrize("name", ALL_OBJECTIVES)
def test_objectives(name: str) -> None:
    case = ALL_OBJECTIVES[name]
    objective, other = (case.objective(generator=seeded()) for _ in range(2))
    batch = as_state(case.draw(6, generator=seeded(1)), "x")
    model = copy.deepcopy(case.model)
    model.zero_grad(set_to_none=True)
    with elsewhere():
        there = copy.deepcopy(model).to("meta")
        other.load_state_dict({key: away(value) for key, value in other.state_dict().items()})
        far = {key: away(value) for key, value in batch.items()}
        with torch.no_grad():
            objective.accumulate_grad(model, batch, generator=seeded(2))
            other.accumulate_grad(there, far, generator=seeded(2))
        for (key, found), expected in zip(there.named_parameters(), model.parameters(), strict=True):
            if expected.grad is not None:
                assert isinstance(found.grad, Elsewhere), key
                torch.testing.assert_close(found.grad.held, expected.grad)


def test_a_tensor_of_the_cpu_is_refused() -> None:
    """The control."""
    with elsewhere():
        x = away(torch.ones(3))
        assert x.device.type == "meta" and x.sum().item() == 3.0
        with pytest.raises(TwoDevicesError):
            x + torch.ones(3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("name", ALL_OBJECTIVES)
def test_objectives_on_a_gpu(name: str) -> None:
    case = ALL_OBJECTIVES[name]
    objective, model = case.objective(generator=seeded()), copy.deepcopy(case.model).cuda()
    objective.load_state_dict({key: value.cuda() for key, value in objective.state_dict().items()})
    batch = as_state(case.draw(6, generator=seeded(1)), "x")
    with torch.no_grad():
        objective.accumulate_grad(model, {key: value.cuda() for key, value in batch.items()}, generator=seeded(2))
    assert all(p.grad is None or (p.grad.is_cuda and bool(p.grad.isfinite().all())) for p in model.parameters())
