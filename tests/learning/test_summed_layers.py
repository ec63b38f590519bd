"""Deep belief networks learn: the loss of Hwang et al. 2020 for any activation, all layers at once, layer by layer."""

from __future__ import annotations

import copy

import pytest
import torch
from scipy.integrate import quad
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import Tensor

import harmonium as hm
from harmonium.learning import Training, fit_greedy
from harmonium.learning.monitors import default_monitors
from harmonium.learning.objectives.summed_layers import layer_phases
from harmonium.learning.starts import initialize_layers, layer_rates
from harmonium.learning.state import restore, snapshot
from harmonium.learning.transforms import EachLayer
from harmonium.models import DBN, RBM
from tests.learning.machines import gradient_of

ACTIVATIONS = ["sigmoid", "relu", "tanh", "softplus", hm.units.Activation("atan", lambda x: x.atan() / torch.pi + 0.5)]


def scattered(model: DBN | RBM, generator: torch.Generator, scale: float = 0.3) -> DBN | RBM:
    """Give a model random parameters in float64."""
    model = model.double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, dtype=torch.float64, generator=generator))
    return model


# --- the loss of one machine ------------------------------------------------------------------------------------------
def test_gradient_of_binary_units_is_cd_1(generator: torch.Generator) -> None:
    """N = 1: the gradient of `F(v) - F(v')` with v' constant is `-(⟨v hᵀ⟩ - ⟨v' h'ᵀ⟩)`, written by hand."""
    rbm = scattered(hm.RBM(hm.Multinary(5, levels=1), hm.Multinary(3, levels=1)), generator)
    assert isinstance(rbm, RBM)
    v = torch.randint(2, (7, 5), generator=generator).double()
    W, a, b = rbm.weight.detach(), rbm.visible_bias.detach(), rbm.hidden_bias.detach()
    h = (b + v @ W).sigmoid()
    v2 = (a + h @ W.T).sigmoid()
    h2 = (b + v2 @ W).sigmoid()
    expected = (-(v.T @ h - v2.T @ h2) / 7, -(v - v2).mean(0), -(h - h2).mean(0))
    hm.learning.objectives.MeanFieldCD().accumulate_grad(rbm, v)
    for parameter, slope in zip((rbm.weight, rbm.visible_bias, rbm.hidden_bias), expected, strict=True):
        assert torch.allclose(parameter.grad, slope, atol=1e-12)
        assert not torch.allclose(parameter.grad, -slope, atol=1e-3)  # the paper's L is maximized: the other sign
    closed = gradient_of(rbm)
    rbm.zero_grad()
    hm.learning.objectives.MeanFieldCD().loss(rbm, v).backward()
    assert all(torch.allclose(gradient_of(rbm)[name], slope, atol=1e-12) for name, slope in closed.items())


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
@pytest.mark.parametrize("levels", [1, 7, 255])
def test_loss_of_every_activation(
    levels: int, activation: str | hm.units.Activation, generator: torch.Generator
) -> None:
    """Eq. 4 and 6, `a·(v' - v) - Σ_j ∫_{x'_j}^{x_j} f`, with the integral by adaptive quadrature of f."""
    k = 1.0 / levels
    visible, hidden = (hm.Multinary(n, levels=levels, k=k, activation=activation) for n in (4, 3))
    rbm = scattered(hm.RBM(visible, hidden), generator)
    assert isinstance(rbm, RBM)
    v = (torch.rand(3, 4, generator=generator) * levels).double()
    v2 = rbm.reconstruct(v).detach()
    x, x2 = (rbm.field("hidden", {"visible": value}).detach() for value in (v, v2))

    def f(t: float) -> float:
        return hidden.mean(torch.tensor([t], dtype=torch.float64)).item()

    corners = [0.0, 1 / k]  # where relu bends
    integral = sum(
        quad(f, low, high, points=[c for c in corners if min(low, high) < c < max(low, high)] or None, epsabs=1e-10)[0]
        for low, high in zip(x2.flatten().tolist(), x.flatten().tolist(), strict=True)
    )
    expected = ((v2 - v) @ rbm.visible_bias.detach()).mean().item() - integral / 3
    loss = hm.learning.objectives.MeanFieldCD().loss(rbm, v)
    assert loss.item() == pytest.approx(expected, rel=1e-6, abs=1e-6 * levels**2)
    loss.backward()
    slopes = gradient_of(rbm)
    rbm.zero_grad()
    hm.learning.objectives.MeanFieldCD().accumulate_grad(rbm, v)
    assert all(torch.allclose(slopes[name], g, rtol=1e-6, atol=1e-6 * levels) for name, g in gradient_of(rbm).items())


