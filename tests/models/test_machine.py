"""What follows from the graph: partial energies, gradients, blocks, temperatures, for every pair of units."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from harmonium.couplings import Bias, Conv2d, Dense, Symmetric, ThirdOrder
from harmonium.models import RBM, BoltzmannMachine, Tempered
from harmonium.samplers import Gibbs
from harmonium.testing import (
    ALL_MACHINES,
    TINY_UNITS,
    scatter,
    tiny_boltzmann_machine,
    tiny_deep_machine,
    tiny_gated_machine,
    tiny_rbm,
)
from harmonium.units import Bernoulli, Categorical, Gaussian, Mixed, Multinary, NReLU, Poisson, Spin, Units

PAIRS = list(itertools.product(TINY_UNITS, TINY_UNITS))


def grid(units: Units) -> tuple[Tensor, float]:
    """Points that cover a layer, `(n, *shape)`, and the logarithm of the volume of each: brute force for the sums."""
    if isinstance(units, Mixed):
        layers = [grid(part) for part in units.parts]  # type: ignore[arg-type]
        index = torch.cartesian_prod(*(torch.arange(len(points)) for points, _ in layers))
        pieces = [points[index[:, i]] for i, (points, _) in enumerate(layers)]
        return units.join(pieces), sum(volume for _, volume in layers)
    n = units.n_configurations()
    if n is not None:
        return units.configurations(torch.arange(n)), 0.0
    n_units = math.prod(units.shape)
    real = units.support == "real"
    axis = torch.linspace(-15, 15, 151, dtype=torch.float64) if real else torch.arange(80, dtype=torch.float64)
    points = torch.cartesian_prod(*[axis] * n_units).reshape(-1, *units.shape)
    return points, n_units * math.log(30 / 150) if real else 0.0


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_partial_energy_is_a_sum(visible: str, hidden: str, generator: torch.Generator) -> None:
    """`E(v) = -log Σ_h e^{-E(v, h)}` and the same for h, by brute force, for every pair of units."""
    rbm = tiny_rbm(visible, hidden, generator=generator)
    for present, missing in (("visible", "hidden"), ("hidden", "visible")):
        points, log_volume = grid(rbm.layer(missing))
        x = rbm.layer(present).sample(torch.zeros(3, *rbm.layer(present).shape).double(), generator=generator).detach()
        states = {
            present: x[:, None].expand(3, len(points), *x.shape[1:]),
            missing: points.expand(3, *points.shape),
        }
        expected = -((-rbm.energy(states)).logsumexp(1) + log_volume)
        assert torch.allclose(rbm.energy({present: x}), expected, rtol=1e-9, atol=1e-9)


def gradients(machine: BoltzmannMachine) -> list[Tensor]:
    result = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in machine.parameters()]
    machine.zero_grad()
    return result


GRADIENT_UNITS: dict[str, Callable[[], Units]] = {
    **TINY_UNITS,
    "smooth": lambda: Multinary(2, levels=5),
    "table": lambda: Mixed(Gaussian(1), Categorical(1, 2), Gaussian(2)),
}


@pytest.mark.parametrize(("visible", "hidden"), list(itertools.product(GRADIENT_UNITS, GRADIENT_UNITS)), ids=str)
def test_closed_form_gradient(visible: str, hidden: str, generator: torch.Generator) -> None:
    """`accumulate_grad` against autograd of the energy to 1e-10: a side missing or none, weighted samples, σ too."""
    rbm = scatter(RBM(GRADIENT_UNITS[visible](), GRADIENT_UNITS[hidden]()), generator=generator)
    with torch.no_grad():
        for parameter in rbm.units.parameters():
            parameter.add_(torch.empty_like(parameter).normal_(generator=generator) * 0.2)
    full = {
        name: rbm.layer(name).sample(torch.zeros(4, *rbm.layer(name).shape).double(), generator=generator).detach()
        for name in ("visible", "hidden")
    }
    weights: list[Tensor | float] = [1.0, torch.randn(4, generator=generator, dtype=torch.float64)]
    for layers, weight in itertools.product((["visible"], ["hidden"], ["visible", "hidden"]), weights):
        state = {name: full[name] for name in layers}
        (rbm.energy(state) * weight).sum().backward()
        exact = gradients(rbm)
        rbm.accumulate_grad(state, weight)
        for found, expected in zip(gradients(rbm), exact, strict=True):
            assert torch.allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("make", [tiny_boltzmann_machine, tiny_deep_machine, tiny_gated_machine])
def test_closed_form_gradient_of_other_graphs(
    make: Callable[..., BoltzmannMachine], generator: torch.Generator
) -> None:
    machine = make(generator=generator)
    state = {name: value.detach().double() for name, value in machine.initial(5, generator=generator).items()}
    machine.energy(state).sum().backward()
    exact = gradients(machine)
    machine.accumulate_grad(state)
    for found, expected in zip(gradients(machine), exact, strict=True):
        assert torch.allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("pair", [("Bernoulli", "Gaussian"), ("Gaussian", "Spin"), ("Mixed", "Categorical")])
@pytest.mark.parametrize("beta", [0.3, torch.tensor([0.2, 1.0], dtype=torch.float64)])
def test_closed_form_gradient_of_a_tempered_machine(
    pair: tuple[str, str], beta: Tensor | float, generator: torch.Generator
) -> None:
    rbm = tiny_rbm(*pair, generator=generator)
    reference = torch.randn(rbm.visible.shape, generator=generator, dtype=torch.float64)
    tempered = Tempered(rbm, beta, reference)
    v = rbm.visible.sample(torch.zeros(2, 3, *rbm.visible.shape).double(), generator=generator).detach()
    tempered.energy(v).sum().backward()
    exact = gradients(rbm)
    tempered.accumulate_grad(v)
    for found, expected in zip(gradients(rbm), exact, strict=True):
        assert torch.allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_wrong_gradient_is_seen() -> None:
    """Negative control: the gradient at a draw instead of the mean is not the gradient of the free energy."""
    rbm = tiny_rbm("Bernoulli", "Bernoulli")
    v = torch.ones(1, 4, dtype=torch.float64)
    rbm.free_energy(v).sum().backward()
    exact = gradients(rbm)
    rbm.accumulate_grad({"visible": v, "hidden": rbm.hidden_mean(v).round().detach()})
    assert not torch.allclose(gradients(rbm)[0], exact[0], atol=1e-3)


def test_frozen_parameters_get_no_gradient() -> None:
    rbm = tiny_rbm("Gaussian", "Bernoulli")
    rbm.couplings[0].requires_grad_(False)
    rbm.visible.requires_grad_(False)
    rbm.accumulate_grad(torch.zeros(2, 2, dtype=torch.float64))
    assert rbm.weight.grad is None
    assert all(parameter.grad is None for parameter in rbm.visible.parameters())
    assert rbm.hidden_bias.grad is not None


# --- the graph --------------------------------------------------------------------------------------------------------
def test_blocks() -> None:
    assert tiny_rbm("Spin", "Spin").blocks() == [("visible",), ("hidden",)]
    assert tiny_deep_machine().blocks() == [("visible", "top"), ("middle",)]
    assert tiny_boltzmann_machine().blocks() == [("x",)]
    assert tiny_gated_machine().blocks() == [("visible",), ("gate",), ("slab",)]


def test_ties() -> None:
    machine = tiny_deep_machine()
    assert machine.ties("visible", "middle")
    assert machine.ties("top", "middle")
    assert not machine.ties("visible", "top")
    assert not machine.ties("visible", "visible")
    assert tiny_boltzmann_machine().ties("x", "x")


def test_intractable_energy_names_the_layer() -> None:
    deep = BoltzmannMachine(
        {"visible": Bernoulli(3), "middle": Spin(12), "top": Bernoulli(12)},
        [(("visible", "middle"), Dense(3, 12)), (("middle", "top"), Dense(12, 12))],
    )
    with pytest.raises(
        ValueError,
        match=r"intractable: Dense ties the missing layers 'middle' and 'top', which have too many configurations to "
        r"count \(the limit is 256\). Give layer 'top' in the state",
    ):
        deep.energy({"visible": torch.zeros(3)})
    assert deep.energy({"middle": torch.ones(12)}).shape == ()
    gated = BoltzmannMachine(
        {"visible": Bernoulli(3), "gate": Bernoulli(12), "slab": Gaussian(2)},
        [(("visible", "gate", "slab"), ThirdOrder(3, 12, 2))],
    )
    with pytest.raises(ValueError, match="ThirdOrder ties the missing layers 'gate' and 'slab'"):
        gated.infer(torch.zeros(3))


@pytest.mark.parametrize("make", [tiny_deep_machine, tiny_gated_machine])
def test_tied_layers_of_few_configurations_are_summed_out(make: Callable[..., BoltzmannMachine]) -> None:
    """The machines that were intractable when no layer was counted, against brute force over both hidden layers."""
    machine = make()
    first, second = machine.layers[1:]
    (points, volume), (others, other_volume) = grid(machine.layer(first)), grid(machine.layer(second))
    i, j = torch.cartesian_prod(torch.arange(len(points)), torch.arange(len(others))).unbind(1)
    for v in Bernoulli(3).configurations(torch.arange(8)):
        log_weights = -machine.energy({"visible": v.expand(len(i), 3), first: points[i], second: others[j]})
        expected = -(log_weights.logsumexp(0) + volume + other_volume)
        assert machine.energy({"visible": v}).item() == pytest.approx(expected.item(), abs=1e-9)
        means = machine.infer(v)
        share = log_weights.softmax(0)[:, None]
        assert torch.allclose(means[first], (share * points[i]).sum(0), atol=1e-9)
        assert torch.allclose(means[second], (share * others[j]).sum(0), atol=1e-9)


def test_energy_of_two_missing_layers_that_are_not_tied() -> None:
    machine = tiny_deep_machine()
    middle = torch.tensor([1.0, -1.0], dtype=torch.float64)
    states = Bernoulli(3).configurations(torch.arange(8)), Bernoulli(2).configurations(torch.arange(4))
    total = 0.0
    for v, top in itertools.product(*states):
        total += math.exp(-machine.energy({"visible": v, "middle": middle, "top": top}).item())
    assert machine.energy({"middle": middle}).item() == pytest.approx(-math.log(total), abs=1e-12)


def test_infer_is_the_mean() -> None:
    rbm = tiny_rbm("Bernoulli", "Spin")
    v = torch.ones(2, 4, dtype=torch.float64)
    assert torch.equal(rbm.infer(v)["hidden"], rbm.hidden_mean(v))
    assert torch.equal(rbm.reconstruct(v), rbm.visible_mean(rbm.hidden_mean(v)))
    given_both = rbm.infer({"visible": v, "hidden": torch.ones(2, 4, dtype=torch.float64)})
    assert torch.equal(given_both["hidden"], torch.ones(2, 4, dtype=torch.float64))


def test_energy_of_a_boltzmann_machine(generator: torch.Generator) -> None:
    """`E(x) = -½ xᵀWx - bᵀx` (lecture notes)."""
    machine = tiny_boltzmann_machine(generator=generator)
    symmetric, bias = machine.couplings
    assert isinstance(symmetric, Symmetric)
    assert isinstance(bias, Bias)
    x = Spin(4).configurations(torch.arange(16))
    W = symmetric.matrix()
    assert torch.allclose(machine.energy(x), -((x @ W) * x).sum(1) / 2 - x @ bias.bias, rtol=1e-13, atol=1e-13)
    assert torch.allclose(machine.field("x", {"x": x}), x @ W + bias.bias, rtol=1e-13, atol=1e-13)


# --- temperature ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("pair", [("Bernoulli", "Spin"), ("Gaussian", "Bernoulli"), ("Poisson", "Categorical")])
def test_temperatures(pair: tuple[str, str], generator: torch.Generator) -> None:
    rbm = tiny_rbm(*pair, generator=generator)
    v = rbm.visible.sample(torch.zeros(6, *rbm.visible.shape).double(), generator=generator).detach()
    reference = torch.randn(rbm.visible.shape, generator=generator, dtype=torch.float64)
    hot, own = Tempered(rbm, 0.0, reference), Tempered(rbm, 1.0, reference)
    assert torch.allclose(own.free_energy(v), rbm.free_energy(v), rtol=1e-12, atol=1e-12)
    zero = torch.zeros(rbm.hidden.shape, dtype=torch.float64)
    alone = -rbm.visible.inner(reference, v) - rbm.visible.total(rbm.visible.log_base(v))
    expected = alone - rbm.hidden.total(rbm.hidden.log_partition(zero))
    assert torch.allclose(hot.free_energy(v), expected, rtol=1e-12, atol=1e-12)
    assert torch.allclose(hot.field("visible", {"hidden": zero}), reference, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("reference", [None, [0.5, -1.0, 0.0, 2.0]])
def test_a_tensor_of_temperatures_is_a_batch_axis(reference: list[float] | None, generator: torch.Generator) -> None:
    rbm = tiny_rbm("Bernoulli", "Gaussian", generator=generator)
    field = None if reference is None else torch.tensor(reference, dtype=torch.float64)
    betas = torch.tensor([0.0, 0.3, 1.0], dtype=torch.float64)
    v = torch.randint(2, (3, 5, 4), generator=generator).double()
    h = torch.randn(3, 5, 2, generator=generator, dtype=torch.float64)
    ladder = Tempered(rbm, betas, field)
    for i, beta in enumerate(betas.tolist()):
        one = Tempered(rbm, beta, field)
        assert torch.allclose(ladder.energy(v)[i], one.energy(v[i]), rtol=1e-12, atol=1e-12)
        assert torch.allclose(ladder.energy({"hidden": h})[i], one.energy({"hidden": h[i]}), rtol=1e-12, atol=1e-12)
        joint = {"visible": v, "hidden": h}
        one_joint = {"visible": v[i], "hidden": h[i]}
        assert torch.allclose(ladder.energy(joint)[i], one.energy(one_joint), rtol=1e-12, atol=1e-12)
        for layer in ("visible", "hidden"):
            assert torch.allclose(ladder.field(layer, joint)[i], one.field(layer, one_joint), rtol=1e-12, atol=1e-12)


def test_tempering_scales_couplings_not_base_measures() -> None:
    rbm = tiny_rbm("Gaussian", "Bernoulli")
    state = {"visible": torch.ones(2, dtype=torch.float64), "hidden": torch.ones(4, dtype=torch.float64)}
    base = -rbm.visible.total(rbm.visible.log_base(state["visible"]))
    coupled = rbm.energy(state) - base
    assert Tempered(rbm, 0.25).energy(state).item() == pytest.approx((base + 0.25 * coupled).item(), abs=1e-13)


@pytest.mark.parametrize("beta", [-0.1, 1.5, float("nan")])
def test_bad_temperatures(beta: float) -> None:
    with pytest.raises(ValueError, match=r"`beta` must lie in \[0, 1\]. Got"):
        Tempered(tiny_rbm("Spin", "Spin"), beta)


# --- known models -----------------------------------------------------------------------------------------------------
def test_modern_hopfield_network(generator: torch.Generator) -> None:
    """`RBM(Gaussian, Categorical(1, M))` has `F(v) = ½|v|² - log Σ_m e^{v·w_m}` (Ramsauer et al. 2020)."""
    rbm = scatter(RBM(Gaussian(5), Categorical(1, 7)), scale=1.0, generator=generator)
    with torch.no_grad():
        rbm.visible_bias.zero_()
        rbm.hidden_bias.zero_()
    v = torch.randn(3, 5, generator=generator, dtype=torch.float64)
    expected = v.square().sum(1) / 2 - (v @ rbm.weight).logsumexp(1)
    assert torch.allclose(rbm.free_energy(v), expected, rtol=1e-12, atol=1e-12)
    retrieved = (v @ rbm.weight).softmax(1) @ rbm.weight.t()  # its update is attention
    assert torch.allclose(rbm.reconstruct(v), retrieved, rtol=1e-12, atol=1e-12)


def test_mixed_table_equals_two_visible_layers(generator: torch.Generator) -> None:
    """Columns side by side in one layer are the machine with one layer for each kind."""
    table = scatter(RBM(Mixed(Bernoulli(2), Gaussian(1), Categorical(1, 3)), Bernoulli(4)), generator=generator)
    kinds: dict[str, Units] = {"binary": Bernoulli(2), "real": Gaussian(1), "class": Categorical(1, 3)}
    slices = {"binary": slice(0, 2), "real": slice(2, 3), "class": slice(3, 6)}
    terms = [((name, "hidden"), Dense(units.shape, 4)) for name, units in kinds.items()]
    biases = [((name,), Bias(units.shape)) for name, units in kinds.items()]
    layers = {**kinds, "hidden": Bernoulli(4)}
    machine = BoltzmannMachine(layers, [*terms, *biases, (("hidden",), Bias(4))]).double()
    with torch.no_grad():
        for (names, dense), (_, bias) in zip(terms, biases, strict=True):
            dense.weight.copy_(table.weight[slices[names[0]]])
            bias.bias.copy_(table.visible_bias[slices[names[0]]].reshape(bias.bias.shape))
        machine.couplings[-1].bias.copy_(table.hidden_bias)  # type: ignore[operator, union-attr]
    v = table.visible.sample(torch.zeros(6, 6).double(), generator=generator).detach()
    parts = {"binary": v[:, :2], "real": v[:, 2:3], "class": v[:, 3:].reshape(6, 1, 3)}
    assert torch.allclose(table.free_energy(v), machine.energy(parts), rtol=1e-12, atol=1e-12)
    assert machine.blocks() == [("binary", "real", "class"), ("hidden",)]
    h = table.hidden_mean(v)
    assert torch.allclose(table.visible_mean(h)[:, :2], machine.mean("binary", {"hidden": h}), rtol=1e-12, atol=1e-12)


# --- carrying it around -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ALL_MACHINES)
def test_copy_and_save(name: str) -> None:
    machine, other = ALL_MACHINES[name](), ALL_MACHINES[name]()
    with torch.no_grad():
        for parameter in machine.parameters():
            parameter.add_(0.1)
    state = machine.initial(3, generator=torch.Generator().manual_seed(0))
    clone = copy.deepcopy(machine)
    assert torch.equal(clone.energy(state), machine.energy(state))
    assert not torch.allclose(other.energy(state), machine.energy(state))
    other.load_state_dict(machine.state_dict())
    assert torch.equal(other.energy(state), machine.energy(state))
    with torch.no_grad():
        for parameter in clone.parameters():
            parameter.add_(0.1)
    assert not torch.allclose(clone.energy(state), machine.energy(state))


@pytest.mark.parametrize(
    "name", ["Bernoulli-Gaussian", "Mixed-Spin", "NReLU-Categorical", "Boltzmann", "deep", "gated"]
)
def test_meta_device(name: str) -> None:
    machine = ALL_MACHINES[name]().to("meta")
    state = machine.initial(3)
    assert all(value.is_meta for value in state.values())
    assert machine.energy(state).shape == (3,)
    machine.accumulate_grad(state)
    state, _ = Gibbs().step(machine, state)
    assert all(value.is_meta for value in state.values())


def test_meta_convolution() -> None:
    conv = Conv2d(3, 8, kernel=4, stride=2, padding=1)
    machine = RBM(Multinary(3, 32, 32, levels=255), Multinary(8, 16, 16, levels=255), conv).to("meta")
    assert machine.free_energy(torch.empty(5, 3, 32, 32, device="meta")).shape == (5,)


@pytest.mark.parametrize("name", ["Bernoulli-Spin", "Gaussian-Bernoulli", "Mixed-Binomial"])
@pytest.mark.parametrize("batch", [(), (0,), (3,), (2, 3)])
def test_any_batch(name: str, batch: tuple[int, ...], generator: torch.Generator) -> None:
    machine = ALL_MACHINES[name]()
    assert isinstance(machine, RBM)
    v = machine.visible.mean(torch.zeros(*batch, *machine.visible.shape).double()).detach()
    assert machine.free_energy(v).shape == batch
    assert machine.hidden_mean(v).shape == (*batch, *machine.hidden.shape)
    assert machine.reconstruct(v).shape == v.shape
    machine.accumulate_grad(v)
    assert machine.sample("hidden", {"visible": v}, generator=generator).shape == (*batch, *machine.hidden.shape)


def test_a_machine_without_biases_starts_in_its_own_dtype(generator: torch.Generator) -> None:
    machine = BoltzmannMachine({"x": Bernoulli(3)}, [(("x", "x"), Symmetric(3))]).double()
    assert machine.initial(2, generator=generator)["x"].dtype == torch.float64


# --- bad input --------------------------------------------------------------------------------------------------------
RBM3 = RBM(Bernoulli(3), Bernoulli(2))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: RBM3.free_energy(torch.zeros(5, 1, 2)),
            ValueError,
            r"`visible` must have shape \(\*batch, 3\) to match visible=Bernoulli\(3\). Got \(5, 1, 2\). Reshape it",
        ),
        (
            lambda: RBM3.hidden_mean(torch.zeros(5, 2)),
            ValueError,
            r"`v` must have shape \(\*batch, 3\) to match visible=Bernoulli\(3\). Got \(5, 2\)",
        ),
        (lambda: RBM3.visible_mean(torch.zeros(5, 3)), ValueError, r"`h` must have shape \(\*batch, 2\)"),
        (lambda: RBM3.free_energy(torch.full((5, 3), 2).int()), ValueError, r"must lie in \[0, 1\].*from 2 to 2"),
        (lambda: RBM3.free_energy(torch.zeros(5, 3).double()), TypeError, r"must be torch.float32 .* torch.float64"),
        (lambda: RBM3.hidden_mean(torch.zeros(5, 3).double()), TypeError, r"must be torch.float32 .* torch.float64"),
        (lambda: RBM3.free_energy("rows"), TypeError, "Values must be a tensor, .* Got str"),
        (lambda: RBM3.free_energy([["0", "1", "0"]]), TypeError, "Values must be numbers"),
        (lambda: RBM3.free_energy(torch.full((1, 3), float("nan"))), ValueError, "must be finite. It holds NaN"),
        (lambda: RBM3.hidden_mean(torch.full((1, 3), float("nan"))), ValueError, "must be finite. It holds NaN"),
        (lambda: RBM3.free_energy(torch.full((1, 3), 255.0)), ValueError, r"must lie in \[0, 1\].*from 255 to 255"),
        (lambda: RBM3.energy({"vissible": torch.zeros(3)}), ValueError, "names layer 'vissible'. The layers are"),
        (lambda: RBM3.energy({}), ValueError, "The state is empty"),
        (lambda: RBM3.field("hidden", {"hidden": torch.zeros(2)}), ValueError, "needs layer 'visible'"),
        (
            lambda: RBM(Bernoulli(3), Bernoulli(2), Dense(4, 2)),
            ValueError,
            r"needs shape \(4,\) at layer 'visible'. Got Bernoulli\(3\)",
        ),
        (
            lambda: BoltzmannMachine({"x": Bernoulli(3)}, [(("x",), Dense(3, 3))]),
            ValueError,
            r"ties 2 layers. Got \('x',\). Name one for each",
        ),
        (
            lambda: BoltzmannMachine({"x": Bernoulli(3)}, [(("y",), Bias(3))]),
            ValueError,
            r"names layer 'y'. The layers are \['x'\]",
        ),
        (
            lambda: BoltzmannMachine({"x": Bernoulli(3)}, [(("x", "x", "x"), ThirdOrder(3, 3, 2))]),
            ValueError,
            r"needs shape \(2,\) at layer 'x'",
        ),
    ],
)
def test_bad_input(call: Callable[[], object], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_integers_and_arrays_are_taken_for_tensors() -> None:
    rbm = RBM(Bernoulli(3), Bernoulli(2))
    x = torch.tensor([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    for same in (x.int(), x.to(torch.uint8), x.bool(), x.numpy(), x.numpy().astype(np.int16), x.double().numpy(),
                 x.tolist(), x.int().tolist()):  # fmt: skip
        assert torch.equal(rbm.free_energy(same), rbm.free_energy(x))
        assert torch.equal(rbm.hidden_mean(same), rbm.hidden_mean(x))


FAMILIES: list[Callable[[int], Units]] = [
    Bernoulli,
    Spin,
    Gaussian,
    lambda n: Categorical(n, 2),
    lambda n: Multinary(n, levels=3, exact=True),
    lambda n: Multinary(n, levels=3),
    NReLU,
    Poisson,
]


@given(
    kinds=st.tuples(st.integers(0, 7), st.integers(0, 7)),
    sizes=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    n=st.integers(0, 3),
    scale=st.sampled_from([0.0, 1.0, 100.0, 1e4]),
    constant=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_finite_or_a_typed_error(
    kinds: tuple[int, int], sizes: tuple[int, int], n: int, scale: float, constant: bool, seed: int
) -> None:
    """Free energy, means, gradient and one Gibbs step of any machine on any data in its support: never a silent NaN."""
    generator = torch.Generator().manual_seed(seed)
    rbm = RBM(FAMILIES[kinds[0]](sizes[0]), FAMILIES[kinds[1]](sizes[1]))
    with torch.no_grad():
        for parameter in rbm.couplings.parameters():
            parameter.uniform_(-scale, scale, generator=generator)
    field = torch.zeros(n, *rbm.visible.shape)
    v = rbm.visible.mode(field) if constant else rbm.visible.sample(field, generator=generator)
    v = v.detach()
    results = [rbm.free_energy(v), rbm.hidden_mean(v), rbm.reconstruct(v) if scale <= 1 else v]
    rbm.accumulate_grad(v)
    results += [parameter.grad for parameter in rbm.parameters() if parameter.grad is not None]
    state, _ = Gibbs().step(rbm, Gibbs().init(rbm, v, generator=generator), generator=generator)
    results += list(state.values())
    assert all(bool(result.isfinite().all()) for result in results)
