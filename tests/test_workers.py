"""Parts of a whole: the numbers of each row are those that it has in the whole, however the rows are divided."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from harmonium import draws, native, workers
from harmonium.workers import Part

Draw = Callable[[Tensor, torch.Generator], Tensor]

DRAWS: dict[str, Draw] = {
    "words": lambda x, g: draws.draw_words(x, generator=g),
    "uniform": lambda x, g: draws.draw_uniform(x, generator=g),
    "normal": lambda x, g: draws.draw_normal(x, generator=g),
    "bernoulli": lambda x, g: draws.draw_bernoulli(x.sigmoid(), generator=g),
    "bernoulli of field": lambda x, g: draws.draw_bernoulli_of_field(x, generator=g),
    "step": lambda x, g: draws.draw_step(x, 2 * x, 0.1, 0.5, generator=g),
    "categorical": lambda x, g: draws.draw_categorical(x.softmax(-1), generator=g),
    "integers": lambda x, g: draws.draw_integers(1000, x.shape, generator=g),
    "binomial": lambda x, g: draws.draw_binomial(9, x.sigmoid(), generator=g),
    "poisson": lambda x, g: draws.draw_poisson(x.exp(), generator=g),
}
SHAPES = {
    "few": ((7, 3), 0),
    "rows alone": ((11,), 0),
    "rows of several chunks": ((9, 9000), 0),
    "chunks within rows": ((130, 784), 0),
    "behind temperatures": ((3, 50, 333), 1),
    "at the end": ((2, 9), 1),
}


def seeded(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def in_parts(draw: Draw, x: Tensor, world: int, axis: int) -> tuple[list[Tensor], set[bytes]]:
    """Return what each worker draws for its rows of x, and the states in which it leaves its generator."""
    found, states = [], set()
    for rank in range(world):
        part, generator = Part(rank, world, x.shape[axis], axis), seeded()
        with workers.dividing(part):
            found.append(draw(part.take(x).contiguous(), generator))
        states.add(generator.get_state().numpy().tobytes())
    return found, states


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("shape", SHAPES)
def test_parts_joined_are_the_whole(name: str, shape: str, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        monkeypatch.setattr(native, "LIBRARY", None)
    elif native.LIBRARY is None:
        pytest.skip("native.c was not compiled: no C compiler at installation")
    size, axis = SHAPES[shape]
    if name == "categorical" and axis == len(size) - 1:
        size = (*size, 4)  # its last axis is that of the classes
    x = draws.draw_normal(torch.empty(size), generator=seeded(1))
    if name in ("binomial", "poisson"):  # their draws need the rows of the others, which a process group brings
        monkeypatch.setattr(workers, "gather", lambda part, axis=0: x.exp() if name == "poisson" else x.sigmoid())
    draw, generator = DRAWS[name], seeded()
    whole = draw(x, generator)
    for world in (1, 2, 3, 4):
        found, states = in_parts(draw, x, world, axis)
        if not Part(0, world, x.shape[axis]).repeated:
            assert torch.equal(torch.cat(found, dim=axis), whole)
        assert states == {generator.get_state().numpy().tobytes()}


@pytest.mark.parametrize("name", ["uniform", "normal", "bernoulli of field", "step"])
def test_images_with_channels_inside_are_divided_alike(name: str) -> None:
    x = draws.draw_normal(torch.empty(8, 3, 40, 20), generator=seeded(1)).to(memory_format=torch.channels_last)
    whole = DRAWS[name](x, seeded())
    for rank in range(4):
        part = Part(rank, 4, 8)
        with workers.dividing(part):
            found = DRAWS[name](part.take(x), seeded())
        assert torch.equal(found, part.take(whole))
        assert found.is_contiguous(memory_format=torch.channels_last)


def test_double_precision_is_divided_alike() -> None:
    x = draws.draw_normal(torch.empty(9, 300, dtype=torch.float64), generator=seeded(1))
    for name in ("uniform", "normal", "bernoulli", "step", "categorical"):
        found, _ = in_parts(DRAWS[name], x, 4, 0)
        assert torch.equal(torch.cat(found), DRAWS[name](x, seeded()))


def test_two_parts_do_not_share_numbers() -> None:
    """The control: without a part two workers with the same generator would draw the same numbers."""
    found, _ = in_parts(DRAWS["normal"], torch.zeros(4, 5000), 2, 0)
    assert torch.equal(DRAWS["normal"](torch.zeros(2, 5000), seeded()), found[0])
    assert not bool((found[0] == found[1]).any())


def test_parts_are_near_equal_and_cover_the_whole() -> None:
    for total in (10, 11, 128):
        for world in (1, 2, 3, 5):
            parts = [Part(rank, world, total) for rank in range(world)]
            assert [row for p in parts for row in range(p.first, p.first + p.count)] == list(range(total))
            assert max(p.count for p in parts) - min(p.count for p in parts) <= 1


def test_a_repeated_part_has_all_rows_which_count_less() -> None:
    x = torch.arange(5.0)
    shares, whole = [], DRAWS["normal"](x, seeded())
    for rank in range(3):
        with workers.dividing(Part(rank, 3, 5)):
            assert torch.equal(DRAWS["normal"](x, seeded()), whole)
            shares.append(workers.mean(x))
    assert torch.allclose(sum(shares, torch.zeros(())), x.mean())


def test_shares_of_means_add_up() -> None:
    x = torch.arange(20.0).reshape(10, 2)
    shares = []
    for rank in range(3):
        part = Part(rank, 3, 10)
        with workers.dividing(part), workers.of(10) as n:
            assert n == part.count
            shares.append(workers.mean(part.take(x)))
    assert torch.allclose(sum(shares, torch.zeros(())), x.mean())


def test_a_draw_without_the_rows_of_the_part_is_refused() -> None:
    with workers.dividing(Part(0, 2, 10)), pytest.raises(ValueError, match="drawn for rows 0 to 5 of 10"):
        draws.draw_normal(torch.zeros(3, 5))
    with workers.dividing(Part(0, 2, 10)), workers.dividing(None):
        assert draws.draw_normal(torch.zeros(3, 5)).shape == (3, 5)
    with workers.dividing(Part(0, 2, 10)), workers.along(1):
        assert draws.draw_normal(torch.zeros(3, 5)).shape == (3, 5)


def test_a_process_on_its_own_has_no_part() -> None:
    assert workers.world() == 1 and workers.is_first() and workers.part_of(7) is None
    x = torch.ones(3)
    assert workers.gather(x) is x and workers.add_up(x) is x
    with workers.of(5) as n, workers.along(1):
        assert n == 5 and workers.current() is None
    workers.require_same(anything=1)


def test_the_time_limit_is_a_number_of_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARMONIUM_WORKER_SECONDS", "soon")
    with pytest.raises(ValueError, match="HARMONIUM_WORKER_SECONDS"):
        workers.time_limit()