def test_hidden_draws_differ_from_means(generator: torch.Generator) -> None:
    rbm = scattered(hm.RBM(hm.Bernoulli(5), hm.Bernoulli(3)), generator, 1.0)
    v = torch.randint(2, (9, 5), generator=generator).double()
    batch = {"visible": v}
    mean = hm.learning.objectives.MeanFieldCD().draw_negatives(rbm, batch)["visible"]
    assert torch.allclose(mean, rbm.reconstruct(v))  # type: ignore[operator]
    by_draws = hm.learning.objectives.MeanFieldCD(sample_hidden=True)
    drawn = [by_draws.draw_negatives(rbm, batch, generator=generator)["visible"] for _ in range(2)]
    assert not torch.allclose(drawn[0], drawn[1])
    twice = hm.learning.objectives.MeanFieldCD(n_steps=2).draw_negatives(rbm, batch)["visible"]
    assert torch.allclose(twice, rbm.reconstruct(mean))  # type: ignore[operator]
    with pytest.raises(TypeError, match="MeanFieldCD needs an RBM. Got DBN.*SummedLayers for a DBN"):
        hm.learning.objectives.MeanFieldCD().loss(DBN([rbm]), v)  # type: ignore[list-item, arg-type]
    with pytest.raises(ValueError, match="at least 1"):
        hm.learning.objectives.MeanFieldCD(n_steps=0)


# --- all machines at once ---------------------------------------------------------------------------------------------
SPECS = {
    "binary": ("conv 3 4x4/2, dense 5, dense 2", 1),
    "pooled": ("conv 3 3x3 pool 2, conv 2 2x2/2, dense 4", 1),
    "multinary": ("conv 3 4x4/2, conv 4 2x2/2, dense 5", 255),
}


def network(name: str, generator: torch.Generator) -> tuple[DBN, Tensor]:
    spec, levels = SPECS[name]
    dbn = scattered(DBN.from_spec(spec, shape=(1, 8, 8), levels=levels), generator, 0.3 / levels**0.5)
    x = (torch.rand(6, 1, 8, 8, generator=generator) * levels).round().double()
    return dbn, x  # type: ignore[return-value]


@pytest.mark.parametrize(
    "objective",
    [hm.learning.objectives.MeanFieldCD(), hm.learning.objectives.MeanFieldCD(2, True), hm.CD(), hm.PCD(n_chains=4)],
    ids=repr,
)
@pytest.mark.parametrize("name", SPECS)
def test_closed_form_is_the_gradient_of_the_summed_loss(
    name: str, objective: object, generator: torch.Generator
) -> None:
    """Autograd of `Σ_l F_l(v_l) - F_l(v'_l)`, and the gradients of the machines on their own, with the same draws."""
    dbn, x = network(name, generator)
    joint = hm.learning.objectives.SummedLayers(objective)  # type: ignore[arg-type]
    phases = joint.accumulate_grad(dbn, x, generator=torch.Generator().manual_seed(5))
    closed = gradient_of(dbn)  # type: ignore[arg-type]
    dbn.zero_grad()
    for i, rbm in enumerate(dbn):
        both = layer_phases(phases, i)
        assert torch.allclose(both.positive["visible"], dbn.enter(i, dbn.up(x, i)))
        (rbm.energy(both.positive["visible"]).mean() - rbm.energy(both.negative["visible"]).mean()).backward()
    by_phases = gradient_of(dbn)  # type: ignore[arg-type]
    for label, slope in closed.items():
        assert torch.allclose(by_phases[label], slope, rtol=1e-7, atol=1e-9 * max(1.0, slope.abs().max().item())), label
    if isinstance(objective, hm.learning.objectives.MeanFieldCD) and not objective.sample_hidden:
        dbn.zero_grad()
        hm.learning.objectives.SummedLayers(objective).loss(dbn, x).backward()
        for label, slope in gradient_of(dbn).items():  # type: ignore[arg-type]
            assert torch.allclose(closed[label], slope, rtol=1e-7, atol=1e-9 * max(1.0, slope.abs().max().item()))


