"""Any graph of layers learns: exact gradients, chains that do not drift, likelihoods that rise, all by enumeration."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

import harmonium as hm
from harmonium.inference import ClosedForm, Inference
from harmonium.learning import Training
from harmonium.learning.state import restore, snapshot
from harmonium.samplers import Sampler
from harmonium.testing import (
    ContractError,
    ExactLaw,
    check_no_drift,
    scatter,
    tiny_boltzmann_machine,
    tiny_conditional_rbm,
    tiny_deep_machine,
    tiny_gated_machine,
    tiny_labeled_rbm,
    tiny_lateral_rbm,
    tiny_rbm,
    tiny_subspace_machine,
)
from harmonium.testing.objectives import check_exact_gradient, check_zero_gradient, exact_gradient, gradients
from harmonium.types import State

Make = Callable[[], hm.BoltzmannMachine]

GRAPHS: dict[str, tuple[Make, tuple[str, ...]]] = {
    "deep": (tiny_deep_machine, ("visible",)),
    "label observed": (tiny_labeled_rbm, ("visible", "label")),
    "label hidden": (tiny_labeled_rbm, ("visible",)),
    "label alone": (tiny_labeled_rbm, ("label",)),
    "lateral": (tiny_lateral_rbm, ("visible",)),
    "third order": (tiny_gated_machine, ("visible",)),
    "third order, gate observed": (tiny_gated_machine, ("visible", "gate")),
    "subspace": (tiny_subspace_machine, ("visible",)),
    "all visible": (tiny_boltzmann_machine, ("x",)),
}
"""Machines of several kinds of graph, and the layers that the data hold."""


def data_of(machine: hm.BoltzmannMachine, layers: tuple[str, ...], n: int, generator: torch.Generator) -> State:
    drawn = ExactLaw(machine).draw(n, generator=generator)
    return {name: drawn[name] for name in layers}


def condition(n: int) -> Tensor:
    return torch.tensor([[0.5, -1.0]]).double().expand(n, 2)


# --- gradients with exact negatives -----------------------------------------------------------------------------------
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("objective", [hm.PCD, hm.CD])
def test_exact_negatives_give_the_exact_gradient(
    name: str, objective: Callable[..., hm.PCD | hm.CD], generator: torch.Generator
) -> None:
    make, layers = GRAPHS[name]
    machine = make()
    batch = data_of(machine, layers, 4, generator)

    def contrast(sampler: Sampler) -> hm.PCD | hm.CD:
        return objective(sampler=sampler)

    check_exact_gradient(contrast, machine, batch, tolerance=1e-8, generator=generator)


def test_a_conditional_machine_has_the_gradient_of_its_conditional_likelihood(generator: torch.Generator) -> None:
    machine = tiny_conditional_rbm()
    batch = {"visible": torch.eye(3).double(), "past": condition(3)}
    check_exact_gradient(
        lambda sampler: hm.PCD(n_chains=3, sampler=sampler), machine, batch, tolerance=1e-8, generator=generator
    )
    check_exact_gradient(lambda sampler: hm.CD(sampler=sampler), machine, batch, tolerance=1e-8, generator=generator)


@pytest.mark.parametrize("make", [tiny_deep_machine, tiny_lateral_rbm, tiny_gated_machine, tiny_rbm])
def test_mean_field_has_the_gradient_of_its_exact_bound(make: Callable[..., hm.BoltzmannMachine]) -> None:
    machine = make("Bernoulli", "Gaussian") if make is tiny_rbm else make()
    generator = torch.Generator().manual_seed(3)
    batch = data_of(machine, ("visible",), 4, generator)
    inference = hm.MeanField(n_steps=500, damping=0.2, tolerance=1e-12)
    check_exact_gradient(
        lambda sampler: hm.PCD(sampler=sampler, inference=inference),
        machine,
        batch,
        tolerance=1e-8,
        generator=generator,
    )


def test_a_wrong_inference_fails_the_contract(generator: torch.Generator) -> None:
    class TooFew(hm.MeanField):
        """Fills in means that are not the fixed point, and claims the bound there."""

        def fixed_point(self, machine: hm.BoltzmannMachine, observed: State) -> hm.types.Filled:
            filled = super().fixed_point(machine, observed)
            return hm.types.Filled({n: v if n in observed else 0.9 * v for n, v in filled.state.items()}, filled.fields)

        def free_energy(self, machine: hm.BoltzmannMachine, observed: State) -> Tensor:
            return hm.MeanField(500, 0.2, 1e-12).free_energy(machine, observed)

    machine = tiny_deep_machine()
    with pytest.raises(ContractError, match="exact negatives"):
        check_exact_gradient(
            lambda s: hm.PCD(sampler=s, inference=TooFew(500, 0.2, 1e-12)), machine, generator=generator
        )


@pytest.mark.parametrize("name", ["deep", "label observed", "label hidden", "lateral", "third order", "subspace"])
@pytest.mark.parametrize(
    "make", [hm.CD, lambda: hm.PCD(n_chains=40), lambda: hm.TemperedPCD(n_chains=20, betas=(0.0, 0.5, 1.0))]
)
def test_nothing_to_learn_at_the_truth(name: str, make: Callable[[], hm.PCD], generator: torch.Generator) -> None:
    machine, layers = GRAPHS[name][0](), GRAPHS[name][1]
    check_zero_gradient(make, machine, layers=layers, n_rounds=60, n_rows=64, generator=generator)


@pytest.mark.parametrize("persistent", [False, True])
def test_clamped_chains_estimate_the_gradient(persistent: bool, generator: torch.Generator) -> None:
    """Averaged over many draws they have the gradient of F; a rule that forgets to clamp would not."""
    machine = tiny_deep_machine()
    batch = data_of(machine, ("visible",), 6, generator)
    machine.zero_grad(set_to_none=True)
    machine.accumulate_grad(batch, 1 / 6)
    expected = gradients(machine)
    chains = hm.inference.ClampedChains(n_steps=20, persistent=persistent)
    rounds = []
    for _ in range(400):
        machine.zero_grad(set_to_none=True)
        chains.accumulate_grad(machine, batch, 1 / 6, index=torch.arange(6), generator=generator)
        rounds.append(gradients(machine))
    found = torch.stack(rounds)
    error = found.std(0) / math.sqrt(len(rounds)) * (3 if persistent else 1) + 1e-9
    assert bool(((found.mean(0) - expected).abs() <= 5.5 * error).all())
    machine.zero_grad(set_to_none=True)
    machine.accumulate_grad(data_of(machine, ("visible",), 6, generator), 1 / 6)
    other = gradients(machine)
    assert not bool(((found.mean(0) - other).abs() <= 5.5 * error).all())


# --- energies of partial states ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", GRAPHS)
def test_partial_energies_are_sums_over_what_is_missing(name: str) -> None:
    make, layers = GRAPHS[name]
    machine, law = make(), ExactLaw(make())
    for held in itertools.chain.from_iterable(itertools.combinations(law.layers, k) for k in (1, 2)):
        rows, probability = law.marginal(list(held))
        sizes = [math.prod(machine.layer(n).shape) for n in held]
        parts = rows.split(sizes, 1)
        state = {n: part.reshape(-1, *machine.layer(n).shape) for n, part in zip(held, parts, strict=True)}
        assert torch.allclose(-machine.energy(state), probability.log() + law.log_z, atol=1e-10)
    assert layers


@pytest.mark.parametrize("name", GRAPHS)
def test_inferred_means_and_distributions_are_conditional(name: str, generator: torch.Generator) -> None:
    make, layers = GRAPHS[name]
    machine, law = make(), ExactLaw(make())
    batch = data_of(machine, layers, 3, generator)
    filled = machine.infer(batch)
    for row in range(3):
        same = torch.ones(len(law.probability), dtype=torch.bool)
        for held in layers:
            same &= (law.states[held] == batch[held][row]).flatten(1).all(1)
        share = law.probability * same / (law.probability * same).sum()
        for hidden in (n for n in law.layers if n not in layers):
            values = law.states[hidden]
            mean = (share.reshape(-1, *(1,) * (values.ndim - 1)) * values).sum(0)
            assert torch.allclose(filled[hidden][row], mean, atol=1e-10)
            units = machine.layer(hidden)
            states, found = units.states(), machine.distribution(hidden, batch)[row]
            assert states is not None
            for j, value in enumerate(states):
                at = (units.split_sites(values) == value).reshape(len(values), *units.sites, -1).all(-1).double()
                marginal = (share.reshape(-1, *(1,) * (at.ndim - 1)) * at).sum(0)
                assert torch.allclose(found[..., j], marginal, atol=1e-10)


def test_the_label_of_a_classification_rbm_by_its_formula() -> None:
    """`p(y | x) ∝ exp(d_y + Σ_j softplus(c_j + U_jy + x·W_j))` (Larochelle and Bengio 2008)."""
    machine = tiny_labeled_rbm()
    x = torch.tensor([[1.0, 0.0, 1.0]]).double()
    (_, w), (_, u), _, (_, d), (_, c) = machine.terms
    inside = c.bias + u.weight.reshape(3, 2) + x @ w.weight
    expected = (d.bias.flatten() + torch.nn.functional.softplus(inside).sum(-1)).softmax(-1)
    assert torch.allclose(machine.distribution("label", {"visible": x})[0, 0], expected, atol=1e-12)


def test_the_free_energy_of_a_subspace_machine_by_its_formula() -> None:
    """`F = -b·x - Σ_j log(2^K + e^{c_j} Π_k (1 + e^{W_jk·x + D_jk}))`, from eq. 6.44: 2^K is the -K log 2 of 6.47."""
    machine = tiny_subspace_machine()
    (_, w), (_, d), (_, b), (_, c) = machine.terms
    x = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]).double()
    up = (x @ w.weight).reshape(3, 2, 2) + d.bias
    on = c.bias + torch.nn.functional.softplus(up).sum(-1)
    expected = -(x @ b.bias) - torch.logaddexp(on, torch.full_like(on, 2 * math.log(2))).sum(-1)
    assert torch.allclose(machine.free_energy(x), expected, atol=1e-12)


def test_gates_are_summed_unit_by_unit_where_counting_is_hopeless() -> None:
    """100 gates over groups of 5 have 2^100 configurations; the sum over each gate by itself is exact."""
    n, width = 100, 5
    machine = hm.BoltzmannMachine(
        {"visible": hm.Bernoulli(6), "gate": hm.Bernoulli(n), "group": hm.Bernoulli(n, width)},
        [(("visible", "gate", "group"), hm.Subspace(6, n, width)), (("gate",), hm.Bias(n))],
    )
    scatter(machine)
    x = torch.eye(6).double()
    up = (x @ machine.terms[0][1].weight).reshape(6, n, width)
    on = machine.terms[1][1].bias + torch.nn.functional.softplus(up).sum(-1)
    assert torch.allclose(machine.energy(x), -torch.logaddexp(on, torch.tensor(width * math.log(2.0))).sum(-1))
    hm.fit(machine, x.repeat(5, 1), hm.CD(), epochs=2, monitors=[], generator=torch.Generator().manual_seed(0))


def test_an_intractable_energy_names_the_layers_and_the_way_out() -> None:
    units = {"visible": hm.Bernoulli(3), "h1": hm.Bernoulli(20), "h2": hm.Bernoulli(20)}
    deep = hm.BoltzmannMachine(units, [(("visible", "h1"), hm.Dense(3, 20)), (("h1", "h2"), hm.Dense(20, 20))])
    with pytest.raises(ValueError, match="Dense ties the missing layers 'h1' and 'h2'.*MeanField"):
        deep.energy(torch.zeros(1, 3))
    with pytest.raises(ValueError, match="'h1' and 'h2'"):
        hm.fit(deep, torch.zeros(4, 3), hm.PCD(), epochs=1)
    deep.energy({"visible": torch.zeros(1, 3), "h2": torch.zeros(1, 20)})  # h1 alone is summed out


# --- chains -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["deep", "labeled", "lateral", "gated", "subspace", "conditional"])
def test_chains_do_not_drift(name: str, generator: torch.Generator) -> None:
    check_no_drift(hm.Gibbs(), hm.testing.ALL_MACHINES[name](), n_chains=5000, generator=generator)
    tempering = hm.ParallelTempering(betas=(0.0, 0.5, 1.0))
    check_no_drift(tempering, hm.testing.ALL_MACHINES[name](), n_chains=3000, generator=generator)


# --- learning ---------------------------------------------------------------------------------------------------------
LEARNERS: dict[str, Callable[[], hm.PCD | hm.CD]] = {
    "PCD": lambda: hm.PCD(n_chains=50),
    "CD": lambda: hm.CD(n_steps=3),
    "TemperedPCD": lambda: hm.TemperedPCD(n_chains=30, betas=(0.0, 0.5, 1.0)),
    "mean field": lambda: hm.PCD(n_chains=50, inference=hm.MeanField(damping=0.3)),
    "clamped": lambda: hm.PCD(n_chains=50, inference=hm.inference.ClampedChains(n_steps=3, persistent=True)),
}


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("name", ["deep", "label observed", "lateral", "third order"])
def test_fit_raises_the_exact_likelihood(name: str, learner: str, generator: torch.Generator) -> None:
    """Data of one machine, learned by another of the same graph: the exact likelihood rises towards the entropy."""
    make, layers = GRAPHS[name]
    truth = scatter(make(), scale=1.0, generator=torch.Generator().manual_seed(5))
    batch = data_of(truth, layers, 600, generator)
    machine = scatter(make(), scale=0.05, generator=torch.Generator().manual_seed(6))

    def likelihood(of: hm.BoltzmannMachine) -> float:
        return hm.log_likelihood(of, batch, log_z=hm.exact_log_z(of)).mean().value

    before, best = likelihood(machine), likelihood(truth)
    optimizer = torch.optim.Adam(machine.parameters(), 0.02)
    hm.fit(machine, batch, LEARNERS[learner](), optimizer=optimizer, epochs=30, monitors=[], generator=generator)
    after = likelihood(machine)
    assert after > before + 0.5 * (best - before), (before, after, best)


def test_a_conditional_machine_learns_its_condition(generator: torch.Generator) -> None:
    """Copies of the condition: the conditional likelihood rises from -3 log 2 to near 0."""
    machine = hm.BoltzmannMachine(
        {"past": hm.Bernoulli(3), "now": hm.Bernoulli(3), "hidden": hm.Bernoulli(2)},
        [
            (("past", "now"), hm.Dense(3, 3)),
            (("now", "hidden"), hm.Dense(3, 2)),
            (("now",), hm.Bias(3)),
            (("hidden",), hm.Bias(2)),
        ],
        given=["past"],
    )
    past = (torch.rand(400, 3, generator=generator) < 0.5).float()
    batch = {"now": past, "past": past}
    for objective in (hm.CD(), hm.PCD(n_chains=128)):
        learner = copy.deepcopy(machine)
        optimizer = torch.optim.Adam(learner.parameters(), 0.05)
        hm.fit(learner, batch, objective, optimizer=optimizer, epochs=40, monitors=[], generator=generator)
        found = hm.log_likelihood(learner, {name: value[:40] for name, value in batch.items()}).mean()
        assert found.value > -0.5 and found.kind == "exact"
        drawn = hm.sample(learner, 200, n_steps=20, given={"past": torch.tensor([1.0, 0.0, 1.0])}, generator=generator)
        assert torch.allclose(drawn.mean(0), torch.tensor([1.0, 0.0, 1.0]), atol=0.15)


def test_a_semi_supervised_batch_uses_both_kinds_of_rows(generator: torch.Generator) -> None:
    """The gradient of a batch with labels in some rows is that of `-log p(x, y)` and of `-log p(x)`, row by row."""
    machine = tiny_labeled_rbm()
    batch = data_of(machine, ("visible", "label"), 5, generator)
    batch["label"][[1, 4]] = torch.nan

    def rows(index: list[int], layers: tuple[str, ...]) -> State:
        return {name: batch[name][index] for name in layers}

    law = ExactLaw(machine)
    machine.zero_grad(set_to_none=True)
    labeled = machine.energy(rows([0, 2, 3], ("visible", "label"))).sum()
    loss = (labeled + machine.energy(rows([1, 4], ("visible",))).sum()) / 5 + (-machine.energy(law.states)).logsumexp(0)
    loss.backward()
    expected = gradients(machine)
    total = torch.zeros_like(expected)
    from harmonium.testing.objectives import Fixed

    for i, p in enumerate(law.probability):
        machine.zero_grad(set_to_none=True)
        objective = hm.PCD(sampler=Fixed(x={name: law.states[name][i] for name in law.layers}))
        phases = objective.accumulate_grad(machine, batch)
        total += p * gradients(machine)
    assert torch.allclose(total, expected, atol=1e-9)
    assert phases is not None and not phases.positive["label"].isnan().any()


def test_class_numbers_stand_for_one_hot_vectors(generator: torch.Generator) -> None:
    machine = tiny_labeled_rbm().float()
    x, y = torch.ones(4, 3), torch.tensor([0, 2, -1, 1])
    encoded = machine.state({"visible": x, "label": y})["label"]
    assert encoded.shape == (4, 1, 3) and encoded[2].isnan().all() and encoded[1, 0].tolist() == [0.0, 0.0, 1.0]
    hm.fit(machine, {"visible": x.numpy(), "label": y.numpy()}, epochs=1, generator=generator)
    with pytest.raises(ValueError, match=r"0\.\.2.*-1 where unknown.*0\.\.3"):
        machine.state({"visible": x, "label": torch.tensor([0, 1, 2, 3])})


@pytest.mark.parametrize("name", ["deep", "label observed", "lateral", "third order", "subspace"])
@pytest.mark.parametrize("learner", ["PCD", "mean field", "clamped"])
def test_an_interrupted_run_ends_the_same(name: str, learner: str) -> None:
    make, layers = GRAPHS[name]

    def training() -> Training:
        machine = make().float()
        batch = {
            key: value.float() for key, value in data_of(make(), layers, 50, torch.Generator().manual_seed(1)).items()
        }
        return Training(
            machine,
            batch,
            LEARNERS[learner](),
            optimizer=torch.optim.Adam(machine.parameters(), 0.01),
            epochs=3,
            batch_size=16,
            generator=torch.Generator().manual_seed(2),
        )

    whole = training()
    whole.run()
    first = training()

    class Stop(hm.learning.Callback):
        def on_update(self, training: Training) -> None:
            training.stop = training.update == 6

    first.callbacks = (Stop(),)
    first.run()
    tensors, plain = snapshot(first)
    second = training()
    restore(second, {key: value.clone() for key, value in tensors.items()}, copy.deepcopy(plain))
    second.run()
    for (key, one), other in zip(whole.model.state_dict().items(), second.model.state_dict().values(), strict=True):
        assert torch.equal(one, other), key


# --- nothing is ignored in silence ------------------------------------------------------------------------------------
def test_what_no_layer_takes_is_refused() -> None:
    rbm, x, y = hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2)), torch.zeros(4, 3), torch.zeros(4)
    with pytest.raises(ValueError, match="Labels need a layer of their own"):
        hm.fit(rbm, (x, y))
    with pytest.raises(ValueError, match="'label', which this model does not have"):
        hm.fit(rbm, {"visible": x, "label": y})
    with pytest.raises(ValueError, match="as many rows"):
        hm.fit(rbm, {"visible": x, "hidden": torch.zeros(3, 2)})
    with pytest.raises(ValueError, match=r"`epochs` must be a whole number.*1\.5"):
        hm.fit(rbm, x, epochs=1.5)  # type: ignore[arg-type]
    optimizer = torch.optim.SGD(hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2)).parameters(), 0.1)
    with pytest.raises(ValueError, match="3 parameters that are not those of this model"):
        hm.fit(rbm, x, optimizer=optimizer)
    with pytest.raises(ValueError, match="All values of layer 'visible' are NaN"):
        hm.fit(rbm, torch.full((4, 3), torch.nan))
    with pytest.raises(TypeError, match="must be an Objective"):
        hm.fit(rbm, x, lambda model, batch: model.free_energy(batch).mean())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="text or mixed columns"):
        hm.fit(rbm, np.array([["a", "b", "c"]]))


def test_a_condition_without_a_value_is_refused() -> None:
    machine = tiny_conditional_rbm()
    for use in (machine.energy, machine.free_energy, machine.infer, machine.accumulate_grad):
        with pytest.raises(ValueError, match="Layer 'past' is a condition.*Give its value"):
            use({"visible": torch.zeros(1, 3).double()})
    for ask in (lambda: hm.sample(machine, 3), lambda: hm.log_z(machine), lambda: hm.exact_log_z(machine)):
        with pytest.raises(ValueError, match="'past' is a condition"):
            ask()
    with pytest.raises(ValueError, match="condition"):
        hm.fit(machine, {"visible": torch.zeros(2, 3).double()}, epochs=1)


def test_centering_refuses_what_it_does_not_center() -> None:
    machine = tiny_gated_machine().float()
    with pytest.raises(TypeError, match="Centering centers couplings of two layers.*ThirdOrder"):
        hm.fit(machine, torch.zeros(4, 3), epochs=1, transforms=[hm.Centering()])


def test_decay_never_touches_the_parameters_of_units() -> None:
    rbm = hm.RBM(hm.Gaussian(1, 3, 3, initial_sigma=2.0), hm.Bernoulli(4), hm.Dense((1, 3, 3), 4))
    for parameter in rbm.parameters():
        parameter.grad = torch.zeros_like(parameter)
    hm.WeightDecay(0.5).before(rbm, None)
    touched = {name for name, p in rbm.named_parameters() if p.grad is not None and bool(p.grad.any())}
    assert touched == {"couplings.0.weight"}


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.uint8, np.uint16, np.int64, np.bool_])
def test_arrays_of_any_kind_work_wherever_a_tensor_does(kind: type) -> None:
    rbm = hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2))
    x = np.eye(3).astype(kind)
    tensor = torch.eye(3)
    assert torch.equal(rbm.free_energy(x), rbm.free_energy(tensor))
    assert torch.equal(rbm.hidden_mean(x), rbm.hidden_mean(tensor))
    assert hm.log_likelihood(rbm, x).value.shape == (3,)
    hm.initialize(rbm, x)
    hm.fit(rbm, x, epochs=1, validation=x)
    assert hm.sample(rbm, 3, n_steps=2, given=x).tolist() == tensor.tolist()
    assert isinstance(ClosedForm(), Inference) and exact_gradient is not None


def test_a_data_frame_works_where_a_tensor_does() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas comes with ArviZ, which only the tests need")
    rbm = hm.RBM(hm.Gaussian(3), hm.Bernoulli(2))
    table = pandas.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
    table.iloc[0, 1] = None
    hm.fit(rbm, table, epochs=1, generator=torch.Generator().manual_seed(0))
    assert hm.log_likelihood(rbm, table.dropna()).value.shape == (39,)
    with pytest.raises(TypeError, match="text or mixed columns"):
        hm.fit(rbm, table.assign(c="x"))
