"""What the guided tour computes: a machine so small that everything about it can be counted, beside what chains say."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from harmonium.data.lattice import bars_and_stripes, binary_words
from harmonium.learning import fit
from harmonium.learning.objectives import CD
from harmonium.learning.starts import initialize
from harmonium.models import RBM, Tempered
from harmonium.partition.ais import ais, reverse_ais
from harmonium.partition.exact import exact_log_z
from harmonium.runs.plays.base import Move, Seen, count, flag, number
from harmonium.runs.plays.images import to_bytes
from harmonium.samplers import Gibbs, sample
from harmonium.types import State
from harmonium.units import Bernoulli

N_VISIBLE, N_HIDDEN, SIZE, N_LEARNED = 4, 3, 3, 12
"""Units of the machine of the first steps; side of the images of the later ones, and hidden units for them."""

_MAX_UPDATES, _BATCH = 400, 16


class Lesson:
    """The machines of one tour. The first is fixed, small enough to show all its 128 states; the second learns."""

    def __init__(self, seed: int = 0) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.small = fixed_machine()
        self.chain: State = {}
        self.counts = torch.zeros(2**N_VISIBLE)
        self.patterns, self.law = bars_and_stripes(SIZE)
        self.words = binary_words(SIZE * SIZE).float()
        self.restart()

    def restart(self) -> None:
        """Forget what was learned."""
        generator = torch.Generator().manual_seed(1)
        self.rbm = RBM(Bernoulli(SIZE * SIZE), Bernoulli(N_LEARNED), generator=generator)
        rows = self.patterns.flatten(1).float().repeat_interleave((self.law * _BATCH).round().long(), 0)
        self.rows = rows
        initialize(self.rbm, rows)
        self.optimizer = torch.optim.Adam(self.rbm.parameters(), 0.03)
        self.objective = CD(n_steps=10)
        self.curve: list[tuple[int, float]] = []
        self.n_updates = 0
        self._note()

    @torch.no_grad()
    def move(self, move: Move) -> Seen:
        """Return what is seen after a move of one of the steps."""
        steps = {
            "energy": self.energy,
            "law": self.states_law,
            "hidden": self.hidden,
            "sample": self.visits,
            "learn": self.learn,
            "fill": self.fill,
            "estimate": self.estimate,
        }
        step = move.get("step")
        if not isinstance(step, str) or step not in steps:
            raise ValueError(f"`step` must be one of {', '.join(steps)}.")
        return steps[step](move)

    # --- the small machine ---
    def energy(self, move: Move) -> Seen:
        """Return E(v, h) of a state, among the energies of all states; and the weights."""
        state = {"visible": bits(move, "v", N_VISIBLE), "hidden": bits(move, "h", N_HIDDEN)}
        energies = self._energies()
        return {
            "energy": self.small.energy(state).item(),
            "lowest": energies.min().item(),
            "highest": energies.max().item(),
            "rank": int((energies < self.small.energy(state) - 1e-6).sum()) + 1,
            "of": len(energies),
            "weights": self.small.weight.tolist(),
            "visible_bias": self.small.visible_bias.tolist(),
            "hidden_bias": self.small.hidden_bias.tolist(),
        }

    def states_law(self, move: Move) -> Seen:
        """Return the probabilities `e^{-βE}/Z` of all states, from the lowest energy to the highest."""
        beta = number(move, "beta", 0.0, 1.0, 1.0)
        v, h = _all_states()
        tempered = Tempered(self.small, beta)
        order = self._energies().argsort()
        p = (-tempered.energy({"visible": v, "hidden": h})).double().softmax(0)[order]
        return {"probabilities": p.tolist(), "entropy": -(p * p.clamp_min(1e-300).log()).sum().item()}

    def hidden(self, move: Move) -> Seen:
        """Return what the hidden units say of v, its free energy, and the law of all v."""
        v = bits(move, "v", N_VISIBLE)
        words = binary_words(N_VISIBLE).float()
        free = self.small.free_energy(words)
        return {
            "means": self.small.hidden_mean(v)[0].tolist(),
            "free_energy": self.small.free_energy(v).item(),
            "free_energies": free.tolist(),
            "law": (-free).double().softmax(0).tolist(),
            "index": _index(v),
        }

    def visits(self, move: Move) -> Seen:
        """Return how often a chain was at each v, beside the law of v."""
        if flag(move, "restart") or not self.chain:
            self.chain = Gibbs().init(self.small, torch.zeros(1, N_VISIBLE), generator=self.generator)
            self.counts.zero_()
        for _ in range(count(move, "steps", 0, 2000, 1)):
            self.chain, _ = Gibbs().step(self.small, self.chain, generator=self.generator)
            self.counts[_index(self.chain["visible"])] += 1
        law = (-self.small.free_energy(binary_words(N_VISIBLE).float())).double().softmax(0)
        n = int(self.counts.sum())
        share = self.counts.double() / max(1, n)
        return {
            "v": self.chain["visible"][0].tolist(),
            "h": self.chain["hidden"][0].tolist(),
            "shares": share.tolist(),
            "law": law.tolist(),
            "n": n,
            "distance": (share - law).abs().sum().item() / 2 if n else None,
        }

    # --- the machine that learns ---
    def learn(self, move: Move) -> Seen:
        """Learn for some updates; return the likelihood, the mass on the patterns, filters and samples."""
        if flag(move, "restart"):
            self.restart()
        n = count(move, "updates", 0, _MAX_UPDATES, 0)
        if n:
            with torch.enable_grad():
                fit(
                    self.rbm,
                    self.rows,
                    self.objective,
                    optimizer=self.optimizer,
                    epochs=n,
                    batch_size=len(self.rows),
                    generator=self.generator,
                    monitors=[],
                )
            self.n_updates += n
            self._note()
        law = self._law()
        own = law[[_index(pattern[None]) for pattern in self.patterns.flatten(1).float()]]
        samples = sample(self.rbm, 24, n_steps=50, generator=self.generator)
        weight = self.rbm.weight.detach().t()
        top = weight.abs().max().item() or 1.0
        shape = (1, SIZE, SIZE)
        return {
            "updates": self.n_updates,
            "curve": self.curve,
            "best": -_entropy(self.law),
            "mass": own.sum().item(),
            "patterns": {"n": len(self.patterns), "shape": shape, "pixels": to_bytes(self.patterns.float())},
            "own": own.tolist(),
            "wanted": self.law.tolist(),
            "filters": {"n": N_LEARNED, "shape": shape, "pixels": to_bytes(weight, (-top, top))},
            "samples": {"n": len(samples), "shape": shape, "pixels": to_bytes(samples)},
        }

    def fill(self, move: Move) -> Seen:
        """Return the chance that each open pixel is on, counted exactly and as a chain finds it."""
        pixels = move.get("pixels")
        if not isinstance(pixels, list) or len(pixels) != SIZE**2 or any(p not in (0, 1, None) for p in pixels):
            raise ValueError(f"`pixels` must be {SIZE**2} of 0, 1 and null.")
        known = torch.tensor([p is not None for p in pixels])
        values = torch.tensor([math.nan if p is None else float(p) for p in pixels])
        fits = (self.words[:, known] == values[known]).all(1)
        law = self._law()[fits]
        exact = (law[:, None] * self.words[fits]).sum(0) / law.sum()
        n = count(move, "chains", 1, 500, 200)
        drawn = sample(self.rbm, n, n_steps=count(move, "steps", 1, 200, 30), given=values, generator=self.generator)
        return {
            "exact": exact.tolist(),
            "drawn": drawn.mean(0).tolist(),
            "samples": {"n": 12, "shape": (1, SIZE, SIZE), "pixels": to_bytes(drawn[:12])} if n >= 12 else None,
            "log_p": (law.sum()).log().item(),
            "updates": self.n_updates,
        }

    def estimate(self, move: Move) -> Seen:
        """Return log Z by annealing, up and down again, beside the counted one."""
        n_betas = count(move, "temperatures", 2, 1000, 10)
        n_chains = count(move, "chains", 2, 256, 32)
        options: dict[str, Any] = {"n_chains": n_chains, "n_betas": n_betas, "generator": self.generator}
        found = {"below": ais(self.rbm, **options), "above": reverse_ais(self.rbm, **options)}
        told = {name: {"value": one.value, "error": one.error} for name, one in found.items()}
        return told | {"exact": exact_log_z(self.rbm).value, "updates": self.n_updates}

    def _energies(self) -> Tensor:
        v, h = _all_states()
        return self.small.energy({"visible": v, "hidden": h})

    def _law(self) -> Tensor:
        """Return `p(v)` of all 512 images."""
        return (-self.rbm.free_energy(self.words)).double().softmax(0)

    def _note(self) -> None:
        with torch.no_grad():
            nats = -self.rbm.free_energy(self.rows).double().mean().item() - exact_log_z(self.rbm).value
        self.curve.append((self.n_updates, nats))


def fixed_machine() -> RBM:
    """Return the machine of the first steps: two pairs of units that like to be on together, and one that forbids."""
    rbm = RBM(Bernoulli(N_VISIBLE), Bernoulli(N_HIDDEN))
    with torch.no_grad():
        rbm.weight.copy_(torch.tensor([[2.0, -1.5, 1.0], [2.0, -1.5, -1.0], [-1.5, 2.0, 1.0], [-1.5, 2.0, -1.0]]))
        rbm.visible_bias.copy_(torch.tensor([-0.5, -0.5, -0.5, -0.5]))
        rbm.hidden_bias.copy_(torch.tensor([-1.0, -1.0, 0.0]))
    return rbm


def bits(move: Move, name: str, n: int) -> Tensor:
    """Return n units of a move, one state."""
    found = move.get(name)
    if not isinstance(found, list) or len(found) != n or any(unit not in (0, 1) for unit in found):
        raise ValueError(f"`{name}` must be {n} of 0 and 1.")
    return torch.tensor([found], dtype=torch.float32)


def _all_states() -> tuple[Tensor, Tensor]:
    words = binary_words(N_VISIBLE + N_HIDDEN).float()
    return words[:, :N_VISIBLE], words[:, N_VISIBLE:]


def _index(v: Tensor) -> int:
    """Return the place of a state among `binary_words`."""
    return int((v.flatten() * 2 ** torch.arange(v.numel())).sum())


def _entropy(p: Tensor) -> float:
    return -(p * p.log()).sum().item()
