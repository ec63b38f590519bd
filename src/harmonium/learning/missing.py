"""Missing values: drawn from the model given the rest."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harmonium.learning.batches import Batches
from harmonium.models import BoltzmannMachine, Conditioned, TemporalRBM
from harmonium.samplers import Gibbs
from harmonium.types import State


class MissingValues:
    """The current draw of each unknown entry of the data; each time a row is used, one Gibbs step draws it again.

    As the model learns, the draws follow `p(unknown | known)`: data augmentation (Tanner and Wong 1987). The values are
    carried from epoch to epoch like persistent chains. Where rows hold a layer whole or not at all (every value NaN),
    as labels of some rows, nothing is drawn: the objective sums that layer out. Nor is it where the objective sums
    single values out by itself (not `drawn`).
    """

    def __init__(self, model: nn.Module, batches: Batches, *, drawn: bool = True) -> None:
        self.model = model
        self.unknown: State = {}
        self.values: State = {}
        for name, x in batches.columns.items():
            may_be_unknown = not x.is_floating_point() and x.dtype.is_signed and x.numel() > 0
            if isinstance(model, BoltzmannMachine) and may_be_unknown and bool(x.min() < 0):  # class numbers
                x = batches.columns[name] = model.layer(name).encoded(x, like=next(model.parameters()))
            if not x.is_floating_point() or not bool(x.sum().isnan()):  # one pass over what is whole, and no copy
                continue
            holes = x.isnan()
            if not bool(holes.any()):  # infinities of both signs
                continue
            if bool(holes.all()):
                raise ValueError(
                    f"All values of layer {name!r} are NaN (of classes: -1): there is nothing to learn from. "
                    "Leave it out."
                )
            if drawn:
                self._take(name, x, holes, alone=len(batches.columns) == 1)

    def _take(self, name: str, x: Tensor, holes: Tensor, *, alone: bool) -> None:
        if not isinstance(self.model, BoltzmannMachine):
            raise TypeError(
                f"Missing values need a BoltzmannMachine, which can draw them. Got {type(self.model).__name__}."
            )
        if isinstance(self.model, TemporalRBM):
            raise ValueError(
                "Sequences hold NaN, and a temporal machine does not learn from missing values. Fill them in first, "
                "with harmonium.samplers.in_time.complete and a machine trained on whole sequences."
            )
        if name in self.model.given:
            raise ValueError(f"Layer {name!r} is a condition and cannot be drawn. Fill in its missing values first.")
        units = self.model.layer(name)
        units.check_shape(x, name)
        units.check_known(~holes, name)
        of_row = holes.flatten(1)
        if alone or bool((of_row.any(1) & ~of_row.all(1)).any()):
            known = torch.where(holes, 0.0, x)
            mean = known.sum(0) / (~holes).sum(0).clamp_min(1)
            self.unknown[name], self.values[name] = holes, torch.where(holes, mean, known)

    @torch.no_grad()
    def fill(self, index: Tensor, batch: State, *, generator: torch.Generator | None = None) -> State:
        """Return the rows with their unknown entries drawn anew."""
        unknown = {name: rows[index].to(batch[name].device) for name, rows in self.unknown.items()}
        unknown = {name: rows for name, rows in unknown.items() if bool(rows.any())}
        if not unknown or not isinstance(self.model, BoltzmannMachine):
            return batch
        # The known entries as they are now, after a transform.
        start = batch | {
            name: torch.where(rows, self.values[name][index].to(batch[name]), batch[name])
            for name, rows in unknown.items()
        }
        # Layers that all rows hold are conditions; one that some rows lack is held in the others.
        lacking = {name: value.isnan() for name, value in start.items() if bool(value.isnan().any())}
        fixed = {name: value for name, value in start.items() if name not in unknown and name not in lacking}
        law = Conditioned(self.model, fixed) if fixed else self.model
        drawn = {name: start[name] for name in unknown}
        if lacking:
            first = law.initial(len(index), generator=generator)
            drawn |= {name: torch.where(holes, first[name], start[name]) for name, holes in lacking.items()}
        sampler = Gibbs(clamp={name: ~holes for name, holes in (unknown | lacking).items()})
        state = sampler.init(law, drawn, generator=generator)
        state, _ = sampler.step(law, state, generator=generator)
        for name in unknown:
            self.values[name][index] = state[name].to(self.values[name])
        return start | {name: state[name] for name in unknown}
