"""Independent components of a mixed source with known directions."""

from __future__ import annotations

import pytest
import torch

import harmonium as hm
from harmonium.learning.starts import independent_components, independent_filters

N = 24


def mixed(generator: torch.Generator, *, tails: bool = True, width: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Return sources with long tails (Gaussian ones if not), `width` of a kind, behind a rotation, and the rotation."""
    sources = torch.randn(20_000, N, generator=generator, dtype=torch.float64)
    if tails:
        wide = torch.rand(len(sources), N // width, generator=generator) < 0.2
        sources = sources * torch.where(wide, 4.0, 1.0).repeat_interleave(width, 1)
    rotation = torch.linalg.qr(torch.randn(N, N, generator=generator, dtype=torch.float64))[0]
    return sources @ rotation.t(), rotation


def test_the_directions_are_found(generator: torch.Generator) -> None:
    """Each filter is one source up to sign; control: Gaussian sources, whose directions nobody can know."""
    for tails in (True, False):
        x, rotation = mixed(generator, tails=tails)
        found = independent_components(x, generator=generator)
        match = (rotation.t() @ (found / found.norm(dim=0))).abs().amax(0)
        assert bool((match > 0.99).all()) == tails


def test_a_machine_starts_there_and_is_proper(generator: torch.Generator) -> None:
    x, rotation = mixed(generator)
    machine = hm.SpikeSlabRBM(hm.Gaussian(N), 16, generator=generator).double()
    independent_filters(machine, x, generator=generator)
    assert machine.largest_singular_value() <= machine.limit + 1e-9
    assert bool(((rotation.t() @ machine.weight).abs().amax(0) > 0.95 * machine.limit).all())
    opened = machine.spike_mean(hm.sample(machine, 4000, n_steps=200, generator=generator)).mean(0)
    assert bool(((opened - 0.3).abs() < 0.05).all())
    with pytest.raises(ValueError, match="independent directions"):
        independent_filters(hm.SpikeSlabRBM(hm.Gaussian(N), N + 1), x)


def test_slabs_of_a_spike_are_directions_that_are_large_together(generator: torch.Generator) -> None:
    """Pairs of sources that share their scale meet in one spike; control: without `gathered` they do not."""
    x, rotation = mixed(generator, width=2)
    machine = hm.SpikeSlabRBM(hm.Gaussian(N), N // 2, 2, generator=generator).double()
    independent_filters(machine, x, generator=generator)

    def spread(filters: torch.Tensor) -> torch.Tensor:
        """Return the part of each pair of filters that lies in its most likely pair of sources."""
        inside = (rotation.t() @ filters / filters.norm(dim=0)).square().reshape(N // 2, 2, N // 2, 2).sum((1, 3)) / 2
        return inside.amax(0)

    assert bool((spread(machine.weight) > 0.9).all())
    mixed_up = machine.weight[:, torch.randperm(N, generator=generator)]
    assert not bool((spread(mixed_up) > 0.9).all())
