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


@dataclass
class ReplayBuffer:
    """`n_chains` persistent chains, of which each update moves some (Du and Mordatch 2019; Grathwohl et al. 2020).

    A chain that is taken starts anew with probability `renewal`: at the model's own starting points, or at `starts`, a
    Gaussian for each class. With `n_classes` the buffer is class-conditional: chain i belongs to class i mod n_classes
    and samples `p(x | y)`, all classes being equally frequent.

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

        Workers choose the same chains; in a part each gets as many of them as it has rows.
        """
        part = workers.current()
        with workers.dividing(None):
            index, x, labels = self._chosen(model, n if part is None else part.total, generator)
        if part is None:
            return index, x, labels
        return part.take(index), part.take(x), None if labels is None else part.take(labels)

    def _chosen(
        self, model: EnergyModel, n: int, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        if n > self.n_chains:
            raise ValueError(f"The buffer has {self.n_chains} chains. Got n={n}. Make it larger: n_chains={10 * n}.")
        if self.chains is None:
            everyone = self._classes(torch.arange(self.n_chains))
            self.chains = self._fresh(model, self.n_chains, everyone, generator)
        index = draw_permutation(self.n_chains, generator=generator)[:n]
        labels = self._classes(index)
        x = self.chains[index]
        renewed = draw_uniform(x.new_empty(n), generator=generator) < self.renewal
        if bool(renewed.any()):
            part = None if labels is None else labels[renewed.to(labels.device)]
            x[renewed] = self._fresh(model, int(renewed.sum()), part, generator)
        return index, x, None if labels is None else labels.to(x.device)

    def put(self, index: Tensor, x: Tensor) -> None:
        """Store where the chains with these numbers have gone; every worker stores those of all."""
        if self.chains is None:
            raise ValueError("The buffer is empty. Take chains from it before you put any back.")
        part = workers.current()
        if part is not None and not part.repeated:
            moved = workers.gather_all({"index": index, "x": x.detach()})
            index, x = moved["index"], moved["x"]
        self.chains[index] = x.detach()

    def _classes(self, index: Tensor) -> Tensor | None:
        return None if self.n_classes is None else index % self.n_classes

    def _fresh(self, model: EnergyModel, n: int, labels: Tensor | None, generator: torch.Generator | None) -> Tensor:
        if self.starts is None:
            return starting_points(model, n, generator=generator)
        like = self.starts.mean
        wanted = torch.full((n,), -1, device=like.device) if labels is None else labels.to(like.device)
        return self.starts.initial(wanted, generator=generator)

    def state_dict(self) -> State:
        """Return the chains."""
        return {} if self.chains is None else {"chains": self.chains}

    def load_state_dict(self, state: State) -> None:
        """Take up the chains again."""
        self.chains = state["chains"].clone() if "chains" in state else None
