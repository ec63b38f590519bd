"""Probabilistic max-pooling against enumeration of a block."""

from __future__ import annotations

import itertools

import pytest
import torch

from harmonium.couplings import Conv2d
from harmonium.models import RBM
from harmonium.testing.contract import FALSE_ALARM, chi_square_tail
from harmonium.units import Bernoulli, MaxPooled, Multinary


def block_states(block: int) -> torch.Tensor:
    """All binary images of a block, those with more than one unit on included."""
    cells = itertools.product([0.0, 1.0], repeat=block * block)
    return torch.tensor(list(cells), dtype=torch.float64).reshape(-1, block, block)


@pytest.mark.parametrize("block", [2, 3])
def test_blocks_against_enumeration(block: int, generator: torch.Generator) -> None:
    """Each block of a layer is the law of its 2^(b²) images restricted to those with at most one unit on."""
    units = MaxPooled(2, block, 2 * block, block=block)
    field = torch.randn(2, block, 2 * block, dtype=torch.float64, generator=generator)
    states = block_states(block)
    allowed = states[states.sum((1, 2)) <= 1]
    for channel, side in itertools.product(range(2), range(2)):
        tile = (channel, slice(None), slice(side * block, (side + 1) * block))
        weight = (allowed * field[tile]).sum((1, 2))
        law = weight.softmax(0)
        mean = (law[:, None, None] * allowed).sum(0)
        assert units.log_partition(field)[channel, 0, side] == pytest.approx(weight.logsumexp(0).item(), rel=1e-12)
        assert torch.allclose(units.mean(field)[tile], mean, atol=1e-12)
        assert torch.allclose(units.variance(field)[tile], mean - mean.square(), atol=1e-12)
        off = law[allowed.sum((1, 2)) == 0].item()
        assert units.pool(units.mean(field))[channel, 0, side].item() == pytest.approx(1 - off, abs=1e-12)
        free = (states * field[tile]).sum((1, 2)).logsumexp(0)  # negative control: without the exclusion
        assert free - units.log_partition(field)[channel, 0, side] > 0.1


def test_blocks_of_one_are_bernoulli(generator: torch.Generator) -> None:
    pooled, binary = MaxPooled(2, 3, 3, block=1), Bernoulli(2, 3, 3)
    field = 3 * torch.randn(5, 2, 3, 3, dtype=torch.float64, generator=generator)
    for method in ("log_partition", "mean", "variance", "mode"):
        assert torch.allclose(getattr(pooled, method)(field), getattr(binary, method)(field), atol=1e-12)


def test_draws_exclude_each_other(generator: torch.Generator) -> None:
    units = MaxPooled(3, 4, 6, block=2)
    drawn = units.sample(torch.full((200, 3, 4, 6), 2.0), generator=generator)
    assert set(units.pool(drawn).unique().tolist()) == {0.0, 1.0}
    assert Bernoulli(3, 4, 6).sample(torch.full((200, 3, 4, 6), 2.0), generator=generator).sum() > 2 * drawn.sum()


def test_spread_is_the_law_given_the_pooled_unit(generator: torch.Generator) -> None:
    """Given that a block is on, its unit follows softmax θ; given that it is off, none is on."""
    units = MaxPooled(1, 2, 2, block=2)
    field = torch.tensor([[[0.0, 1.0], [-1.0, 2.0]]], dtype=torch.float64)
    share = field.flatten().softmax(0)
    on = torch.ones(20000, 1, 1, 1, dtype=torch.float64)
    drawn = units.sample_spread(on, field, generator=generator)
    counts = drawn.flatten(1).sum(0)
    assert counts.sum() == len(on)
    assert chi_square_tail(counts, share) >= FALSE_ALARM
    assert chi_square_tail(counts, torch.full_like(share, 0.25)) < FALSE_ALARM  # negative control
    assert torch.allclose(units.spread(on[:1], field).flatten(), share)
    assert units.sample_spread(on * 0, field, generator=generator).sum() == 0
    mean = units.mean(field)
    assert torch.allclose(units.spread(units.pool(mean), field), mean)  # p(pooled) p(unit | pooled) = p(unit)


def test_an_rbm_with_pooled_hidden_units_sums_out_its_blocks(generator: torch.Generator) -> None:
    """`F(v)` against the sum over all 5⁴ states of the hidden layer."""
    coupling = Conv2d(1, 1, kernel=1, generator=generator)
    rbm = RBM(Bernoulli(1, 4, 4), MaxPooled(1, 4, 4, block=2), coupling).double()
    with torch.no_grad():
        rbm.weight.fill_(1.3)
        rbm.hidden_bias.fill_(-0.4)
    v = torch.randint(2, (3, 1, 4, 4), generator=generator).double()
    h = rbm.hidden.configurations(torch.arange(5**4))
    energy = rbm.energy({"visible": v[:, None].expand(-1, len(h), -1, -1, -1), "hidden": h.expand(3, *h.shape)})
    assert torch.allclose(rbm.free_energy(v), -(-energy).logsumexp(1), rtol=1e-12)
    assert rbm.hidden.n_configurations() == 5**4
    assert len(h.unique(dim=0)) == 5**4


