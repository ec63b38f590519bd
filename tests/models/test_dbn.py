"""Deep belief networks: the spec, the way up and down, and the law of a tiny one by enumeration."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from harmonium.couplings import Conv2d
from harmonium.models import DBN, RBM, load
from harmonium.samplers.from_top import sample_from_top
from harmonium.testing.contract import FALSE_ALARM, chi_square_tail
from harmonium.units import Bernoulli, Gaussian, MaxPooled, Multinary, NReLU, Spin


def randomized(dbn: DBN, scale: float, generator: torch.Generator) -> DBN:
    """Give a network large random parameters."""
    dbn = dbn.double()
    with torch.no_grad():
        for parameter in dbn.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return dbn


# --- the spec ---------------------------------------------------------------------------------------------------------
PAPER = "conv 64 4x4/2, conv 128 4x4/2, conv 256 4x4/2, conv 256 4x4/2, dense 1000, dense 500, dense 200, dense 100"


def test_the_paper_in_words() -> None:
    with torch.device("meta"):
        dbn = DBN.from_spec(PAPER, shape=(3, 64, 64), levels=255)
    images = [(3, 64, 64), (64, 32, 32), (128, 16, 16), (256, 8, 8), (256, 4, 4)]
    assert dbn.shapes == [*images, (1000,), (500,), (200,), (100,)]
    assert dbn[4].visible.shape == (4096,)
    assert all(isinstance(rbm.hidden, Multinary) and rbm.hidden.levels == 255 for rbm in dbn)


@pytest.mark.parametrize(
    ("spec", "shape", "shapes"),
    [
        ("conv 5 3x3", (1, 8, 8), [(1, 8, 8), (5, 8, 8)]),
        ("conv 5 3x3 pad 0", (1, 8, 8), [(1, 8, 8), (5, 6, 6)]),
        ("conv 5 3x3 p0, conv 2 2x2/2", (1, 8, 8), [(1, 8, 8), (5, 6, 6), (2, 3, 3)]),
        ("  conv  5   5x5 pool 2 ,dense 7", (1, 8, 8), [(1, 8, 8), (5, 4, 4), (7,)]),
        ("conv 5 5x5 pad 0 pool 2, conv 3 3x3", (2, 8, 8), [(2, 8, 8), (5, 2, 2), (3, 2, 2)]),
        ("dense 7, dense 3", (1, 4, 4), [(16,), (7,), (3,)]),
    ],
)
def test_spec(spec: str, shape: tuple[int, ...], shapes: list[tuple[int, ...]]) -> None:
    dbn = DBN.from_spec(spec, shape=shape)
    assert dbn.shapes == shapes
    assert all(isinstance(rbm.visible, Bernoulli) for rbm in dbn)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("conv 64", r"Layer 1 of the spec, 'conv 64', above a layer of \(1, 28, 28\): it is not understood"),
        ("conv 4 4x4/2, conv 4 4x4/2, conv 4 4x4/2", r"Layer 3 .* above a layer of \(4, 7, 7\).*does not tile a side"),
        ("conv 4 4x4", "no padding makes 4x4/1 divide the image by 1.*Give the padding"),
        ("conv 4 3x5", "filters are square. Got 3x5"),
        ("dense 5, conv 4 3x3", r"Layer 2 .*needs images below it.*Put `dense` layers last"),
        ("conv 4 5x5 pool 3", "`block` must divide"),
        ("dense 0", "`units` must be at least 1"),
        ("", "it is not understood"),
    ],
)
def test_spec_errors(spec: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        DBN.from_spec(spec, shape=(1, 28, 28))


def test_pooling_is_for_binary_units() -> None:
    with pytest.raises(ValueError, match="max-pooling is for binary units.*levels=1"):
        DBN.from_spec("conv 4 5x5 pool 2", shape=(1, 8, 8), levels=255)


def test_spec_takes_other_units_for_the_data() -> None:
    dbn = DBN.from_spec("conv 4 3x3, dense 5", shape=(1, 6, 6), visible=Gaussian(1, 6, 6))
    assert isinstance(dbn.visible, Gaussian)
    with pytest.raises(ValueError, match="must have the shape of the data"):
        DBN.from_spec("conv 4 3x3", shape=(1, 6, 6), visible=Gaussian(36))


def test_same_generator_same_weights() -> None:
    first, second = (
        DBN.from_spec("conv 4 3x3, dense 5", shape=(1, 6, 6), generator=torch.Generator().manual_seed(3))
        for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


# --- stacking ---------------------------------------------------------------------------------------------------------
def test_layers_must_meet() -> None:
    with pytest.raises(ValueError, match=r"Machine 2 .*must take what machine 1 gives: \(4,\)"):
        DBN([RBM(Bernoulli(6), Bernoulli(4)), RBM(Bernoulli(5), Bernoulli(2))])
    with pytest.raises(ValueError, match=r"take values in \[0, inf\], which Bernoulli\(4\) of machine 2 cannot"):
        DBN([RBM(Bernoulli(6), NReLU(4)), RBM(Bernoulli(4), Bernoulli(2))])
    with pytest.raises(TypeError, match="DBN needs a list of RBMs"):
        DBN([])


def test_levels_are_checked() -> None:
    dbn = DBN([RBM(Bernoulli(6), Bernoulli(4))])
    with pytest.raises(ValueError, match="`to` must be a level from 0, the data, to 1, the top. Got 2"):
        dbn.up(torch.zeros(2, 6), to=2)
    with pytest.raises(ValueError, match=r"`h` must have shape \(\*batch, 4\)"):
        dbn.down(torch.zeros(2, 6))
    with pytest.raises(TypeError, match="must be torch.float32"):
        dbn.up(torch.zeros(2, 6, dtype=torch.float64))
    with pytest.raises(ValueError, match="must have n_samples=3 rows. Got 2"):
        sample_from_top(dbn, 3, start=torch.zeros(2, 6))


@pytest.mark.parametrize(
    ("hidden", "visible", "carried"),
    [
        (Multinary(4, levels=255), Bernoulli(4), lambda h: h / 255),
        (Spin(4), Bernoulli(4), lambda h: (h + 1) / 2),
        (Bernoulli(4), Multinary(4, levels=10), lambda h: 10 * h),
        (NReLU(4), Gaussian(4), lambda h: h),
        (Multinary(4, levels=255), Multinary(4, levels=255, k=0.1), lambda h: h),
    ],
)
def test_ranges_are_carried(hidden: object, visible: object, carried: object, generator: torch.Generator) -> None:
    dbn = randomized(DBN([RBM(Gaussian(6), hidden), RBM(visible, Bernoulli(2))]), 0.3, generator)  # type: ignore[arg-type]
    x = torch.randn(5, 6, dtype=torch.float64, generator=generator)
    h = dbn.up(x, 1)
    assert torch.allclose(h, dbn[0].hidden_mean(x))
    assert torch.allclose(dbn.enter(1, h), carried(h))  # type: ignore[operator]
    assert torch.allclose(dbn.leave(1, dbn.enter(1, h)), h)
    assert torch.allclose(dbn.up(x), dbn[1].hidden_mean(carried(h)))  # type: ignore[operator]


def test_up_and_down_are_the_machines_in_turn(generator: torch.Generator) -> None:
    dbn = randomized(DBN.from_spec("conv 3 4x4/2, dense 5, dense 2", shape=(1, 8, 8)), 0.5, generator)
    x = torch.rand(2, 7, 1, 8, 8, dtype=torch.float64, generator=generator)  # two leading axes
    first = dbn[0].hidden_mean(x)
    second = dbn[1].hidden_mean(first.flatten(2))
    assert torch.allclose(dbn.up(x, 1), first)
    assert torch.allclose(dbn.up(x), dbn[2].hidden_mean(second))
    assert torch.equal(dbn.up(x, 0), x)
    below = dbn[1].visible_mean(second).reshape(2, 7, 3, 4, 4)
    assert torch.allclose(dbn.down(second, 2), dbn[0].visible_mean(below))
    assert torch.allclose(dbn.reconstruct(x, 2), dbn[0].visible_mean(below))
    assert torch.allclose(dbn.reconstruct(x, 1), dbn[0].reconstruct(x))
    assert dbn.reconstruct(x).shape == x.shape
    assert not torch.allclose(dbn.reconstruct(x, 1), dbn.reconstruct(x, 2))


def test_draws_average_to_the_means(generator: torch.Generator) -> None:
    """One machine up: the draws have the means; the same generator gives the same draws."""
    dbn = randomized(DBN.from_spec("dense 3, dense 2", shape=(4,)), 0.7, generator)
    x = torch.tensor([1.0, 0.0, 1.0, 1.0], dtype=torch.float64).expand(20000, 4)
    drawn = dbn.up(x, 1, sample=True, generator=generator)
    assert set(drawn.unique().tolist()) == {0.0, 1.0}
    assert (drawn.mean(0) - dbn.up(x, 1)[0]).abs().max() < 5 * 0.5 / len(x) ** 0.5
    same = [dbn.up(x[:9], sample=True, generator=torch.Generator().manual_seed(1)) for _ in range(2)]
    assert torch.equal(*same)


def test_pooled_levels(generator: torch.Generator) -> None:
    dbn = randomized(DBN.from_spec("conv 3 3x3 pool 2, dense 2", shape=(1, 4, 4)), 0.5, generator)
    x = torch.randint(2, (5, 1, 4, 4), generator=generator).double()
    hidden = dbn[0].hidden
    assert isinstance(hidden, MaxPooled)
    field = dbn[0].field("hidden", {"visible": x})
    off = 1 / (1 + field.exp().unfold(2, 2, 2).unfold(3, 2, 2).sum((-2, -1)))
    assert torch.allclose(dbn.up(x, 1), 1 - off)
    z = dbn.up(x, 1)
    shared = z.repeat_interleave(2, 2).repeat_interleave(2, 3) / 4  # shared biases: each place of a block alike
    assert torch.allclose(dbn.down(z, 1), dbn[0].visible_mean(shared))
    drawn = dbn.up(x, 1, sample=True, generator=generator)
    assert set(drawn.unique().tolist()) <= {0.0, 1.0}
    assert dbn.down(drawn, 1, sample=True, generator=generator).shape == x.shape


def test_saved_and_loaded(tmp_path: Path, generator: torch.Generator) -> None:
    spec = "conv 3 3x3 pool 2, dense 2"
    dbn = DBN.from_spec(spec, shape=(1, 4, 4), generator=generator)
    save_file({name: value.contiguous() for name, value in dbn.state_dict().items()}, tmp_path / "dbn.safetensors")
    other = DBN.from_spec(spec, shape=(1, 4, 4))
    x = torch.rand(5, 1, 4, 4, generator=generator)
    assert not torch.equal(other.up(x), dbn.up(x))
    other.load_state_dict(load_file(tmp_path / "dbn.safetensors"))
    assert torch.equal(other.up(x), dbn.up(x))


# --- the law of a tiny network ----------------------------------------------------------------------------------------
def every(n: int) -> Tensor:
    """Return all binary vectors of length n, the last entry fastest."""
    return torch.tensor([[i >> j & 1 for j in reversed(range(n))] for i in range(2**n)], dtype=torch.float64)


def law_below(rbm: RBM, h: Tensor, p: Tensor) -> Tensor:
    """Push a law p of hidden states h down: `Σ_h p(h) p(v | h)` for every binary v."""
    v = every(torch.Size(rbm.visible.shape).numel())
    mean = rbm.visible_mean(h).flatten(1)
    likelihood = torch.where(v[:, None].bool(), mean, 1 - mean).prod(-1)
    return (likelihood * p).sum(1)


def law_of(rbm: RBM) -> Tensor:
    """Return the law of the visible layer of an RBM, every state in order."""
    v = every(torch.Size(rbm.visible.shape).numel()).reshape(-1, *rbm.visible.shape)
    return (-rbm.free_energy(v)).softmax(0)


def counts_of(x: Tensor) -> Tensor:
    """Count how often each binary vector was drawn."""
    rows = x.flatten(1)
    number = (rows * 2 ** torch.arange(rows.shape[1] - 1, -1, -1)).sum(1).long()
    return torch.bincount(number, minlength=2 ** rows.shape[1]).double()


def test_samples_follow_the_law(generator: torch.Generator) -> None:
    """Three machines: the law of the top one pushed down twice, exactly."""
    dbn = randomized(DBN.from_spec("dense 3, dense 3, dense 2", shape=(4,)), 0.8, generator)
    with torch.no_grad():  # two modes at the top, far from the independent units where the chains start
        dbn[2].weight.copy_(torch.tensor([[2.0, -2.0], [2.0, -2.0], [-2.0, 2.0]]))
        dbn[1].weight.mul_(3.0)
    second = law_below(dbn[1], every(3), law_of(dbn[2]))
    law = law_below(dbn[0], every(3), second)
    assert law.sum().item() == pytest.approx(1)
    drawn = sample_from_top(dbn, 40000, n_steps=60, sample_down=True, generator=generator)
    assert chi_square_tail(counts_of(drawn), law) >= FALSE_ALARM
    # Negative controls: the lowest machine alone is another law, and so are chains that have not run.
    assert chi_square_tail(counts_of(drawn), law_of(dbn[0])) < FALSE_ALARM
    early = sample_from_top(dbn, 40000, n_steps=1, sample_down=True, generator=generator)
    assert chi_square_tail(counts_of(early), law) < FALSE_ALARM


def test_samples_of_a_pooled_network_follow_the_law(generator: torch.Generator) -> None:
    """A block of four units below the top machine: on or off by the top, its place by the softmax of its biases."""
    coupling = Conv2d(1, 1, kernel=1)
    lower = RBM(Bernoulli(1, 2, 2), MaxPooled(1, 2, 2, block=2), coupling)
    dbn = randomized(DBN([lower, RBM(Bernoulli(1), Bernoulli(2))]), 1.2, generator)
    with torch.no_grad():
        lower.weight.fill_(2.0)
        lower.hidden_bias.fill_(2.0)  # the lower machine alone would have its block on
        dbn[1].visible_bias.fill_(-1.0)
    off, on = law_of(dbn[1])
    h = lower.hidden.configurations(torch.arange(5))
    p = torch.cat([off[None], on / 4 * torch.ones(4, dtype=torch.float64)])
    law = law_below(lower, h, p)
    drawn = sample_from_top(dbn, 40000, n_steps=60, sample_down=True, generator=generator)
    assert chi_square_tail(counts_of(drawn), law) >= FALSE_ALARM
    assert chi_square_tail(counts_of(drawn), law_of(lower)) < FALSE_ALARM


def test_means_down_are_the_expectation_given_the_top(generator: torch.Generator) -> None:
    """With means all the way down of a single machine, samples are `E[v | h]` of drawn h."""
    dbn = randomized(DBN.from_spec("dense 2", shape=(3,)), 1.0, generator)
    drawn = sample_from_top(dbn, 200, n_steps=5, generator=generator)
    possible = dbn[0].visible_mean(every(2))
    assert torch.cdist(drawn, possible).amin(1).max() < 1e-7
    assert len(drawn.unique(dim=0)) == 4
    start = sample_from_top(dbn, 200, n_steps=1, start=torch.zeros(200, 3).double(), generator=generator)
    assert torch.cdist(start, possible).amin(1).max() < 1e-7


# --- recognition weights of their own --------------------------------------------------------------------------------
def test_untied_goes_up_by_recognition_and_down_by_generation(tmp_path: Path, generator: torch.Generator) -> None:
    dbn = randomized(DBN.from_spec("dense 5, dense 4", shape=(6,)), 0.5, generator)
    untied = dbn.untied()
    x, code = torch.rand(3, 6, dtype=torch.float64, generator=generator), torch.rand(2, 4).double()
    assert torch.equal(untied.up(x), dbn.up(x)) and torch.equal(untied.down(code), dbn.down(code))
    with torch.no_grad():
        for p in untied.recognition.parameters():
            p.mul_(2)
    by_hand = x
    for rbm in dbn:
        by_hand = (2 * (by_hand @ rbm.weight + rbm.hidden_bias)).sigmoid()
    assert torch.allclose(untied.up(x), by_hand) and torch.equal(untied.down(code), dbn.down(code))
    assert torch.allclose(untied.to_network(2)[:-1](x), by_hand)
    assert torch.equal(untied.down(untied.down(code, to=1), 1), untied.down(code))
    field = untied.field_below(code)
    assert torch.allclose(field.sigmoid(), untied.down(code))
    top = RBM(Bernoulli(4), Bernoulli(3), generator=generator).double()
    law = DBN([*untied, top], list(untied.recognition))
    assert torch.allclose(law.up(x), top.hidden_mean(by_hand))
    law.save(tmp_path / "law.safetensors")
    again = load(tmp_path / "law.safetensors")
    assert len(again.recognition) == 2 and torch.equal(again.reconstruct(x), law.reconstruct(x))


def test_recognition_must_fit() -> None:
    stack = DBN.from_spec("dense 5, dense 4", shape=(6,))
    with pytest.raises(ValueError, match="Recognition machine 1 must have the units of machine 1"):
        DBN([*stack], [RBM(Bernoulli(6), Bernoulli(7))])
    with pytest.raises(ValueError, match="There are 1 machines"):
        DBN([stack[0]], [*stack])
