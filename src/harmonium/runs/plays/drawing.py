"""A drawing: what the hidden units say of it, how probable it is, and what the model puts where nothing is known."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from harmonium.inference import MeanField
from harmonium.models import JEM, BoltzmannMachine, ClassRBM
from harmonium.models.class_log_probabilities import class_log_probabilities
from harmonium.models.layers import data_layer
from harmonium.runs.plays.base import Move, Play, Seen, Session, flag
from harmonium.runs.plays.chains import can_step, held_label, step_chains
from harmonium.runs.plays.images import examples, from_bytes, read, shown, to_bytes
from harmonium.runs.trained import Trained
from harmonium.samplers.sample import starting_points
from harmonium.types import EnergyModel

N_EXAMPLES, N_HIDDEN = 24, 2048
_N_ROWS = 128


class Drawing(Play):
    """A drawing is given to the model: hidden units answer, the free energy and the classes change.

    A move has the drawing, `x`, and may have which pixels are `known` and a `label` that is held. With `steps` a chain
    goes on from the drawing with those held; `fresh` draws the other pixels by their biases first.
    """

    name = "drawing"

    def suits(self, trained: Trained) -> bool:
        """Return whether the data are images, and the model says something of one image."""
        model = trained.model
        return trained.image is not None and (can_step(model) or isinstance(model, torch.nn.Sequential))

    def opening(self, trained: Trained) -> Seen:
        """Return samples to start from, what can be seen and done, and the free energies of data for comparison."""
        model = trained.model
        x, labels = examples(trained, _N_ROWS)
        seen: Seen = {"examples": shown(trained, x[:N_EXAMPLES]), "can_fill": can_step(model)}
        seen["labels"] = None if labels is None else labels[:N_EXAMPLES]
        seen["can_hold_label"] = isinstance(model, ClassRBM)
        seen["tempered"] = isinstance(model, BoltzmannMachine)
        free = free_energies(model, x)
        if free is not None:
            quantiles = free.double().quantile(torch.tensor([0.05, 0.5, 0.95], dtype=torch.float64))
            seen["free_energies"] = quantiles.tolist()
        return seen

    @torch.no_grad()
    def move(self, trained: Trained, session: Session, move: Move) -> Seen:
        """Return what the model says of the drawing, and the drawing after the steps."""
        model = trained.model
        x = read(trained, move, "x")
        label = held_label(model, move)
        done = 0
        if move.get("steps"):
            x, done = self._filled(trained, session, move, x, label)
        seen: Seen = {"image": shown(trained, x), "steps": done}
        if isinstance(model, ClassRBM | JEM | torch.nn.Sequential):
            seen["classes"] = class_log_probabilities(model, x)[0].exp().tolist()
        free = free_energies(model, x)
        if free is not None:
            seen["free_energy"] = free[0].item()
        if isinstance(model, BoltzmannMachine) and len(model.layers) > 1:
            state = answers(model, x, label)
            seen["hidden"] = {name: activity(state[name]) for name in model.layers if name not in _shown_apart(model)}
            seen["mean"] = shown(trained, model.mean(model.data_layer, state))
        return seen

    def _filled(
        self, trained: Trained, session: Session, move: Move, x: Tensor, label: int | None
    ) -> tuple[Tensor, int]:
        model, layer = trained.model, data_layer(trained.model)
        if not can_step(model):
            raise ValueError("This model has no chains: it cannot fill in.")
        known = torch.zeros_like(x, dtype=torch.bool)
        if move.get("known") is not None:
            known = (from_bytes(move, "known", x.numel()) >= 0.5).reshape(x.shape)
        if flag(move, "fresh"):
            x = torch.where(known, x, starting_points(model, 1, generator=session.generator).to(x))
        last = session.state.get(layer)
        if last is None or not torch.equal(last, x) or session.memory.get("label") != label:
            start: Any = x if label is None else {layer: x, "label": torch.tensor([label])}
            session.state = trained.sampler.init(model, start, generator=session.generator)
            session.memory["label"] = label
        held: dict[str, Tensor | bool] = {layer: known} if bool(known.any()) else {}
        if label is not None:
            held["label"] = True
        done = step_chains(trained, session, move, clamp=held)
        return session.state[layer], done


def _shown_apart(model: BoltzmannMachine) -> tuple[str, ...]:
    return model.data_layer, "label"


def answers(machine: BoltzmannMachine, x: Tensor, label: int | None) -> dict[str, Tensor]:
    """Return the hidden layers at their means given data: exact where they can be summed out, else by mean field."""
    known: dict[str, Any] = {machine.data_layer: x}
    if label is not None:
        known["label"] = torch.tensor([label])
    try:
        return machine.infer(known)
    except ValueError:  # hidden layers that are tied to each other
        return MeanField().fixed_point(machine, machine.state(known)).state


def free_energies(model: object, x: Tensor) -> Tensor | None:
    """Return the free energy of each sample, or None where it has no closed form."""
    if not isinstance(model, EnergyModel):
        return None
    try:
        return model.free_energy(x).detach()
    except ValueError:
        return None


def activity(mean: Tensor) -> Seen:
    """Return the means of one layer as bytes, from its least to its largest value; 0 to 1 where they are shares."""
    values = mean.flatten()[:N_HIDDEN].float()
    low, high = (0.0, 1.0) if values.min() >= 0 and values.max() <= 1 else (values.min().item(), values.max().item())
    return {"n": len(values), "of": mean.numel(), "low": low, "high": high,
            "values": to_bytes(values, (low, high if high > low else low + 1))}  # fmt: skip
