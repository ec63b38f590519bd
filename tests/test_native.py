"""The compiled loops: draws held to the same words from NumPy's SFC64, and to the law of PyTorch's own draws."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

import harmonium as hm
from harmonium import native
from harmonium.draws import draw_bernoulli, draw_bernoulli_of_field, draw_normal, draw_step, draw_uniform, draw_words
from harmonium.types import mean_difference

BLOCK, CHUNK = 1024, 8 * 1024
LENGTHS = [0, 1, 7, 32, BLOCK - 1, BLOCK, BLOCK + 1, CHUNK, 2 * CHUNK + 5 * BLOCK + 33]

compiled = pytest.mark.skipif(native.LIBRARY is None, reason="native.c was not compiled: no C compiler at installation")


def seeded(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def words(chunk: int, n: int, seed: int = 1) -> np.ndarray:
    """Return n words of a chunk: eight streams of NumPy's SFC64 in turn, from what SplitMix64 makes of the seed."""
    lowest = torch.iinfo(torch.int64).min
    z = torch.empty(32, dtype=torch.int64).random_(lowest, None, generator=seeded(seed)).numpy().view(np.uint64)
    z = z + np.uint64(0x9E3779B97F4A7C15 * (chunk + 1) % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    lanes = []
    for lane in range(8):
        stream = np.random.SFC64(0)
        stream.state = dict(stream.state, state={"state": z[lane::8].copy()})
        lanes.append(stream.random_raw(-(-n // 8)))
    return np.stack(lanes, axis=1).reshape(-1)[:n]


def chunks(n: int) -> list[tuple[int, int]]:
    """Return the number and the length of each chunk of n elements."""
    return [(chunk, min(CHUNK, n - chunk * CHUNK)) for chunk in range(-(-n // CHUNK))]


def joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *parts])


def below(p: np.ndarray, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return `u < p` from the words of a seed, and where rounding in single precision cannot decide otherwise."""
    parts = []
    for chunk, n in chunks(len(p)):
        stream = words(chunk, BLOCK // 2 + n // 4 + 1, seed)
        fine, coarse = stream[: BLOCK // 2].view(np.int32), stream[BLOCK // 2 :].view(np.int16)[:n]
        dither = np.tile(0.5 + (2.0**-16 - 2.0**-23) * (0.5 + 2.0**-32 * fine), n // BLOCK + 1)[:n]
        parts.append(dither + 2.0**-16 * coarse)
    u = joined(parts)
    return u < p, np.abs(u - p) > 2.0**-22


def box_muller(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return normal values from the words of a seed, and the radius of each."""
    values, radii = [], []
    for chunk, length in chunks(n):
        pairs = words(chunk, (length // BLOCK + 1) * BLOCK // 2).view(np.uint32).reshape(-1, 2, BLOCK // 2)
        radius = np.sqrt(-2 * np.log(2.0**-31 * (pairs[:, 0] >> 1) + 2.0**-32))
        angle = 2 * math.pi * 2.0**-32 * pairs[:, 1]
        values.append(np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=1).reshape(-1)[:length])
        radii.append(np.stack([radius, radius], axis=1).reshape(-1)[:length])
    return joined(values), joined(radii)


@compiled
@pytest.mark.parametrize("n", LENGTHS)
def test_words_are_those_of_eight_streams_a_chunk(n: int) -> None:
    drawn = torch.empty(n, dtype=torch.int64)
    assert native.fill_words(drawn, generator=seeded())
    expected = np.concatenate([np.zeros(0, np.uint64), *(words(chunk, length) for chunk, length in chunks(n))])
    assert np.array_equal(drawn.numpy().view(np.uint64), expected)


@compiled
@pytest.mark.parametrize("n", LENGTHS)
def test_uniform_values_are_24_bits_of_each_word(n: int) -> None:
    expected = joined([(words(c, m // 2 + 1).view(np.uint32)[:m] >> 8) * 2.0**-24 for c, m in chunks(n)])
    assert np.array_equal(draw_uniform(torch.empty(n), generator=seeded()).numpy(), expected)


@compiled
@pytest.mark.parametrize("n", LENGTHS)
def test_bernoulli_values_are_words_below_the_probability(n: int) -> None:
    p = torch.linspace(0, 1, n)
    drawn = draw_bernoulli(p, generator=seeded()).numpy()
    expected, sure = below(p.double().numpy())
    assert np.array_equal(drawn[sure], expected[sure])
    assert set(drawn) <= {0.0, 1.0}


@compiled
@pytest.mark.parametrize("n", LENGTHS)
def test_bernoulli_values_of_a_field_are_words_below_its_sigmoid(n: int) -> None:
    field = torch.linspace(-20, 20, n)
    drawn = draw_bernoulli_of_field(field, generator=seeded()).numpy()
    expected, sure = below(field.double().sigmoid().numpy())
    assert np.array_equal(drawn[sure], expected[sure])
    assert set(drawn) <= {0.0, 1.0}


@compiled
def test_extreme_fields_are_certain() -> None:
    field = torch.tensor([-math.inf, -1e30, -100.0, 100.0, 1e30, math.inf, math.nan]).repeat(20_000, 1)
    assert draw_bernoulli_of_field(field, generator=seeded()).mean(0).tolist() == [0, 0, 0, 1, 1, 1, 0]


@compiled
@pytest.mark.parametrize("n", LENGTHS)
def test_normal_values_are_box_and_mullers(n: int) -> None:
    expected, radius = box_muller(n)
    drawn = draw_normal(torch.empty(n), generator=seeded()).numpy()
    # u is rounded to 24 bits, which shifts a radius near zero by at most 2⁻²⁵ / radius.
    assert (np.abs(drawn - expected) < 2e-6 + 2.0**-25 / np.maximum(radius, 2.0**-13)).all()


@compiled
@pytest.mark.parametrize("n", LENGTHS)
def test_a_noisy_step_adds_the_same_normal_values(n: int) -> None:
    x, slope = (torch.linspace(-3, 3, n) ** power for power in (1, 2))
    drawn = draw_step(x, slope, -0.3, 0.7, generator=seeded())
    noise = draw_normal(x, generator=seeded())
    assert torch.allclose(drawn, x - 0.3 * slope + 0.7 * noise, rtol=0, atol=1e-6)


@pytest.mark.parametrize("slope", [torch.ones(6, 4).t(), torch.ones(4, 1).expand(4, 6), torch.ones(4, 6)])
def test_a_noisy_step_takes_any_layout(slope: torch.Tensor) -> None:
    x = torch.zeros(4, 6)
    drawn = draw_step(x, slope, 2.0, 1e-9, generator=seeded())
    assert torch.allclose(drawn, torch.full((4, 6), 2.0))


@compiled
def test_other_words_give_other_values() -> None:
    """Negative control of the tests above: they compare with the words of one seed."""
    n = 4096
    assert not np.array_equal(draw_words(torch.empty(n), generator=seeded(2)).numpy(), words(0, n // 4).view(np.int16))
    assert (draw_normal(torch.empty(n), generator=seeded(2)).numpy() - box_muller(n)[0]).std() > 1
    expected, sure = below(np.full(n, 0.5))
    drawn = draw_bernoulli(torch.full((n,), 0.5), generator=seeded(2)).numpy()
    assert not np.array_equal(drawn[sure], expected[sure])


@compiled
def test_the_numbers_do_not_depend_on_the_threads() -> None:
    like, n_threads = torch.full((5, CHUNK), 0.3), torch.get_num_threads()
    draws = [draw_normal, draw_uniform, draw_words, draw_bernoulli, draw_bernoulli_of_field]
    try:
        found = []
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            found.append([draw(like, generator=seeded()) for draw in draws])
    finally:
        torch.set_num_threads(n_threads)
    for first, *others in zip(*found, strict=True):
        assert all(torch.equal(first, other) for other in others)


@compiled
@pytest.mark.parametrize("quarter", range(4))
def test_angles_cover_every_quarter(quarter: int) -> None:
    z = draw_normal(torch.empty(4000, 2, BLOCK // 2), generator=seeded()).double()
    inside = (torch.atan2(z[:, 0], z[:, 1]) / (math.pi / 2)).floor() + 2 == quarter
    n = inside.numel()
    assert abs(inside.sum().item() - n / 4) < 5 * math.sqrt(n * 3 / 16)


@pytest.mark.parametrize("without", [False, True], ids=["compiled", "PyTorch"])
def test_both_ways_have_the_same_law(without: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if without:
        monkeypatch.setattr(native, "LIBRARY", None)
    generator, like = seeded(3), torch.empty(1_000_000)
    normal, uniform = (draw(like, generator=generator).double().numpy() for draw in (draw_normal, draw_uniform))
    assert stats.kstest(normal, "norm").pvalue > 1e-6
    assert stats.kstest(uniform, "uniform").pvalue > 1e-6
    tails = float((np.abs(normal) > 4).sum())
    assert stats.binomtest(int(tails), len(normal), 2 * stats.norm.sf(4)).pvalue > 1e-6
    for p, drawn in (
        (0.3, draw_bernoulli(torch.full_like(like, 0.3), generator=generator)),
        (0.1, draw_bernoulli_of_field(torch.full_like(like, math.log(1 / 9)), generator=generator)),
    ):
        assert abs(drawn.mean(dtype=torch.float64).item() - p) < 5 * math.sqrt(p * (1 - p) / len(normal))
    word_bits = np.unpackbits(draw_words(like, generator=generator).numpy().view(np.uint8)).reshape(-1, 16).mean(0)
    assert (np.abs(word_bits - 0.5) < 5 * 0.5 / math.sqrt(len(normal))).all()


@pytest.mark.parametrize("without", [False, True], ids=["compiled", "PyTorch"])
def test_chains_in_single_precision_have_the_law_of_the_machine(without: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against enumeration; the control has the law of biases that are 0.05 off."""
    if without:
        monkeypatch.setattr(native, "LIBRARY", None)
    generator = seeded(5)
    rbm = hm.RBM(hm.Bernoulli(6), hm.Bernoulli(4), generator=generator)
    with torch.no_grad():
        for parameter in rbm.parameters():
            parameter.copy_(0.8 * torch.randn(parameter.shape, generator=generator))
    v = hm.sample(rbm, 200_000, n_steps=40, generator=generator)
    counts = torch.bincount((v.long() << torch.arange(6)).sum(1), minlength=64).double()
    states = ((torch.arange(64)[:, None] >> torch.arange(6)) & 1).float()

    def tail() -> float:
        with torch.no_grad():
            law = (-rbm.free_energy(states)).double().softmax(0)
        return float(stats.chisquare(counts.numpy(), (law * len(v)).numpy()).pvalue)

    assert tail() > 1e-6
    with torch.no_grad():
        rbm.visible_bias.add_(0.05)
    assert tail() < 1e-6


def test_the_test_of_the_law_sees_a_spread_that_is_off() -> None:
    normal = draw_normal(torch.empty(1_000_000), generator=seeded(3)).double().numpy()
    assert stats.kstest(1.02 * normal, "norm").pvalue < 1e-6


@compiled
def test_successive_draws_are_independent() -> None:
    """Streams that start from successive words of a generator must not know of one another."""
    generator = seeded(4)
    z = torch.stack([draw_normal(torch.empty(50), generator=generator) for _ in range(4000)]).double()
    along, across = (z[1:] * z[:-1]).mean(0) * math.sqrt(len(z) - 1), (z.T @ z) / math.sqrt(len(z))
    assert along.abs().max() < 5
    assert across.fill_diagonal_(0).abs().max() < 5.5


@compiled
@pytest.mark.parametrize("n", [1, 33, BLOCK + 5])
def test_nothing_is_written_beyond_the_end(n: int) -> None:
    for fill in (native.fill_uniform, native.fill_normal):
        room = torch.full((n + 64,), 7.0)
        assert fill(room[:n], generator=seeded())
        assert (room[n:] == 7.0).all()
        assert (room[:n] != 7.0).all()


@compiled
@pytest.mark.parametrize(
    "x",
    [
        torch.full((3, 4), 0.5).double(),
        torch.full((3, 8), 0.5)[:, ::2],
        torch.full((1, 4), 0.5).expand(3, 4),
        torch.full((3, 4), 0.5, device="meta"),
    ],
    ids=["double", "strided", "expanded", "meta"],
)
def test_what_it_cannot_fill_is_left_to_pytorch(x: torch.Tensor) -> None:
    assert native.bernoulli(x) is None
    assert native.bernoulli_of_field(x) is None
    assert not native.fill_normal(x)
    assert not native.fill_uniform(x)
    assert draw_bernoulli(x, generator=None if x.is_meta else seeded()).shape == x.shape


@compiled
def test_threads_do_not_share_their_seeds() -> None:
    def draws(seed: int) -> torch.Tensor:
        generator = seeded(seed)
        return torch.stack([draw_normal(torch.empty(3000), generator=generator) for _ in range(50)])

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(draws, range(8)))
    assert all(torch.equal(drawn, draws(seed)) for seed, drawn in enumerate(together))


@compiled
@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool])
@pytest.mark.parametrize("shape", [(50, 7), (300, 3, 4, 5), (2000, 784), (5, 0)])
def test_rows_are_picked_as_floats(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    rows = torch.randint(0, 200, shape, generator=seeded()).to(dtype)
    index = torch.randint(0, shape[0], (shape[0] // 2,), generator=seeded())
    for picked in (index, index[:0], index[:1]):
        found = native.pick_rows(rows, picked)
        assert found is not None
        assert torch.equal(found, rows[picked].float())
        last = native.pick_rows(rows, picked, channels_last=True)
        assert last is not None
        assert torch.equal(last, found)
        assert len(shape) < 4 or last.is_contiguous(memory_format=torch.channels_last)


@compiled
def test_rows_that_are_not_bytes_in_a_row_are_left_to_pytorch() -> None:
    index, rows = torch.arange(3), torch.zeros(4, 6, dtype=torch.uint8)
    for other in (rows.float(), rows.long(), rows[:, ::2], rows.to("meta")):
        assert native.pick_rows(other, index) is None
    for other_index in (torch.arange(6)[::2], index.int(), index.to("meta")):
        assert native.pick_rows(rows, other_index) is None


@compiled
def test_defaults_of_pytorch_do_not_matter() -> None:
    rows, index = torch.full((4, 3), 7, dtype=torch.uint8), torch.arange(4)
    torch.set_default_dtype(torch.float64)
    try:
        picked = native.pick_rows(rows, index)
        with torch.device("meta"):
            drawn = draw_normal(torch.zeros(5, device="cpu", dtype=torch.float32), generator=seeded())
    finally:
        torch.set_default_dtype(torch.float32)
    assert picked is not None
    assert torch.equal(picked, rows.float())
    assert drawn.device.type == "cpu"
    assert torch.equal(drawn, draw_normal(torch.empty(5), generator=seeded()))


@compiled
def test_means_of_other_widths_are_left_to_pytorch() -> None:
    assert native.mean_difference(torch.ones(3, 4), torch.ones(3, 5)) is None
    assert native.mean_difference(torch.ones(4), torch.ones(4)) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("n", "m", "width"), [(1, 1, 1), (128, 100, 784), (1000, 3, 129), (40_000, 5, 65)])
def test_difference_of_means(n: int, m: int, width: int, dtype: torch.dtype) -> None:
    generator = seeded()
    a, b = (torch.rand(rows, width, generator=generator, dtype=torch.float64).to(dtype) for rows in (n, m))
    expected = a.double().mean(0) - b.double().mean(0)
    error = 2e-7 if dtype == torch.float32 else 1e-14
    assert (mean_difference(a, b) - expected).abs().max() < 5 * error
    assert (mean_difference(b, a) + expected).abs().max() < 5 * error
    assert (mean_difference(a, 2 * b) - expected).abs().max() > 5 * error  # the control


def test_without_a_compiler_there_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "find_spec", lambda name: None)
    assert native.load() is None


def test_a_library_that_does_not_load_is_left_aside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "_native.so").write_bytes(b"not a library")
    monkeypatch.setattr(native, "find_spec", lambda name: ModuleSpec(name, None, origin=str(tmp_path / "_native.so")))
    with pytest.warns(RuntimeWarning, match="PyTorch does its work"):
        assert native.load() is None


@compiled
def test_a_library_of_other_sources_is_left_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    assert native.load() is not None
    monkeypatch.setitem(native._ARGUMENTS, "made_up", ())
    with pytest.warns(RuntimeWarning, match="compiled from other sources: it has no made_up"):
        assert native.load() is None


@compiled
@pytest.mark.parametrize("wrong", [-1, 5, 10**12, -(2**63), 2**63 - 1])
@pytest.mark.parametrize("place", [0, 17, 299])
def test_rows_that_are_not_there_are_refused_and_not_read(wrong: int, place: int) -> None:
    rows = torch.arange(35, dtype=torch.uint8).view(5, 7)
    index = torch.arange(300) % 5
    assert torch.equal(native.pick_rows(rows, index), rows[index].float())  # type: ignore[arg-type]
    index[place] = wrong
    with pytest.raises(IndexError, match=f"Row {wrong} is asked for, and there are 5"):
        native.pick_rows(rows, index)


@compiled
def test_no_rows_have_no_mean() -> None:
    assert native.mean_difference(torch.zeros(0, 3), torch.ones(2, 3)) is None
    assert mean_difference(torch.zeros(0, 3), torch.ones(2, 3)).isnan().all()
