"""A buffer of chains that go on from update to update."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from harmonium import workers
from harmonium.draws import draw_permutation, draw_uniform
from harmonium.laws.class_gaussians import ClassGaussians
from harmonium.samplers.sample import starting_points
from harmonium.types import EnergyModel, State
from harmonium.workers import Part


@dataclass
class ReplayBuffer:
    """`n_chains` persistent chains, of which each update moves some (Du and Mordatch 2019; Grathwohl et al. 2020).

    A chain that is taken starts anew with probability `renewal`: at the model's own starting points, or at `starts`, a
    Gaussian for each class. With `n_classes` the buffer is class-conditional: chain i belongs to class i mod n_classes
    and samples `p(x | y)`, all classes being equally frequent. Workers share the buffer: each holds its part of the
    chains, and hands over what another is to move.

    >>> ReplayBuffer(n_chains=1000, renewal=0.05)
    ReplayBuffer(n_chains=1000, renewal=0.05, n_classes=None, starts=None)
    """

    n_chains: int = 10_000
    renewal: float = 0.05
    n_classes: int | None = None
    starts: ClassGaussians | None = None
    chains: Tensor | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.n_chains < 1 or not 0 <= self.renewal <= 1:
            raise ValueError(
                f"`n_chains` must be at least 1 and `renewal` a probability. Got {self.n_chains} and {self.renewal}."
            )

    def take(
        self, model: EnergyModel, n: int, *, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the numbers of `n` different chains, where they stand, and their classes if they have one.

        Workers choose the same chains; in a part each gets as many of them as it has rows, whoever holds them.
        """
        part = workers.current()
        n = n if part is None else part.total
        if n > self.n_chains:
            raise ValueError(f"The buffer has {self.n_chains} chains. Got n={n}. Make it larger: n_chains={10 * n}.")
        held = self._started(model, generator)
        with workers.dividing(None):
            index, x, labels = self._chosen(model, n, held, generator)
        if part is None:
            return index, x, labels
        return part.take(index), part.take(x), None if labels is None else part.take(labels)

    def _started(self, model: EnergyModel, generator: torch.Generator | None) -> Part | None:
        """Let the chains that are held here be there; return which these are, None for all."""
        held = self._held()
        first, n = (0, self.n_chains) if held is None else (held.first, held.count)
        if self.chains is None:
            with workers.dividing(held):
                self.chains = self._fresh(model, n, self._classes(torch.arange(first, first + n)), generator)
        elif held is not None and len(self.chains) == self.n_chains:  # chains that somebody brought along
            self.chains = held.take(self.chains).clone()
        if len(self.chains) != n:
            raise ValueError(
                f"The buffer holds {len(self.chains)} of {self.n_chains} chains: those of one of several workers. Take "
                "chains within an update that workers share, or give it all of them."
            )
        return held

    def _chosen(
        self, model: EnergyModel, n: int, held: Part | None, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        index = draw_permutation(self.n_chains, generator=generator)[:n]
        labels = self._classes(index)
        x = self._at(index, held)
        renewed = draw_uniform(x.new_empty(n), generator=generator) < self.renewal
        if bool(renewed.any()):
            part = None if labels is None else labels[renewed.to(labels.device)]
            x[renewed] = self._fresh(model, int(renewed.sum()), part, generator)
        return index, x, None if labels is None else labels.to(x.device)

    def _at(self, index: Tensor, held: Part | None) -> Tensor:
        """Return where the chains with these numbers stand, each told by the worker who holds it."""
        chains = self._own_chains()
        if held is None:
            return chains[index]
        holder = torch.bucketize(index, torch.tensor(held.counts).cumsum(0), right=True)
        told = chains[index[holder == held.rank] - held.first]
        told = workers.gather(told, lengths=holder.bincount(minlength=held.world).tolist())
        x = torch.empty_like(told)
        x[holder.argsort(stable=True)] = told
        return x

    def put(self, index: Tensor, x: Tensor) -> None:
        """Store where the chains with these numbers have gone; in a part each worker stores those that it holds."""
        chains, x, part, held = self._own_chains(), x.detach(), workers.current(), self._held()
        if part is not None and not part.repeated:
            x, index = workers.gather(x, lengths=part.counts), workers.gather(index, lengths=part.counts)
        if held is None:
            chains[index] = x
            return
        mine = (index >= held.first) & (index < held.first + held.count)
        chains[index[mine] - held.first] = x[mine.to(x.device)]

    def _held(self) -> Part | None:
        """Return which chains a worker holds, None for all."""
        part = workers.current()
        held = None if part is None else part.of(self.n_chains)
        return None if held is None or held.repeated else held

    def _own_chains(self) -> Tensor:
        if self.chains is None:
            raise ValueError("The buffer is empty. Take chains from it before you put any back.")
        return self.chains

    def _classes(self, index: Tensor) -> Tensor | None:
        return None if self.n_classes is None else index % self.n_classes

    def _fresh(self, model: EnergyModel, n: int, labels: Tensor | None, generator: torch.Generator | None) -> Tensor:
        if self.starts is None:
            return starting_points(model, n, generator=generator)
        like = self.starts.mean
        wanted = torch.full((n,), -1, device=like.device) if labels is None else labels.to(like.device)
        return self.starts.initial(wanted, generator=generator)

    def state_dict(self) -> State:
        """Return the chains; of workers who share them each returns its own."""
        return {} if self.chains is None else {"chains": self.chains}

    def load_state_dict(self, state: State) -> None:
        """Take up the chains again."""
        self.chains = state["chains"].clone() if "chains" in state else None
