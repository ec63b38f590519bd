"""The edges of "data are a state": rows in part, one value or one for each row, names that no layer has."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch
from torch.utils.data import DataLoader

import harmonium as hm
import harmonium.testing
from harmonium.evaluation.dbn_bound import dbn_bound
from harmonium.learning import Callback, Training
from harmonium.learning.batches import Batches
from harmonium.learning.missing import MissingValues
from harmonium.learning.state import restore, snapshot
from harmonium.testing import ExactLaw, scatter, tiny_conditional_rbm, tiny_deep_machine, tiny_labeled_rbm
from harmonium.testing.objectives import check_zero_gradient, gradients

NAN = float("nan")


def test_each_condition_has_its_own_log_z() -> None:
    machine = tiny_conditional_rbm()
    past = torch.tensor([[0.5, -1.0], [2.0, 0.3], [0.0, 0.0], [1.0, 1.0]]).double()
    x = torch.eye(4)[:, :3].double()
    rowwise = hm.Conditioned(machine, {"past": past})
    for ask in (hm.exact_log_z, hm.log_z, hm.ais):
        with pytest.raises(ValueError, match="a log Z of its own"):
            ask(rowwise)
    expected = []
    for i in range(4):
        law = ExactLaw(hm.Conditioned(machine, {"past": past[i]}))
        same = (law.states["visible"] == x[i]).all(1)
        expected.append(law.probability[same].sum().log())
    for found in (hm.log_likelihood(rowwise, x), hm.log_likelihood(machine, {"visible": x, "past": past})):
        assert torch.allclose(found.value, torch.stack(expected), atol=1e-10)


def test_one_condition_for_all_rows_is_the_same_as_one_for_each() -> None:
    machine, one, x = tiny_conditional_rbm(), torch.tensor([0.5, -1.0]).double(), torch.eye(3).double()
    each = {"visible": x, "past": one.expand(3, 2)}
    found = []
    for use in (
        lambda: machine.accumulate_grad(each, 0.5),
        lambda: machine.accumulate_grad({"visible": x, "past": one}, 0.5),
        lambda: hm.Conditioned(machine, {"past": one}).accumulate_grad(x, 0.5),
    ):
        machine.zero_grad(set_to_none=True)
        use()
        found.append(gradients(machine))
    assert torch.allclose(found[0], found[1], atol=1e-12) and torch.allclose(found[0], found[2], atol=1e-12)
    both = (hm.log_likelihood(machine, each), hm.log_likelihood(machine, {"visible": x, "past": one}))
    assert torch.allclose(both[0].value, both[1].value, atol=1e-12)
    hm.fit(hm.Conditioned(machine, {"past": one}), x, hm.CD(), epochs=1)


def test_the_likelihood_has_the_shape_of_the_batch() -> None:
    rbm = hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2))
    x = torch.eye(3).expand(2, 3, 3)
    found = hm.log_likelihood(rbm, x)
    assert found.value.shape == (2, 3)
    assert hm.log_likelihood(rbm, x[0, 0]).value.shape == ()
    assert torch.allclose(found.value[0], hm.log_likelihood(rbm, x[0]).value)


def test_unknown_names_are_refused_by_sample() -> None:
    machine, jem = tiny_labeled_rbm(), hm.JEM(hm.MLP(2, 3))
    with pytest.raises(ValueError, match="`given` names layer 'lable'"):
        hm.sample(machine, 4, given={"lable": 1})
    with pytest.raises(ValueError, match="must lie in"):
        hm.sample(machine, 4, given={"label": torch.tensor([[5.0, 7.0, 0.0]]).double()})
    with pytest.raises(ValueError, match="given_class"):
        hm.sample(jem, 4, given={"y": 1})
    start = {"hidden": torch.ones(4, 2).double()}
    assert hm.sample(machine, 4, n_steps=2, start=start).shape == (4, 3)


def test_known_labels_count_where_other_rows_lack_theirs(generator: torch.Generator) -> None:
    """A strong coupling between label 0 and x = 0: rows that know the label draw 0, whatever other rows know."""
    machine = hm.BoltzmannMachine(
        {"x": hm.Bernoulli(2), "label": hm.Categorical(1, 2)}, [(("x", "label"), hm.Dense(2, (1, 2)))]
    )
    with torch.no_grad():
        machine.couplings[0].weight.copy_(torch.tensor([[-4.0, 4.0], [0.0, 0.0]]))
    x = torch.tensor([[NAN, 1.0]]).repeat(2000, 1)
    label = torch.zeros(2000, dtype=torch.int64)
    label[-1] = -1
    data = {"x": x, "label": machine.layer("label").encoded(label, like=x)}
    missing = MissingValues(machine, Batches(data, machine))
    filled = missing.fill(torch.arange(2000), data, generator=generator)
    assert filled["x"][:-1, 0].mean() == pytest.approx(torch.sigmoid(torch.tensor(-4.0)).item(), abs=0.02)
    assert filled["label"][-1].isnan().all()  # left to the objective


def test_a_row_that_is_known_in_part_is_refused() -> None:
    machine = tiny_labeled_rbm()
    x = torch.tensor([[NAN, 1.0, 0.0]]).double()
    with pytest.raises(ValueError, match="'visible' is NaN in part"):
        hm.log_likelihood(machine, {"visible": x, "label": torch.tensor([0])})


def test_cd_resumes_with_persistent_clamped_chains() -> None:
    def training() -> Training:
        machine = tiny_deep_machine().float()
        x = ExactLaw(tiny_deep_machine()).draw(40, generator=torch.Generator().manual_seed(1))["visible"].float()
        objective = hm.CD(inference=hm.inference.ClampedChains(n_steps=2, persistent=True))
        optimizer = torch.optim.SGD(machine.parameters(), 0.05)
        source = torch.Generator().manual_seed(2)
        return Training(machine, x, objective, optimizer=optimizer, epochs=4, batch_size=8, generator=source)

    class Stop(Callback):
        def on_epoch(self, training: Training, record: dict[str, object]) -> None:
            training.stop = training.epoch == 2

    whole, first, second = training(), training(), training()
    whole.run()
    first.callbacks = (Stop(),)
    first.run()
    tensors, plain = snapshot(first)
    restore(second, {name: value.clone() for name, value in tensors.items()}, copy.deepcopy(plain))
    second.run()
    pairs = zip(whole.model.parameters(), second.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_the_bound_of_a_network_needs_the_same_states_where_machines_meet() -> None:
    dbn = hm.DBN([hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2, 3)), hm.RBM(hm.Categorical(2, 3), hm.Bernoulli(2))])
    with pytest.raises(ValueError, match="same values on both sides"):
        dbn_bound(dbn, torch.zeros(1, 3))


def test_the_bound_of_a_network_is_below_the_exact_likelihood(generator: torch.Generator) -> None:
    stack = [hm.RBM(hm.Bernoulli(3), hm.Bernoulli(3)), hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2))]
    dbn = hm.DBN([scatter(rbm, scale=0.8, generator=generator) for rbm in stack])
    every = torch.tensor(list(itertools.product((0.0, 1.0), repeat=3))).double()
    prior = (-dbn[1].energy(every)).softmax(0)
    on = dbn[0].visible_mean(every)
    given = (every[:, None] * on.log() + (1 - every[:, None]) * (1 - on).log()).sum(-1).exp()
    exact = (given * prior).sum(1).log()
    found = hm.log_likelihood(dbn, every, generator=generator)
    assert found.kind == "exact bound"
    assert bool((found.value <= exact + 5 * found.error).all())


def test_the_bound_is_tight_where_the_way_up_is_the_posterior(generator: torch.Generator) -> None:
    """Above a machine its own mirror image: the network is the machine itself, and so is the bound."""
    rbm = scatter(hm.RBM(hm.Bernoulli(3), hm.Spin(2)), scale=0.8, generator=generator)
    mirror = hm.RBM(hm.Spin(2), hm.Bernoulli(3)).double()
    with torch.no_grad():
        mirror.weight.copy_(rbm.weight.t())
        mirror.visible_bias.copy_(rbm.hidden_bias)
        mirror.hidden_bias.copy_(rbm.visible_bias)
    x = torch.tensor(list(itertools.product((0.0, 1.0), repeat=3))).double()
    found, exact = hm.log_likelihood(hm.DBN([rbm, mirror]), x, generator=generator), hm.log_likelihood(rbm, x)
    assert torch.allclose(found.value, exact.value, atol=1e-10)


@pytest.mark.parametrize("hidden", ["tied categories", "gates"])
def test_cd_rests_at_the_truth_where_hidden_layers_are_summed_together(hidden: str, generator: torch.Generator) -> None:
    if hidden == "gates":
        machine = hm.testing.tiny_subspace_machine()
    else:
        units = {"x": hm.Bernoulli(3), "h": hm.Categorical(1, 3), "g": hm.Categorical(1, 3)}
        terms = [(("x", "h"), hm.Dense(3, (1, 3))), (("h", "g"), hm.Dense((1, 3), (1, 3)))]
        machine = hm.BoltzmannMachine(units, terms)
    scatter(machine, scale=1.5, generator=generator)
    check_zero_gradient(hm.CD, machine, n_rounds=150, n_rows=1000, generator=generator)


def test_unknown_class_numbers_of_several_units_are_missing_values(generator: torch.Generator) -> None:
    rbm = hm.RBM(hm.Categorical(3, 4), hm.Bernoulli(2))
    numbers = torch.arange(60).reshape(20, 3) % 4
    numbers[0, 1] = -1
    hm.fit(rbm, numbers, hm.CD(), epochs=1, generator=generator)
    square = hm.RBM(hm.Categorical(3, 3), hm.Bernoulli(2))
    assert square.free_energy(torch.tensor([[0, 1, 2], [2, 2, 1], [0, 0, 0]])).shape == (3,)


def test_batches_that_weigh_nothing_teach_nothing(generator: torch.Generator) -> None:
    rbm = hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2))
    weights = torch.zeros(40)
    weights[:10] = 1
    hm.fit(rbm, torch.ones(40, 3), hm.PCD(), weights=weights, epochs=2, batch_size=4, monitors=[], generator=generator)


def test_a_layer_is_tied_to_itself_by_symmetric_couplings_only() -> None:
    with pytest.raises(ValueError, match="Use Symmetric"):
        hm.BoltzmannMachine({"x": hm.Bernoulli(2)}, [(("x", "x"), hm.Dense(2, 2))])


def test_a_distribution_that_would_be_counted_forever_is_refused() -> None:
    units = {"x": hm.Bernoulli(2), "h": hm.Bernoulli(24), "g": hm.Bernoulli(3)}
    machine = hm.BoltzmannMachine(units, [(("x", "h"), hm.Dense(2, 24)), (("h", "g"), hm.Dense(24, 3))])
    with pytest.raises(ValueError, match="more than 256"):
        machine.distribution("h", torch.zeros(1, 2))


def test_clamped_chains_with_nothing_hidden(generator: torch.Generator) -> None:
    machine = hm.testing.tiny_boltzmann_machine()
    hm.fit(
        machine,
        torch.ones(4, 4).double(),
        hm.PCD(inference=hm.inference.ClampedChains()),
        epochs=1,
        generator=generator,
    )


def test_a_single_row_is_told_apart_from_data() -> None:
    rbm = hm.RBM(hm.Bernoulli(4), hm.Bernoulli(3))
    with pytest.raises(ValueError, match=r"must have shape \(n, 4\), one row a sample. Got \(4,\).* Give x\[None\]"):
        hm.fit(rbm, torch.ones(4))
    hm.fit(rbm, torch.ones(4)[None], epochs=1)


def test_missing_values_in_a_loader_are_refused() -> None:
    x = torch.ones(20, 4)
    x[7, 0] = float("nan")
    with pytest.raises(ValueError, match="a batch of the DataLoader holds NaN. Missing values are carried"):
        hm.fit(hm.RBM(hm.Bernoulli(4), hm.Bernoulli(3)), DataLoader(x, batch_size=5), epochs=1)  # type: ignore[arg-type]
