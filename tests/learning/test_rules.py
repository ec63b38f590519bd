"""Learning rules without chains, and new ones with them: known answers, consistency to rounding, and what must fail."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

import harmonium as hm
from harmonium.evaluation.baselines import gaussian_log_density
from harmonium.laws import IndependentUnits
from harmonium.learning.objectives import (
    ExactLikelihood,
    FastPCD,
    NoiseContrastive,
    Objective,
    PerturbAndMAP,
    ProbabilityFlow,
    PseudoLikelihood,
    RatioMatching,
    ScoreMatching,
    SlicedScoreMatching,
)
from harmonium.learning.objectives.base import Case
from harmonium.learning.objectives.contrastive import draw_exactly, small_machine
from harmonium.learning.objectives.perturb_and_map import _gumbel, _noise_at
from harmonium.learning.objectives.unit_by_unit import UnitByUnit
from harmonium.learning.transforms import L1Decay
from harmonium.testing import ALL_MACHINES, ContractError, check_objective, tiny_labeled_rbm, tiny_rbm
from harmonium.testing.machines import ExactLaw, tiny_conditional_rbm
from harmonium.testing.objectives import exact_gradient, gradients
from harmonium.testing.transitions import expected_cd_gradient, gibbs_matrix

UNIT_RULES: dict[str, type[UnitByUnit]] = {
    "pseudo-likelihood": PseudoLikelihood,
    "ratio matching": RatioMatching,
    "probability flow": ProbabilityFlow,
}
ROUNDING = 1e-12
FINITE = [
    "Bernoulli-Spin", "Spin-Gaussian", "Categorical-Poisson", "Binomial-NReLU", "Multinary-Bernoulli", "Boltzmann",
    "Potts", "deep", "gated", "labeled", "lateral", "subspace", "conditional", "tempered",
]  # fmt: skip
"""Machines whose data have finitely many states: every unit that has, and every kind of graph."""


# --- consistent: with the machine's own law as data the expected gradient is zero to rounding -------------------------
@pytest.mark.parametrize("rule", UNIT_RULES)
@pytest.mark.parametrize("name", FINITE)
def test_rules_of_neighbors_rest_at_the_truth(rule: str, name: str) -> None:
    machine = ALL_MACHINES[name]()
    law, objective = ExactLaw(machine), UNIT_RULES[rule]()
    objective.check(machine)
    layers = [machine.data_layer, "label"] if name == "labeled" else [machine.data_layer]
    seen = {layer: law.states[layer] for layer in layers}
    objective.accumulate_grad(machine, seen, weight=law.probability)
    assert gradients(machine).abs().max() < ROUNDING
    # The control: another law of data, the same machine.
    machine.zero_grad(set_to_none=True)
    objective.accumulate_grad(machine, seen, weight=law.probability.square())
    assert gradients(machine).abs().max() > 1e-3


@pytest.mark.parametrize("name", ["Bernoulli-Spin", "Gaussian-Bernoulli", "Potts", "deep", "labeled", "conditional"])
def test_exact_likelihood_has_the_exact_gradient_and_rests_at_the_truth(name: str, generator: torch.Generator) -> None:
    machine = ALL_MACHINES[name]()
    law, objective = ExactLaw(machine), ExactLikelihood()
    objective.check(machine)
    drawn = {machine.data_layer: law.draw(5, generator=generator)[machine.data_layer]}
    expected = exact_gradient(machine, drawn)
    for run in (objective.accumulate_grad, lambda m, x: objective.loss(m, x).backward()):
        machine.zero_grad(set_to_none=True)
        run(machine, drawn)
        assert torch.allclose(gradients(machine), expected, rtol=0, atol=ROUNDING)
    log_p = -machine.energy(drawn) - law.log_z
    assert objective.loss(machine, drawn).item() == pytest.approx(-log_p.mean().item(), abs=1e-10)
    if machine.layer(machine.data_layer).states() is not None:
        machine.zero_grad(set_to_none=True)
        objective.accumulate_grad(machine, {machine.data_layer: law.states[machine.data_layer]}, weight=law.probability)
        assert gradients(machine).abs().max() < ROUNDING


def test_exact_likelihood_knows_the_conditions_of_each_row(generator: torch.Generator) -> None:
    machine = tiny_conditional_rbm()
    batch = {"visible": torch.eye(3).double(), "past": torch.tensor([[0.7, -1.2], [0.1, 0.3], [-2.0, 1.0]]).double()}
    expected = exact_gradient(machine, batch)
    machine.zero_grad(set_to_none=True)
    phases = ExactLikelihood().accumulate_grad(machine, batch, generator=generator)
    assert torch.allclose(gradients(machine), expected, rtol=0, atol=ROUNDING)
    assert phases is not None and phases.negative["visible"].shape == (3, 3)
    for rule in UNIT_RULES.values():  # conditions of their own leave each row the loss that it has by itself
        alone = [rule().loss(machine, {name: value[i : i + 1] for name, value in batch.items()}) for i in range(3)]
        assert rule().loss(machine, batch).item() == pytest.approx(torch.stack(alone).mean().item(), abs=1e-12)


@pytest.mark.parametrize("n_steps", [1, 3])
def test_contrastive_divergence_rests_at_the_truth_and_is_biased_elsewhere(n_steps: int) -> None:
    """By the matrix of Gibbs sampling; PCD runs the same chains."""
    rbm = tiny_rbm("Bernoulli", "Spin")
    states, kernel = gibbs_matrix(rbm)
    p = (-rbm.energy(states)).softmax(0).detach()
    assert torch.allclose(p @ kernel, p, atol=1e-14)
    assert expected_cd_gradient(rbm, p, n_steps).abs().max() < ROUNDING
    other = p.square() / p.square().sum()
    rbm.zero_grad(set_to_none=True)
    rbm.accumulate_grad(states, other - p)
    right = gradients(rbm)
    found = [expected_cd_gradient(rbm, other, k) for k in (n_steps, 200)]
    assert (found[0] - right).abs().max() > 1e4 * ROUNDING
    assert torch.allclose(found[1], right, atol=1e-10)


def test_the_matrix_is_what_cd_does(generator: torch.Generator) -> None:
    """The mean gradient of drawn CD-2 against the matrix, within 5.5 standard errors: 27 entries, false alarm 1e-6."""
    rbm = tiny_rbm("Bernoulli", "Spin")
    x = torch.tensor([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]]).double()
    states, _ = gibbs_matrix(rbm)
    q = (states[:, None] == x).all(-1).double().mean(1)
    rounds = []
    for _ in range(300):
        rbm.zero_grad(set_to_none=True)
        hm.CD(n_steps=2).accumulate_grad(rbm, x.repeat(32, 1), generator=generator)
        rounds.append(gradients(rbm))
    found = torch.stack(rounds)
    error = found.std(0) / len(found) ** 0.5
    assert ((found.mean(0) - expected_cd_gradient(rbm, q, 2)).abs() / (error + 1e-12)).max() < 5.5


def test_noise_contrastive_estimation_rests_at_the_truth() -> None:
    machine = tiny_rbm("Bernoulli", "Spin")
    states, _ = gibbs_matrix(machine)
    with torch.no_grad():
        log_z = (-machine.energy(states)).logsumexp(0).item()
    p = (-machine.energy(states) - log_z).exp().detach()
    noise = IndependentUnits(hm.Bernoulli(4), torch.tensor([0.3, -0.4, 1.0, 0.0]).double())
    q = (-noise.free_energy(states)).exp()
    assert q.sum().item() == pytest.approx(1.0, abs=1e-12)
    for right, ratio in itertools.product((True, False), (1, 3)):
        objective = NoiseContrastive(noise, ratio=ratio, log_z=log_z if right else log_z + 0.1)
        machine.zero_grad(set_to_none=True)
        parts = p * objective.data_losses(machine, states) + q * objective.noise_losses(machine, states)
        parts.sum().backward()
        largest = max(gradients(machine).abs().max().item(), abs(objective.log_z.grad.item()))
        assert largest < ROUNDING if right else largest > 1e-3


def test_score_matching_rests_at_the_truth() -> None:
    """A Gaussian-Bernoulli RBM is a mixture of Gaussians: the mean over it by Gauss-Hermite quadrature is exact."""
    rbm = tiny_rbm("Gaussian", "Bernoulli")
    x, weight = _mixture_nodes(rbm, 40)
    objective = ScoreMatching()
    (objective.losses(rbm, x) * weight).sum().backward()
    assert gradients(rbm).abs().max() < ROUNDING
    rbm.zero_grad(set_to_none=True)
    (objective.losses(rbm, x * 1.1) * weight).sum().backward()
    assert gradients(rbm).abs().max() > 1e-3


def _mixture_nodes(rbm: hm.RBM, n: int) -> tuple[Tensor, Tensor]:
    """Return points and weights of a quadrature over the law of a Gaussian-Bernoulli RBM in the plane."""
    import numpy as np

    roots, weights = (torch.tensor(a) for a in np.polynomial.hermite_e.hermegauss(n))
    law = ExactLaw(rbm)
    means, sigma = rbm.visible_mean(law.states["hidden"]).detach(), rbm.visible.sigma.detach()
    grid = torch.cartesian_prod(roots, roots)
    share = torch.cartesian_prod(weights, weights).prod(1) / (2 * math.pi)
    x = means[:, None] + sigma * grid
    return x.reshape(-1, 2), (law.probability[:, None] * share).flatten()


# --- known answers ----------------------------------------------------------------------------------------------------
def test_losses_of_neighbors_are_the_published_formulas(generator: torch.Generator) -> None:
    rbm = tiny_rbm("Bernoulli", "Spin")
    x = draw_exactly(rbm, 6, generator=generator)["visible"]
    free = rbm.free_energy(x)
    flipped = torch.stack([rbm.free_energy((x - torch.eye(4).double()[i]).abs()) for i in range(4)])
    besag = -logsigmoid(flipped - free).sum(0).mean()
    hyvarinen = (1 / (1 + (flipped - free).exp())).square().sum(0).mean()  # g(p(x)/p(x̄)) with g(u) = 1/(1 + u)
    flow = ((free - flipped) / 2).exp().sum(0).mean()
    for rule, expected in ((PseudoLikelihood, besag), (RatioMatching, hyvarinen), (ProbabilityFlow, flow)):
        assert rule().loss(rbm, x).item() == pytest.approx(expected.item(), abs=1e-12)


@pytest.mark.parametrize("name", ["Categorical-Poisson", "Binomial-NReLU", "labeled"])
def test_pseudo_likelihood_is_that_of_the_conditionals(name: str, generator: torch.Generator) -> None:
    """Against conditionals from the table of all states."""
    machine = ALL_MACHINES[name]()
    law = ExactLaw(machine, max_states=10_000)
    layers = ["visible", "label"] if name == "labeled" else ["visible"]
    drawn = law.draw(5, generator=generator)
    batch = {layer: drawn[layer] for layer in layers}
    rows, p = law.marginal(layers)
    widths = [math.prod(machine.layer(layer).shape) for layer in layers]
    total = torch.zeros(5).double()
    for layer, start in zip(layers, itertools.accumulate([0, *widths[:-1]]), strict=True):
        units = machine.layer(layer)
        for i in range(math.prod(units.sites)):
            width = widths[layers.index(layer)] // math.prod(units.sites)
            inside = torch.zeros(rows.shape[1], dtype=torch.bool)
            inside[start + i * width : start + (i + 1) * width] = True
            x = torch.cat([batch[key].flatten(1) for key in layers], 1)
            rest = (rows[:, ~inside] == x[:, None][..., ~inside]).all(-1)
            whole = (rows == x[:, None]).all(-1)
            total -= ((whole * p).sum(1) / (rest * p).sum(1)).log()
    assert torch.allclose(PseudoLikelihood().losses(machine, batch), total, atol=1e-10)


@pytest.mark.parametrize("rule", UNIT_RULES)
def test_the_stochastic_form_is_unbiased(rule: str, generator: torch.Generator) -> None:
    """Each row 20,000 times with one unit drawn: the mean is that of all units; 6 comparisons within 5.3 errors."""
    rbm = tiny_rbm("Categorical", "Bernoulli")
    x = draw_exactly(rbm, 6, generator=generator)["visible"]
    whole = UNIT_RULES[rule]().losses(rbm, {"visible": x}).detach()
    many = {"visible": x.repeat_interleave(20_000, 0)}
    drawn = UNIT_RULES[rule](1).losses(rbm, many, generator=generator).detach().reshape(6, -1)
    error = drawn.std(1) / drawn.shape[1] ** 0.5
    assert ((drawn.mean(1) - whole).abs() / (error + 1e-9)).max() < 5.3
    assert (drawn.std(1) > 1e-3).any()  # drawn indeed


@pytest.mark.parametrize("rule", UNIT_RULES)
def test_rows_without_a_layer_and_weights(rule: str, generator: torch.Generator) -> None:
    machine = tiny_labeled_rbm()
    drawn = ExactLaw(machine).draw(4, generator=generator)
    label = drawn["label"].clone()
    label[1] = torch.nan
    objective = UNIT_RULES[rule]()
    one = objective.loss(machine, {"visible": drawn["visible"], "label": label})
    with_label = objective.losses(machine, {name: drawn[name][[0, 2, 3]] for name in ("visible", "label")})
    without = objective.losses(machine, {"visible": drawn["visible"][1:2]})
    assert one.item() == pytest.approx(torch.cat([with_label, without]).mean().item(), abs=1e-12)
    found = []
    for rows, weight in (([0, 2], [2.0, 1.0]), ([0, 0, 2], None)):
        machine.zero_grad(set_to_none=True)
        w = None if weight is None else torch.tensor(weight).double()
        objective.accumulate_grad(machine, {"visible": drawn["visible"][rows]}, weight=w)
        found.append(gradients(machine))
    assert torch.allclose(*found, atol=1e-12)


# --- fast weights -----------------------------------------------------------------------------------------------------
def test_fast_weights_follow_the_gradient_and_drive_the_chains(generator: torch.Generator) -> None:
    rbm, twin = tiny_rbm("Bernoulli", "Spin"), tiny_rbm("Bernoulli", "Spin")
    x = draw_exactly(rbm, 8, generator=generator)["visible"]
    objective = FastPCD(n_chains=50, fast_rate=3.0, decay=0.9)
    objective.accumulate_grad(rbm, x, generator=generator)
    first = rbm.weight.grad.clone()
    assert torch.allclose(objective.fast["0.weight"], -3.0 * first)
    chains = dict(objective.chains or {})
    with torch.no_grad():
        for name, p in twin.couplings.named_parameters():
            p.add_(objective.fast[name])
    expected, _ = hm.Gibbs().step(twin, chains, generator=torch.Generator().manual_seed(4))
    before = {name: p.detach().clone() for name, p in rbm.named_parameters()}
    objective.accumulate_grad(rbm, x, generator=torch.Generator().manual_seed(4))  # added to the gradient that is there
    assert torch.equal((objective.chains or {})["visible"], expected["visible"])
    assert all(torch.equal(p, before[name]) for name, p in rbm.named_parameters())
    second = rbm.weight.grad - first
    assert torch.allclose(objective.fast["0.weight"], 0.9 * -3.0 * first - 3.0 * second)
    slow, _ = hm.Gibbs().step(rbm, chains, generator=torch.Generator().manual_seed(4))
    assert not torch.equal(slow["hidden"], expected["hidden"]) or not torch.equal(slow["visible"], expected["visible"])


def test_fast_weights_that_do_not_move_are_pcd(generator: torch.Generator) -> None:
    rbm = tiny_rbm("Spin", "Categorical")
    x = draw_exactly(rbm, 8, generator=generator)["visible"]
    found = []
    for objective in (hm.PCD(n_chains=6), FastPCD(n_chains=6, fast_rate=1e-300)):
        rbm.zero_grad(set_to_none=True)
        words = torch.Generator().manual_seed(1)
        for _ in range(3):
            objective.accumulate_grad(rbm, x, generator=words)
        found.append(gradients(rbm))
    assert torch.allclose(*found, atol=1e-12)


# --- perturb-and-MAP --------------------------------------------------------------------------------------------------
def test_perturb_and_map_is_not_consistent(generator: torch.Generator) -> None:
    """It rests where units are independent (its contract), and not with couplings: as its page says."""
    machine = small_machine()
    case = Case(
        lambda *, generator: PerturbAndMAP(), machine, lambda n, *, generator: draw_exactly(
            machine, n, layers=("visible",), generator=generator
        )
    )  # fmt: skip
    with pytest.raises(ContractError, match="standard errors from zero"):
        check_objective(case, n_rounds=200, generator=generator)


@pytest.mark.parametrize("name", ["Bernoulli-Spin", "Categorical-Bernoulli", "Binomial-Multinary", "Potts", "deep"])
def test_the_mode_is_the_highest_of_all_states(name: str) -> None:
    machine = ALL_MACHINES[name]()
    x = {machine.data_layer: torch.zeros(7, *machine.layer(machine.data_layer).shape).double()}
    mode = PerturbAndMAP().draw_negatives(machine, x, generator=torch.Generator().manual_seed(3))
    words = torch.Generator().manual_seed(3)
    noise = {layer: _gumbel(machine, layer, 7, x, words) for layer in machine.layers}
    states = ExactLaw(machine, max_states=10_000).states

    def height(state: dict[str, Tensor]) -> Tensor:
        parts = [_noise_at(machine.layer(layer), state[layer], noise[layer]) for layer in machine.layers]
        return torch.stack(parts).sum(0) - machine.energy(state)[:, None]

    highest = height(states).amax(0)
    assert torch.allclose(height(mode).diagonal(), highest, atol=1e-12)


def test_ascent_ends_on_a_peak_at_most_as_high(monkeypatch: pytest.MonkeyPatch) -> None:
    rbm = tiny_rbm("Bernoulli", "Bernoulli")
    with torch.no_grad():
        rbm.weight.mul_(10)
    x = {"visible": torch.zeros(200, 4).double()}
    best = PerturbAndMAP().draw_negatives(rbm, x, generator=torch.Generator().manual_seed(3))
    monkeypatch.setattr("harmonium.learning.objectives.perturb_and_map.MAX_STATES", 1)
    found = PerturbAndMAP().draw_negatives(rbm, x, generator=torch.Generator().manual_seed(3))
    words = torch.Generator().manual_seed(3)
    noise = {layer: _gumbel(rbm, layer, 200, x, words) for layer in rbm.layers}

    def height(state: dict[str, Tensor]) -> Tensor:
        parts = [_noise_at(rbm.layer(layer), state[layer], noise[layer]).diagonal() for layer in rbm.layers]
        return torch.stack(parts).sum(0) - rbm.energy(state)

    assert (height(found) <= height(best) + 1e-12).all()
    for layer in rbm.layers:
        units, field = rbm.layer(layer), rbm.field(layer, found)
        again = units.join_sites(units.states().double()[(units.log_weights(field) + noise[layer]).argmax(-1)])
        assert torch.equal(again, found[layer])


# --- in use -----------------------------------------------------------------------------------------------------------
FITS: dict[str, tuple[Callable[[], Objective] | None, int, float]] = {
    "exact": (ExactLikelihood, 100, 0.5),
    "fast": (lambda: FastPCD(n_chains=256, n_steps=2), 100, 0.5),
    "pseudo": (PseudoLikelihood, 100, 0.5),
    "stochastic": (lambda: PseudoLikelihood(3), 100, 0.5),
    "ratio": (RatioMatching, 100, 0.5),
    "flow": (ProbabilityFlow, 100, 0.5),
    "perturb": (PerturbAndMAP, 100, 0.0),  # not consistent: on this law it hardly leaves independent units
    "noise": (None, 300, 0.5),
}
"""An objective, how many updates it needs, and how many nats it gains on independent units at the least."""


@pytest.mark.parametrize("name", FITS)
def test_every_rule_learns_by_fit(name: str) -> None:
    """Two copies of one coin, four times: independent units have 8 log 2 nats, the truth half of that."""
    make, n_updates, margin = FITS[name]
    coins = (torch.arange(16)[:, None] >> torch.arange(4) & 1).float()
    x = coins.repeat_interleave(2, 1).repeat(4, 1)
    words = torch.Generator().manual_seed(0)
    rbm = hm.RBM(hm.Bernoulli(8), hm.Bernoulli(6), generator=words)
    hm.initialize(rbm, x)
    objective = NoiseContrastive.of(rbm, x) if make is None else make()
    optimizer = torch.optim.Adam([*rbm.parameters(), *objective.parameters()], 0.1)
    fall = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, n_updates)
    hm.fit(
        rbm,
        x,
        objective,
        optimizer=optimizer,
        schedule=fall,
        epochs=n_updates,
        batch_size=64,
        monitors=[],
        generator=words,
    )
    assert hm.log_likelihood(rbm, x).mean().value > -8 * math.log(2) + margin


def test_gaussian_data_learn_by_score_matching() -> None:
    words = torch.Generator().manual_seed(0)
    sides = torch.tensor([1.0, -1.0]) * torch.randn(256, 1, generator=words).sign()
    x = sides + 0.3 * torch.randn(256, 2, generator=words)
    single = gaussian_log_density(x, x).mean().item()
    for objective in (ScoreMatching(), SlicedScoreMatching(n_projections=4)):
        rbm = hm.RBM(hm.Gaussian(2), hm.Bernoulli(2), generator=torch.Generator().manual_seed(1))
        optimizer = torch.optim.Adam(rbm.parameters(), 0.05)
        hm.fit(
            rbm, x, objective, optimizer=optimizer, epochs=60, monitors=[], generator=torch.Generator().manual_seed(2)
        )
        assert hm.log_likelihood(rbm, x).mean().value > single + 0.05


@pytest.mark.parametrize(
    ("make", "model", "text"),
    [
        (PseudoLikelihood, lambda: hm.RBM(hm.Gaussian(3), hm.Bernoulli(2)), "Use SlicedScoreMatching, CD or PCD"),
        (RatioMatching, lambda: hm.RBM(hm.Poisson(3), hm.Bernoulli(2)), "no finite list"),
        (ProbabilityFlow, lambda: hm.NeuralEBM(hm.MLP(2)), "needs a Boltzmann machine"),
        (ScoreMatching, lambda: hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2)), "Use RatioMatching"),
        (SlicedScoreMatching, lambda: hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2)), "Use RatioMatching"),
        (ExactLikelihood, lambda: hm.RBM(hm.Bernoulli(20), hm.Bernoulli(17)), "131,072, more than 65,536. Use PCD"),
        (ExactLikelihood, lambda: hm.NeuralEBM(hm.MLP(2)), "needs a Boltzmann machine"),
        (
            ExactLikelihood,
            lambda: hm.BoltzmannMachine({"x": hm.Bernoulli(3)}, [(("x",), hm.Bias(3))]),
            "are independent",
        ),
        (PerturbAndMAP, lambda: hm.RBM(hm.Bernoulli(3), hm.Gaussian(2)), "no finite list. Use PCD"),
        (PerturbAndMAP, lambda: hm.NeuralEBM(hm.MLP(2)), "needs a Boltzmann machine"),
        (
            PerturbAndMAP,
            lambda: hm.BoltzmannMachine({"x": hm.Spin(13)}, [(("x", "x"), hm.Symmetric(13)), (("x",), hm.Bias(13))]),
            "tied to itself by counting",
        ),
    ],
)
def test_models_that_a_rule_cannot_train(
    make: Callable[[], Objective], model: Callable[[], torch.nn.Module], text: str
) -> None:
    with pytest.raises(TypeError, match=text):
        make().check(model())


def test_values_that_are_no_states(generator: torch.Generator) -> None:
    rbm = hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2))
    with pytest.raises(ValueError, match="such as means"):
        PseudoLikelihood().loss(rbm, torch.full((2, 3), 0.5))


def test_bad_numbers() -> None:
    with pytest.raises(ValueError, match="`n_units` must be at least 1"):
        PseudoLikelihood(0)
    with pytest.raises(ValueError, match="`fast_rate` must be positive"):
        FastPCD(fast_rate=0)
    with pytest.raises(ValueError, match="`decay` must lie in"):
        FastPCD(decay=1.0)
    with pytest.raises(ValueError, match="`n_rounds` must be at least 1"):
        PerturbAndMAP(n_rounds=0)
    with pytest.raises(ValueError, match="The noise has samples of shape"):
        NoiseContrastive(IndependentUnits(hm.Bernoulli(2), torch.zeros(2))).check(
            hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2))
        )


def test_l1_decay_adds_the_sign_of_the_weights() -> None:
    rbm = tiny_rbm("Bernoulli", "Spin")
    with torch.no_grad():
        rbm.weight[0, 0] = 0.0
    hm.CD().accumulate_grad(rbm, torch.ones(2, 4).double(), generator=torch.Generator().manual_seed(0))
    before = gradients(rbm)
    L1Decay(0.1).before(rbm, None)
    signs = torch.cat(
        [torch.zeros_like(p).flatten() if p.ndim == 1 else p.detach().sign().flatten() for p in rbm.parameters()]
    )
    assert torch.allclose(gradients(rbm) - before, 0.1 * signs, atol=1e-12)
