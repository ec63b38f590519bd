"""Learn a classifier and a density at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from harmonium import workers
from harmonium.draws import draw_integers, draw_normal
from harmonium.learning.objectives.base import Case, Objective, Phases
from harmonium.learning.objectives.replay_buffer import ReplayBuffer
from harmonium.models.frozen import frozen
from harmonium.models.jem import JEM
from harmonium.models.layers import X, Y
from harmonium.samplers import MALA, Langevin, Sampler
from harmonium.samplers.sample import starting_points
from harmonium.types import EnergyModel, State, as_state

AT_EDGE = 0.99
"""The share of coordinates at the edge of the box from which a chain counts as saturated."""


@dataclass
class JointLikelihood(Objective):
    """`-ln p(x, y)` by `L = L_clf + L_gen` (eqs. 6.26 to 6.31 of Tomczak's chapter, with their signs turned to a loss).

    `L_clf = -ln softmax f(x)[y]`, computed in log space, and `L_gen = F(x) - F(x_η)` with `x_η` the end of `n_steps`
    steps of a sampler, held constant. As it stands it is the chapter's plain procedure: chains start uniformly at every
    update and follow Langevin dynamics (eq. 6.28). A batch holds layers `x` and `y`; a row with label -1 takes part in
    L_gen only, and so does a bare `x`, which is all that an energy without classes needs.

    - `buffer`: persistent chains; with classes, the chains sample `p(x | y)` and L_gen contrasts the marginals.
    - `sampler`: any kernel; `Langevin(limit=…)` makes proximal steps. `box` clamps the ends of the chains.
    - `classification_weight`, `generation_weight`: the weights of the two parts.
    - `input_noise`: the standard deviation of noise added to the data.
    - `energy_penalty`: times the mean of `F(x)² + F(x_η)²`, which keeps energies near zero (Du and Mordatch 2019).
    - `labeled`: few labeled samples `(x, y)`, of which `n_labeled` join L_clf at every update.

    `metrics` holds the parts of the last call.

    >>> jem = JEM(MLP(64, 10))
    >>> loss = JointLikelihood(n_steps=2).loss(jem, {"x": torch.zeros(5, 64), "y": torch.arange(5)})
    >>> loss.shape
    torch.Size([])
    """

    n_steps: int = 20
    sampler: Sampler = field(default_factory=lambda: Langevin(step_size=1.0, noise=0.01))
    buffer: ReplayBuffer | None = None
    box: tuple[float, float] | None = None
    classification_weight: float = 1.0
    generation_weight: float = 1.0
    input_noise: float = 0.0
    energy_penalty: float = 0.0
    labeled: tuple[Tensor, Tensor] | None = field(default=None, repr=False)
    n_labeled: int = 64
    metrics: dict[str, float] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.n_steps < 1:
            raise ValueError(f"`n_steps` must be at least 1. Got {self.n_steps}. The chapter uses 20.")
        if self.classification_weight < 0 or self.generation_weight < 0:
            raise ValueError("The weights of the two parts must not be negative. Use 0 to leave a part out.")
        self.n_chains = None if self.buffer is None else self.buffer.n_chains

    @classmethod
    def examples(cls) -> list[Case]:
        """Return two Gaussian classes on the line as a joint model, their own law, and chains that follow it."""
        model = JEM(_Classes(), 1, 2)

        def draw(n: int, *, generator: torch.Generator | None = None) -> State:
            y = draw_integers(2, (n,), generator=generator)
            noise = draw_normal(torch.empty(n, 1, dtype=torch.float64), generator=generator)
            return {X: noise + _Classes.centers[y].unsqueeze(-1), Y: y}

        def objective(*, generator: torch.Generator | None = None) -> JointLikelihood:
            chains = draw(400, generator=generator)[X]
            return cls(n_steps=2, sampler=MALA(0.3), buffer=ReplayBuffer(400, renewal=0.0, chains=chains))

        return [Case(objective, model, draw)]

    def divides(self, model: nn.Module) -> bool:
        """Return whether rows and chains can be shared; few labeled samples, which join every batch, are not."""
        return type(self) is JointLikelihood and self.labeled is None and self.sampler.chain_axis() == 0

    def chain_axis(self) -> int | None:
        """Return the axis of the chains of a buffer, which workers share."""
        return None if self.buffer is None else 0

    def loss(
        self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the mean of L over a batch, differentiable in the parameters."""
        return self._parts(model, batch, generator)[0]

    def accumulate_grad(
        self,
        model: nn.Module,
        batch: Tensor | Mapping[str, Tensor],
        *,
        weight: Tensor | None = None,
        index: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Phases | None:
        """Add the gradient of L by autograd; return data and samples."""
        if weight is not None:
            raise ValueError("JointLikelihood has no weights of rows. Leave `weights` out.")
        if type(self).loss is not JointLikelihood.loss:  # of a class that changes it
            return super().accumulate_grad(model, batch, generator=generator)
        with torch.enable_grad():
            loss, negative = self._parts(model, batch, generator)
            loss.backward()
        return None if negative is None else Phases(as_state(batch, X), {X: negative})

    def _parts(
        self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return L and the samples x_η."""
        state = as_state(batch, X)
        x, y = state[X], state.get(Y)
        if self.input_noise:
            x = x + self.input_noise * draw_normal(x, generator=generator)
        logits = model.class_logits(x) if isinstance(model, JEM) else None
        energy: EnergyModel = model  # type: ignore[assignment]
        if isinstance(model, JEM) and logits is not None:
            free = model.free_energy_of(logits, x)
        else:
            free = energy.free_energy(x)
        loss, negative = free.new_zeros(()), None
        self.metrics = {}
        if self.classification_weight and isinstance(model, JEM) and logits is not None:
            part = self._classification(model, logits, y, generator)
            if part is not None:
                self.metrics["classification_loss"] = part.item()
                loss = loss + self.classification_weight * part
        if self.generation_weight:
            negative = self.draw_negatives(energy, len(free), generator=generator)
            loss = loss + self._generation(energy, free, negative)
        return loss, negative

    def _classification(
        self, model: JEM, logits: Tensor, y: Tensor | None, generator: torch.Generator | None
    ) -> Tensor | None:
        """Return the mean of `-ln softmax f(x)[y]` over the rows with a label, None without any."""
        known = logits[:0] if y is None else logits[y >= 0]
        labels = torch.zeros(0, dtype=torch.int64, device=logits.device) if y is None else y[y >= 0]
        if self.labeled is not None:
            index = draw_integers(len(self.labeled[1]), (self.n_labeled,), generator=generator)
            extra = self.labeled[0][index].to(logits)
            if self.input_noise:
                extra = extra + self.input_noise * draw_normal(extra, generator=generator)
            known = torch.cat([known, model.class_logits(extra)])
            labels = torch.cat([labels, self.labeled[1][index].to(labels)])
        if workers.current() is None:
            return cross_entropy(known, labels) if len(labels) else None
        n = workers.total(torch.ones(len(labels)))
        return cross_entropy(known, labels, reduction="sum") / n if bool(n) else None

    def _generation(self, model: EnergyModel, free: Tensor, negative: Tensor) -> Tensor:
        free_negative = model.free_energy(negative)
        mean = workers.mean(free)
        contrast = mean - workers.mean(free_negative)
        self.metrics |= {"generation_loss": contrast.item(), "free_energy": mean.item()}
        if self.box is not None:
            self.metrics["saturation"] = saturation(negative, self.box) * len(negative) / workers.whole(len(negative))
        loss = self.generation_weight * contrast
        if self.energy_penalty:
            loss = loss + self.energy_penalty * (workers.mean(free.square()) + workers.mean(free_negative.square()))
        return loss

    @torch.no_grad()
    def draw_negatives(self, model: EnergyModel, n: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Return the ends of `n` chains, with the parameters frozen, in evaluation mode, and no graph kept."""
        index, labels = None, None
        if self.buffer is None:
            x = starting_points(model, n, generator=generator)
        else:
            index, x, labels = self.buffer.take(model, n, generator=generator)
        target = model.given_class(labels) if labels is not None and isinstance(model, JEM) else model
        with frozen(model):
            state = self.sampler.init(target, x, generator=generator)
            for _ in range(self.n_steps):
                state, _info = self.sampler.step(target, state, generator=generator)
            x = self.sampler.samples(target, state).detach()
        if self.box is not None:
            x = x.clamp(*self.box)
        if self.buffer is not None and index is not None:
            self.buffer.put(index, x)
        return x

    def measured(self) -> dict[str, float]:
        """Return the parts of the last call."""
        return self.metrics

    def state_dict(self) -> State:
        """Return what must survive between updates: the chains, and the number of steps, which a guard may raise."""
        chains = {} if self.buffer is None else self.buffer.state_dict()
        return {**chains, "n_steps": torch.tensor(self.n_steps)}

    def load_state_dict(self, state: State) -> None:
        """Take them up again."""
        if "n_steps" in state:
            self.n_steps = int(state["n_steps"])
        if self.buffer is not None:
            self.buffer.load_state_dict(state)


class _Classes(nn.Module):
    """`f(x)[y] = a_y + x m_y - x²/2`, two Gaussians of width 1 at ±1 where a and m are right."""

    centers = torch.tensor([-1.0, 1.0], dtype=torch.float64)

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(self.centers.clone())
        self.offset = nn.Parameter(-self.centers.square() / 2)

    def forward(self, x: Tensor) -> Tensor:
        """Return f(x), `(n, 2)`."""
        return self.offset + x * self.slope - x.square() / 2


def saturation(x: Tensor, box: tuple[float, float]) -> float:
    """Return the share of samples with (nearly) all of their coordinates at the edge of the box, or beyond.

    >>> from harmonium.learning.objectives.joint_likelihood import saturation
    >>> saturation(torch.tensor([[1.0, -1.0], [0.5, 1.0]]), (-1.0, 1.0))
    0.5
    """
    at_edge = ((x <= box[0]) | (x >= box[1])).flatten(1).to(torch.float32).mean(1)
    return (at_edge >= AT_EDGE).to(torch.float32).mean().item()