def test_weights_of_the_losses(generator: torch.Generator) -> None:
    dbn, x = network("binary", generator)
    hm.learning.objectives.SummedLayers().accumulate_grad(dbn, x)
    plain = gradient_of(dbn)  # type: ignore[arg-type]
    for use in (lambda o: o.accumulate_grad(dbn, x), lambda o: o.loss(dbn, x).backward()):
        dbn.zero_grad()
        use(hm.learning.objectives.SummedLayers(weights=(1.0, 0.5, 0.0)))
        found = gradient_of(dbn)  # type: ignore[arg-type]
        for label, slope in plain.items():
            factor = (1.0, 0.5, 0.0)[int(label.split(".")[1])]
            assert torch.allclose(found.get(label, torch.zeros_like(slope)), factor * slope, atol=1e-12), label
    with pytest.raises(ValueError, match="one value for each of 3 machines"):
        hm.learning.objectives.SummedLayers(weights=(1.0,)).loss(dbn, x)


def test_wrong_models_are_named(generator: torch.Generator) -> None:
    dbn, x = network("binary", generator)
    with pytest.raises(TypeError, match="SummedLayers trains a DBN. Got RBM"):
        hm.learning.objectives.SummedLayers().loss(dbn[0], x)
    with pytest.raises(TypeError, match="Gibbs needs a BoltzmannMachine"):
        hm.CD().loss(dbn, x)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"for a DBN trained by SummedLayers wrap it: EachLayer\(Sparsity"):
        hm.Sparsity(0.1, 1.0).before(dbn, hm.learning.objectives.SummedLayers().accumulate_grad(dbn, x))
    with pytest.raises(TypeError, match="EachLayer is for a DBN. Got RBM"):
        EachLayer(hm.Centering()).before(dbn[0], None)
    sgd = torch.optim.SGD(dbn.parameters(), 0.1)
    with pytest.raises(ValueError, match="`visible` must lie in"):
        hm.fit(dbn, 9 * x, hm.learning.objectives.SummedLayers(), optimizer=sgd, epochs=1)


# --- gradient transforms ----------------------------------------------------------------------------------------------
def test_each_layer_is_the_transform_on_every_machine(generator: torch.Generator) -> None:
    dbn, x = network("binary", generator)
    other = copy.deepcopy(dbn)
    phases = hm.learning.objectives.SummedLayers().accumulate_grad(dbn, x)
    hm.learning.objectives.SummedLayers().accumulate_grad(other, x)
    EachLayer(hm.Sparsity(0.1, 2.0)).before(dbn, phases)
    for i, rbm in enumerate(other):
        hm.Sparsity(0.1, 2.0).before(rbm, layer_phases(phases, i))
        q = layer_phases(phases, i).positive["hidden"].mean(0)
        pressure = 2.0 * (q - 0.1).sum_to_size(rbm.hidden_bias.shape)
        assert torch.allclose(dbn[i].hidden_bias.grad, rbm.hidden_bias.grad)  # type: ignore[arg-type]
        rbm.zero_grad()
        hm.learning.objectives.MeanFieldCD().accumulate_grad(rbm, other.enter(i, other.up(x, i)))
        assert torch.allclose(dbn[i].hidden_bias.grad - rbm.hidden_bias.grad, pressure)  # type: ignore[operator]


