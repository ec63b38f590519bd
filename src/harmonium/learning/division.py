"""How a training is divided among workers: rows and chains apart, one sum of gradients an update."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from harmonium import native, workers
from harmonium.draws import draw_integers
from harmonium.learning.epoch_rows import EpochRows
from harmonium.learning.objectives import Phases
from harmonium.shared_sum import SharedSum
from harmonium.types import State
from harmonium.workers import Part, WorkersApartError

if TYPE_CHECKING:
    from harmonium.learning.training import Training

_MOST_MEASURED = 64  # numbers behind the gradients, for which there is room from the beginning

_OF_OBJECTIVE = re.compile(r"(?:^|\.)objective\.")


class Division:
    """What the workers of a training share out, and what they tell each other once an update.

    Rows of a batch and persistent chains are divided where the objective `divides`; otherwise every worker does all of
    it. The gradients of all are added up in one flat buffer, behind which travel what was measured, and whether
    somebody wishes to stop or to save. Then optimizers and transforms act alike everywhere.
    """

    def __init__(self, training: Training) -> None:
        self.n, self.rank = workers.world(), workers.rank()
        self.divides = training.objective.divides(training.model)
        self.wish, self.stop, self.save = False, False, False
        self.measured: dict[str, float] = {}
        self._room = 0
        self._shared: SharedSum | None = None
        self._check(training)

    @staticmethod
    def of(training: Training) -> Division | None:
        """Return the division of a training, None for a process on its own."""
        return Division(training) if workers.world() > 1 else None

    def _check(self, training: Training) -> None:
        """Raise, on every worker alike, where a training cannot be divided."""
        if training.batches.loader is not None:
            raise WorkersApartError(
                "A DataLoader has an order of its own on every worker. Give `fit` its data set (loader.dataset), an "
                "array or a mapping: the rows of each batch are then shared out."
            )
        for module in training.model.modules():
            if isinstance(module, nn.modules.batchnorm._NormBase) and module.track_running_stats:
                raise WorkersApartError(
                    f"{type(module).__name__} measures the rows of one worker alone. Use GroupNorm or LayerNorm."
                )
        n_chains = training.objective.n_chains
        for what, value in (("chains", n_chains), ("rows in a batch", training.batch_size)):
            if self.divides and value is not None and value < 2 * self.n:
                raise WorkersApartError(
                    f"{self.n} workers cannot share {value} {what}: each needs two at least. Start at most "
                    f"{value // 2} of them, or give them more."
                )

    def start(self, training: Training) -> None:
        """Let all workers begin alike: the parameters of the first, one random state, and the same of all else.

        All that they have to tell each other for it travels in one text; parameters only if they are not the same.
        """
        held, own = _held(training), training.objective.parameters()
        state = {**training.model.state_dict(), **{f"objective {i}": p for i, p in enumerate(own)}}
        seed = "" if training.generator is not None else str(int(draw_integers(2**62, (1,))))
        self._room = sum(p.numel() + 1 for p in training._learning) + _MOST_MEASURED
        shared = SharedSum(self._room, training._learning)
        try:
            told = workers.told("\n".join([workers.digest(held), workers.digest(state), seed, shared.offer]))
            things, states, seeds, offers = zip(*(text.split("\n") for text in told), strict=True)
            if len(set(things)) > 1:
                workers.refuse(held)
            self._shared = shared if shared.join(offers) else None
        finally:
            shared.withdraw()
        if len(set(states)) > 1:
            workers.spread(state)
        if training.generator is None:
            training.generator = torch.Generator().manual_seed(int(seeds[0]))

    def require_same_draws(self, training: Training) -> None:
        """Raise unless the generators of all workers are in one state."""
        if training.generator is not None:
            held = {"random_state": training.generator.get_state()}
            letters = torch.tensor([float(letter) for letter in workers.digest(held).encode()])
            if len(self._told(letters).unique(dim=0)) > 1:
                workers.refuse(held)

    def rows(self, n: int) -> Part | None:
        """Return what this worker has of a batch of n rows, None where it does all by itself."""
        part = workers.part_of(n) if self.divides else None
        return None if part is None else replace(part, adds=self._sum_of_few)

    def mine(self, index: Tensor) -> Tensor:
        """Return those of the numbered rows of a batch that this worker has."""
        part = self.rows(len(index))
        return index if part is None else part.take(index)

    def add_shares(self, training: Training, index: Tensor, batch: State) -> None:
        """Make the gradient of this worker's rows of a batch, and add up those of all workers."""
        part = self.rows(len(index))
        mine = index if part is None else part.take(index)
        has_holes = bool(training.missing.values)
        if part is not None and has_holes:  # drawn for all rows: every worker remembers the draws
            batch = {name: part.take(value) for name, value in training._prepared(index, batch).items()}
        with workers.dividing(part):
            training.batch = batch if part is not None and has_holes else training._prepared(mine, batch)
            training._add_gradient(mine)
        self.add_up(training)

    def add_up(self, training: Training) -> None:
        """Give all workers the sum of their gradients; where each did all of it, the mean."""
        learning, objective = training._learning, training.objective
        measured = objective.measured()
        signs = [float(p.grad is not None) for p in learning]
        signs += [float(training.stop), float(self.wish), *measured.values()]
        kept = [p for p in learning if p.grad is not None]
        if len(kept) < len(learning):
            for p in learning:
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        parts = [p.grad.reshape(-1) for p in learning if p.grad is not None]
        parts.append(parts[0].new_tensor(signs))
        if not self.divides:
            for part in (*parts[:-1], parts[-1][len(signs) - len(measured) :]):
                part.div_(self.n)
        *gradients, tail = self._sum(parts)
        found = tail.tolist()
        for p, gradient, sign in zip(learning, gradients, found, strict=False):
            p.grad = _like(gradient, p) if sign else None
        self.stop, self.save = (bool(sign) for sign in found[len(learning) : len(learning) + 2])
        self.wish = False
        self.measured = dict(zip(measured, found[len(learning) + 2 :], strict=True))

    def _sum(self, parts: list[Tensor]) -> Sequence[Tensor]:
        """Return the sum over workers of each tensor: by shared memory, in place, or by the group in one buffer."""
        sizes = [len(part) for part in parts]
        if sum(sizes) > self._room:
            self._room, self._shared = sum(sizes), SharedSum.of(sum(sizes), parts)
        if self._shared is None:
            return workers.add_up(torch.cat(parts)).split(sizes)
        self._shared(parts)
        return parts

    def agreed(self, wish: bool) -> bool:
        """Return whether somebody wishes it, asked of all at once; for what happens once an epoch."""
        return bool(self._told(torch.tensor([float(wish)])).any())

    def _sum_of_few(self, x: Tensor) -> Tensor:
        return self._told(x.reshape(-1).cpu()).sum(0).view(x.shape).to(x)

    def _told(self, numbers: Tensor) -> Tensor:
        """Return a few numbers of all workers, a row each, to be read before the next but one exchange."""
        if self._shared is None or len(numbers) > self._shared.n:
            return workers.gather(numbers[None], lengths=[1] * self.n)
        return self._shared.rows([numbers])

    def phases(self, phases: Phases | None) -> Phases | None:
        """Return the rows of both phases of all workers."""
        if phases is None or not self.divides:
            return phases
        positive, negative = (workers.gather_all(state) for state in phases[:2])
        return Phases(positive, negative, phases.hidden)

    def seen(self, rows: EpochRows) -> EpochRows:
        """Return the rows of an epoch that all workers kept; once an epoch, and where it is saved."""
        return rows.gathered() if self.divides else rows

    def joined(self, training: Training, tensors: State) -> State:
        """Return a state to be saved, with the chains of all workers: any number of workers can go on from it."""
        axis = training.objective.chain_axis()
        if not self.divides or axis is None:
            return tensors
        result = dict(tensors)
        for name, value in sorted(tensors.items()):  # in one order: a state that was read may be in any
            is_whole = (
                value.ndim <= axis or value.shape[axis] == training.objective.n_chains
            )  # brought along, not begun
            if _OF_OBJECTIVE.search(name) and not is_whole:
                result[name] = workers.gather(value, axis=axis)
        return result

    def own(self, training: Training, tensors: State) -> State:
        """Return a saved state with the chains of this worker alone."""
        axis = training.objective.chain_axis()
        if not self.divides or axis is None:
            return tensors
        result = dict(tensors)
        for name, value in tensors.items():
            if _OF_OBJECTIVE.search(name) and value.ndim > axis:
                result[name] = Part(self.rank, self.n, value.shape[axis], axis).take(value).clone()
        return result