def test_site_is_the_block() -> None:
    units = MaxPooled(2, 4, 6, block=2)
    x = torch.arange(48.0).reshape(2, 4, 6)
    apart = units.split_sites(x).reshape(12, 4)
    assert all(torch.equal(x[units.site(i)].flatten(), apart[i]) for i in range(12))
    assert torch.equal(units.join_sites(units.split_sites(x)), x)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ValueError, match="must divide the height and the width.*block=3 for 4 × 6"):
        MaxPooled(1, 4, 6, block=3)
    with pytest.raises(ValueError, match="sums to 4. At most one unit"):
        MaxPooled(1, 2, 2, block=2).check_support(torch.ones(1, 2, 2), "x")


LEVELS = MaxPooled(2, 2, 4, block=2, levels=3, k=0.8, exact=True)


def level_states(units: MaxPooled) -> torch.Tensor:
    """All values of a block of 2 × 2 units with levels 0..N, those with several units on included."""
    cells = itertools.product(range(units.levels + 1), repeat=4)
    return torch.tensor(list(cells), dtype=torch.float64)


def test_blocks_with_levels_against_enumeration(generator: torch.Generator) -> None:
    """A block is the law of its (N+1)⁴ values restricted to those with at most one unit that is not 0."""
    single = Multinary(4, levels=3, k=0.8, exact=True)
    field = 2 * torch.randn(*LEVELS.shape, dtype=torch.float64, generator=generator)
    every = level_states(LEVELS)
    allowed = every[(every != 0).sum(1) <= 1]
    for block, theta in enumerate(LEVELS.split_sites(field).reshape(-1, 4)):
        weight = (allowed * theta).sum(1) + single.log_base(allowed).sum(1)
        law = weight.softmax(0)
        mean = law @ allowed
        square = law @ allowed.square()
        place = LEVELS.site(block)
        assert LEVELS.log_partition(field).flatten()[block].item() == pytest.approx(weight.logsumexp(0).item())
        assert torch.allclose(LEVELS.mean(field)[place].flatten(), mean, atol=1e-12)
        assert torch.allclose(LEVELS.variance(field)[place].flatten(), square - mean.square(), atol=1e-12)
        assert torch.equal(LEVELS.mode(field)[place].flatten(), allowed[law.argmax()])
        free = ((every * theta).sum(1) + single.log_base(every).sum(1)).logsumexp(0)
        assert free - weight.logsumexp(0) > 0.1  # negative control: without the exclusion


def test_one_level_is_binary_and_blocks_of_one_are_multinary(generator: torch.Generator) -> None:
    field = 3 * torch.randn(5, 2, 2, 4, dtype=torch.float64, generator=generator)
    one = MaxPooled(2, 2, 4, levels=1, exact=True)
    one.binary = False  # the way of units with levels
    pairs = [(one, MaxPooled(2, 2, 4)), (MaxPooled(2, 2, 4, block=1, levels=255), Multinary(2, 2, 4, levels=255))]
    for pooled, known in pairs:
        for method in ("log_partition", "mean", "variance"):
            assert torch.allclose(getattr(pooled, method)(field), getattr(known, method)(field), rtol=1e-9), method
    means = one.mean(field)
    assert torch.allclose(one.link(means), MaxPooled(2, 2, 4).link(means), atol=1e-6)


@pytest.mark.parametrize("exact", [True, False])
def test_many_levels_let_the_largest_field_win(exact: bool, generator: torch.Generator) -> None:
    """What is pooled is the maximum: of 255 levels the largest activity passes up, of one level little is known."""
    field = 20 * torch.randn(200, 1, 2, 2, dtype=torch.float64, generator=generator)
    units = MaxPooled(1, 2, 2, levels=255, exact=exact)
    alone = Multinary(1, 2, 2, levels=255, exact=exact).mean(field)
    pooled = units.pool(units.mean(field)).flatten()
    assert torch.allclose(pooled, alone.flatten(1).amax(1), rtol=0.02, atol=0.5)
    assert not torch.allclose(pooled, alone.flatten(1).mean(1), rtol=0.2, atol=0.5)
    drawn = units.sample(field[:1].expand(4000, -1, -1, -1), generator=generator)
    assert ((drawn != 0).flatten(1).sum(1) <= 1).all()
    mean, spread = units.mean(field[0]), units.variance(field[0]).sqrt()
    assert ((drawn.mean(0) - mean).abs() <= 5.5 * spread / 4000**0.5 + 0.02).all()


def test_spread_with_levels_is_the_law_of_the_place(generator: torch.Generator) -> None:
    """Given the level p of a block its place follows softmax pθ: `p(pooled) p(place | pooled) = p(block)`."""
    units = MaxPooled(1, 2, 2, levels=2, exact=True)
    field = torch.tensor([[[0.0, 0.7], [-0.5, 0.3]]], dtype=torch.float64)
    states = units.join_sites(units.states().reshape(-1, 1, 1, 1, 4))
    law = (units.inner(field, states) + units.log_base(states).flatten()).softmax(0)
    spread = sum(p * units.spread(units.pool(x), field) for p, x in zip(law, states, strict=True))
    assert torch.allclose(spread, units.mean(field), atol=1e-12)
    two = torch.full((20000, 1, 1, 1), 2.0, dtype=torch.float64)
    drawn = units.sample_spread(two, field, generator=generator)
    assert drawn.unique().tolist() == [0.0, 2.0]
    counts = (drawn.flatten(1) / 2).sum(0)
    assert chi_square_tail(counts, (2 * field.flatten()).softmax(0)) >= FALSE_ALARM
    assert chi_square_tail(counts, field.flatten().softmax(0)) < FALSE_ALARM  # negative control: that of p = 1
    assert units.sample_spread(two * 0, field, generator=generator).sum() == 0