def test_centered_convolution_is_the_centered_parameterization(generator: torch.Generator) -> None:
    """`J Jᵀ ∇` with `b = b̃ - L_λ W`, `c = c̃ - L_μ W`: the Jacobian by autograd; and the plain gradient is another."""
    rbm = scattered(
        hm.RBM(hm.Bernoulli(2, 4, 4), hm.Bernoulli(3, 4, 4), hm.Conv2d(2, 3, kernel=3, padding=1)), generator
    )
    x = torch.rand(5, 2, 4, 4, dtype=torch.float64, generator=generator)
    phases = hm.learning.objectives.MeanFieldCD().accumulate_grad(rbm, x)  # type: ignore[arg-type]
    plain = gradient_of(rbm)  # type: ignore[arg-type]
    start = {name: p.detach().clone() for name, p in rbm.named_parameters()}
    centering = hm.Centering()
    centering.before(rbm, phases)
    torch.optim.SGD(rbm.parameters(), 0.1).step()
    centering.after(rbm)
    centered = {name: (start[name] - p.detach()) / 0.1 for name, p in rbm.named_parameters()}
    mu, lam = (
        torch.cat([phases.positive[n], phases.negative[n]]).mean((0, 2, 3))[:, None, None].expand(-1, 4, 4)
        for n in ("visible", "hidden")
    )

    def actual(W: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        down = torch.nn.functional.conv_transpose2d(lam[None], W, padding=1)[0].mean((1, 2), keepdim=True)
        up = torch.nn.functional.conv2d(mu[None], W, padding=1)[0].mean((1, 2), keepdim=True)
        return W, b - down, c - up

    names = [name for name, _ in rbm.named_parameters()]
    at = tuple(plain[name] for name in names)
    _, pulled = torch.autograd.functional.vjp(actual, at, at)  # Jᵀ∇; the map is linear, so J is the map itself
    expected = actual(*pulled)
    for name, slope in zip(names, expected, strict=True):
        assert torch.allclose(centered[name], slope, atol=1e-12), name
    assert not torch.allclose(centered[names[0]], plain[names[0]], atol=1e-3)


@pytest.mark.parametrize("transform", [hm.Centering(), hm.Sparsity(0.1, 0.1)], ids=repr)
@pytest.mark.parametrize("name", SPECS)
def test_transforms_run_in_both_ways_of_training(name: str, transform: object, generator: torch.Generator) -> None:
    dbn, x = network(name, generator)
    before = copy.deepcopy(dbn.state_dict())
    sgd = torch.optim.SGD(dbn.parameters(), 1e-6)
    each = EachLayer(transform)  # type: ignore[arg-type]
    hm.fit(
        dbn,
        x,
        hm.learning.objectives.SummedLayers(),
        optimizer=sgd,
        epochs=2,
        transforms=[each, hm.WeightDecay(1e-3)],
        generator=generator,
    )
    assert all(not torch.equal(before[name], value) for name, value in dbn.state_dict().items())
    again = EachLayer(transform)  # type: ignore[arg-type]
    again.load_state_dict(each.state_dict())
    assert all(torch.equal(value, again.state_dict()[key]) for key, value in each.state_dict().items())
    fit_greedy(
        dbn, x, hm.CD(), optimizer=lambda p: torch.optim.SGD(p, 1e-6), epochs=1, transforms=[transform],  # type: ignore[list-item]
        generator=generator,
    )  # fmt: skip


def images(levels: int) -> tuple[Tensor, Tensor]:
    """Return the 1,797 handwritten digits, 8 × 8, in 0..levels, and their labels, in a fixed order."""
    bunch = load_digits()
    order = torch.randperm(len(bunch.images), generator=torch.Generator().manual_seed(0))
    x = torch.from_numpy(bunch.images).float()[:, None] / 16 * levels
    return x[order], torch.from_numpy(bunch.target)[order]


# --- learning ---------------------------------------------------------------------------------------------------------
def test_history_and_exact_resume(generator: torch.Generator) -> None:
    x = images(1)[0][:300]

    def training() -> Training:
        g = torch.Generator().manual_seed(1)
        dbn = DBN.from_spec("conv 4 4x4/2, dense 5", shape=(1, 8, 8), generator=g)
        adam = torch.optim.Adam(dbn.parameters(), 0.01)
        monitors = default_monitors()
        each = EachLayer(hm.Centering())
        joint = hm.learning.objectives.SummedLayers(hm.PCD(n_chains=10))
        return Training(
            dbn, x, joint, optimizer=adam, epochs=4, monitors=monitors, transforms=[each], generator=g, batch_size=100
        )

    whole, first, second = training(), training(), training()
    whole.run()
    first.epochs = 2
    first.run()
    tensors, plain = snapshot(first)
    restore(second, {name: value.clone() for name, value in tensors.items()}, plain)
    second.run()
    for a, b in zip(whole.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(a, b)
    assert len(second.history) == 4
    assert {"unexplained_1", "unexplained_2", "contrast", "reconstruction", "activity_2"} <= set(
        second.history.records[-1]
    )


@pytest.mark.filterwarnings("ignore:.*hidden units never fire")  # one or two of the batch of 50
def test_joint_training_learns_digits(generator: torch.Generator) -> None:
    """255 levels, all machines at once: every machine explains its data, and the network its images from each depth."""
    x, _ = images(255)
    dbn = DBN.from_spec("conv 16 4x4/2, conv 32 2x2/2, dense 40", shape=(1, 8, 8), levels=255, generator=generator)
    initialize_layers(dbn, x[:300])
    adam = torch.optim.Adam(layer_rates(dbn, 0.03))  # the paper's rate
    history = hm.fit(
        dbn,
        x[:1500],
        hm.learning.objectives.SummedLayers(),
        optimizer=adam,
        epochs=15,
        generator=generator,
        batch_size=50,
    )
    first, last = history.records[0], history.records[-1]
    for i in (1, 2, 3):
        assert last[f"unexplained_{i}"] < 0.5 * first[f"unexplained_{i}"]
        assert last[f"unexplained_{i}"] < 0.4
    test = x[1500:]
    spread = (test - x[:1500].mean(0)).square().mean()
    errors = [((dbn.reconstruct(test, depth) - test).square().mean() / spread).item() for depth in (1, 2, 3)]
    assert errors[0] < errors[2] < 0.5  # the deeper, the less is known of the pixels
    control = DBN.from_spec("conv 16 4x4/2, conv 32 2x2/2, dense 40", shape=(1, 8, 8), levels=255, generator=generator)
    assert (control.reconstruct(test) - test).square().mean() / spread > 0.95  # untrained


@pytest.mark.filterwarnings("ignore:.*hidden units never fire")  # one or two of the batch of 50
def test_features_beat_pixels(generator: torch.Generator) -> None:
    """A linear classifier of 300 labels errs less on the features than on pixels at the best of its penalties there."""
    x, y = images(255)
    dbn = DBN.from_spec("conv 32 4x4/2, dense 40", shape=(1, 8, 8), levels=255, generator=generator)
    initialize_layers(dbn, x[:300])

    def error(features: Tensor, penalty: float) -> float:
        rows = features.detach().flatten(1).double()
        rows = ((rows - rows[:300].mean(0)) / rows[:300].std()).numpy()
        classifier = LogisticRegression(C=penalty, max_iter=300).fit(rows[:300], y[:300].numpy())
        return 1 - classifier.score(rows[300:], y[300:].numpy())

    untrained = error(dbn.up(x, 1), 0.3)
    adam = torch.optim.Adam(layer_rates(dbn, 0.1))
    sparse = EachLayer(hm.Sparsity(25.5, 1.0))
    hm.fit(
        dbn,
        x,
        hm.learning.objectives.SummedLayers(),
        optimizer=adam,
        epochs=10,
        batch_size=50,
        transforms=[sparse],
        generator=generator,
    )
    features = error(dbn.up(x, 1), 0.3)
    assert features < untrained  # the negative control: random filters do not
    assert features < min(error(x, penalty) for penalty in (0.1, 1.0, 10.0))


def test_greedy_training_learns_digits(generator: torch.Generator) -> None:
    """Binary units with max-pooling, layer by layer; uint8 data go up batch by batch."""
    x, _ = images(1)
    data = (x > 0.5).to(torch.uint8)
    dbn = DBN.from_spec("conv 16 3x3 pool 2, dense 40", shape=(1, 8, 8), generator=generator)

    def errors(rate: float, epochs: list[int]) -> list[float]:
        histories = fit_greedy(
            dbn,
            data[:1500],
            hm.CD(),
            optimizer=lambda parameters: torch.optim.SGD(parameters, rate),
            epochs=epochs,
            batch_size=50,
            generator=generator,
        )
        assert [len(history) for history in histories] == epochs
        return [history.last["reconstruction"] for history in histories]

    untrained, _ = errors(0.0, [1, 1])
    top = dbn[1].weight.clone()
    trained, _ = errors(0.05, [4, 8])
    assert trained < 0.5 * untrained
    assert not torch.equal(dbn[1].weight, top)
    with pytest.raises(ValueError, match="one for each of 2 machines"):
        fit_greedy(dbn, data, hm.CD(), optimizer=lambda p: torch.optim.SGD(p, 0.05), epochs=[1])


def test_greedy_machines_learn_from_those_below(generator: torch.Generator) -> None:
    """The second machine alone, on features made beforehand, ends at the same parameters as inside `fit_greedy`."""
    x = images(1)[0][:200]
    dbn = DBN.from_spec("conv 4 4x4/2, dense 5", shape=(1, 8, 8), generator=generator)
    alone = copy.deepcopy(dbn)
    sgd = lambda parameters: torch.optim.SGD(parameters, 0.05)  # noqa: E731
    fit_greedy(
        dbn, x, hm.learning.objectives.MeanFieldCD(), optimizer=sgd, epochs=[0, 3], start_biases=False,
        generator=torch.Generator().manual_seed(2),
    )  # fmt: skip
    features = alone.up(x, 1).detach().flatten(1)
    g = torch.Generator().manual_seed(2)
    hm.fit(
        alone[1],
        features,
        hm.learning.objectives.MeanFieldCD(),
        optimizer=sgd(alone[1].parameters()),
        epochs=3,
        generator=g,
    )
    for name, value in alone.state_dict().items():
        assert torch.allclose(dbn.state_dict()[name], value, atol=1e-6), name
    assert torch.equal(dbn[0].weight, alone[0].weight)


def test_initialize_layers_puts_units_in_the_middle(generator: torch.Generator) -> None:
    """No field times k varies by more than asked, one of up and down by just that; the mean goes up and comes down."""
    x, _ = images(255)
    dbn = DBN.from_spec("conv 16 4x4/2, conv 32 2x2/2, dense 40", shape=(1, 8, 8), levels=255, generator=generator)
    initialize_layers(dbn, x[:500], spread=0.5)
    for i, rbm in enumerate(dbn):
        v = dbn.enter(i, dbn.up(x[:500], i))
        h = rbm.mean("hidden", {"visible": v})
        up, down = rbm.field("hidden", {"visible": v}), rbm.field("visible", {"hidden": h})
        widths = [(field - field.mean(0)).std().item() * 4 / 255 for field in (up, down)]
        assert max(widths) == pytest.approx(0.5, rel=0.1)
        assert up.mean().abs() * 4 / 255 < 1e-3
        assert h.mean().item() == pytest.approx(127.5, rel=0.02)
    rbm = dbn[2]  # dense: its biases are its own at every unit
    v = dbn.enter(2, dbn.up(x[:500], 2))
    mean = rbm.mean("visible", {"hidden": rbm.mean("hidden", {"visible": v}).mean(0, keepdim=True)})[0]
    assert (mean - v.mean(0)).abs().max() < 1.0  # of 255 levels


def test_layer_rates_mean_the_same_for_any_levels() -> None:
    """One step of every parameter against the field moves `kθ` as far, whatever N, k and the scale of the data."""
    moves = []
    for levels, k in ((1, None), (255, None), (255, 1 / 255), (15, 0.1)):
        dbn = DBN.from_spec("conv 4 4x4/2, dense 5", shape=(1, 8, 8), levels=levels, k=k)
        before = copy.deepcopy(dbn)
        with torch.no_grad():
            for group in layer_rates(dbn, 0.03):
                for parameter in group["params"]:
                    parameter.add_(group["lr"])
        x = torch.full((1, 1, 8, 8), 0.5 * levels)
        steep = dbn[0].hidden.steepness
        change = dbn[0].field("hidden", {"visible": x}) - before[0].field("hidden", {"visible": x})
        moves.append(steep * change[0, 0, 1, 1].item())
    assert moves == pytest.approx([0.03 * (0.5 * 16 + 1) / 4] * 4, rel=1e-4)
    groups = layer_rates(dbn, 0.03)
    assert sum(len(group["params"]) for group in groups) == len(list(dbn.parameters()))
    real = DBN([hm.RBM(hm.Gaussian(6), hm.Bernoulli(4))])
    assert sum(len(group["params"]) for group in layer_rates(real, 0.1)) == len(list(real.parameters()))