def _held(training: Training) -> dict[str, object]:
    """Return what must be the same for all workers of a training, by the name that it is told by."""
    return {
        "version": f"{_version()}, torch {torch.__version__}",
        "parameters": {name: tuple(p.shape) for name, p in training.model.named_parameters()},
        "objective": training.objective,
        "optimizer": training.optimizer,
        "epochs": training.epochs,
        "batch_size": training.batch_size,
        "place": [training.epoch, training.update, training.position],
        "data": {name: (*x.shape, x.dtype) for name, x in training.batches.columns.items()} or len(training.batches),
        "random_state": "none" if training.generator is None else training.generator.get_state(),
    }


def _like(gradient: Tensor, parameter: nn.Parameter) -> Tensor:
    """Return a gradient as the parameter lies in memory."""
    gradient = gradient.view(parameter.shape)
    if parameter.is_contiguous() and gradient.dtype == parameter.dtype:
        return gradient
    return torch.empty_like(parameter).copy_(gradient)


@functools.cache
def _version() -> str:
    """Return the version of the package, a digest of its source, and whether the loops that draw are compiled."""
    try:
        number = version("harmonium")
    except PackageNotFoundError:
        number = "not installed"
    source = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        source.update(path.read_bytes())
    return f"{number}, source {source.hexdigest()[:8]}, {'compiled' if native.LIBRARY else 'not compiled'}"
