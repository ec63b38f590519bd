"""Chains that move: pictures, or points in the plane, step after step, at any temperature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine, ClassRBM, Tempered
from harmonium.models.frozen import frozen
from harmonium.models.layers import data_layer
from harmonium.runs.plays.base import MAX_STEPS, Move, Play, Seen, Session, count, flag, number
from harmonium.runs.plays.images import shown
from harmonium.runs.trained import Trained
from harmonium.samplers.sample import starting_points
from harmonium.types import EnergyModel

N_CHAINS = 25


class Chains(Play):
    """Independent chains from where those of the model start; `label` holds their class, `means` shows E[x | h].

    A move of `steps` steps at inverse temperature `beta` (β = 1 is the model, β = 0 chance) goes on from the last, or,
    with `restart`, from new starts.
    """

    name = "chains"
    moving = True

    def suits(self, trained: Trained) -> bool:
        """Return whether the samples are images and the model has chains."""
        return trained.image is not None and can_step(trained.model)

    def opening(self, trained: Trained) -> Seen:
        """Return how many classes can be held, whether the chains can be heated, and whether there are means."""
        machine = isinstance(trained.model, BoltzmannMachine)
        classes = trained.model.n_classes if isinstance(trained.model, ClassRBM) else 0
        return {
            "classes": classes,
            "tempered": machine,
            "means": machine and len(trained.model.layers) > 1,
            "origin": trained.origin,
        }

    def watched(self, trained: Trained, session: Session, is_new: bool) -> Move:
        """Return one step, a few after a checkpoint, and many at the start; means are shown where there are any."""
        steps = 100 if not session.state else 5 if is_new else 1
        return {"steps": steps, "means": bool(self.opening(trained)["means"])}

    @torch.no_grad()
    def move(self, trained: Trained, session: Session, move: Move) -> Seen:
        """Make the steps and return where the chains are."""
        n = count(move, "n", 1, 100, N_CHAINS)
        label = held_label(trained.model, move)
        if flag(move, "restart") or not session.state or session.memory.get("setup") != (n, label):
            start_chains(trained, session, n, {} if label is None else {"label": label})
            session.memory["setup"] = (n, label)
        done = step_chains(trained, session, move, clamp={} if label is None else {"label": True})
        session.memory["steps"] = session.memory.get("steps", 0) + done
        x = session.state[data_layer(trained.model)]
        if flag(move, "means") and isinstance(trained.model, BoltzmannMachine):
            x = trained.model.mean(trained.model.data_layer, session.state)
        return {"images": shown(trained, x), "steps": session.memory["steps"]}


class Samples(Play):
    """Samples of a model that has no chains of its own to follow: drawn anew at every move, by its kind's `draw`."""

    name = "samples"

    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def suits(self, trained: Trained) -> bool:
        """Return whether the samples are images."""
        return trained.image is not None

    def watched(self, trained: Trained, session: Session, is_new: bool) -> Move:
        """Return a draw as any other."""
        return {}

    def move(self, trained: Trained, session: Session, move: Move) -> Seen:
        """Return the ends of new chains."""
        n, n_steps = count(move, "n", 1, 100, N_CHAINS), count(move, "steps", 1, MAX_STEPS, 100)
        return {"images": shown(trained, self.draw(trained, n, n_steps=n_steps, generator=session.generator))}


def can_step(model: object) -> bool:
    """Return whether chains of a model move its data: a machine without conditions, or another energy."""
    return isinstance(model, EnergyModel) and not (isinstance(model, BoltzmannMachine) and model.given)


def held_label(model: object, move: Move) -> int | None:
    """Return the class that a move holds, or None."""
    if move.get("label") is None:
        return None
    if not isinstance(model, ClassRBM):
        raise ValueError("This model has no label to be held.")
    return count(move, "label", 0, model.n_classes - 1, 0)


def start_chains(trained: Trained, session: Session, n: int, given: Mapping[str, Any]) -> None:
    """Put `n` new chains into a session, with some layers at given values."""
    model = trained.model
    start = trained.start(n, generator=session.generator)
    x = starting_points(model, n, generator=session.generator) if start is None else start
    state: Any = x
    if given:
        state = {data_layer(model): x} | {name: torch.full((n,), value) for name, value in given.items()}
    session.state = trained.sampler.init(model, state, generator=session.generator)
    session.memory["steps"] = 0


def step_chains(
    trained: Trained, session: Session, move: Move, *, clamp: Mapping[str, Tensor | bool], n_steps: int | None = None
) -> int:
    """Make the steps of a move, as many as there is time for, and return how many."""
    model, wanted = trained.model, count(move, "steps", 0, MAX_STEPS, 1) if n_steps is None else n_steps
    beta = number(move, "beta", 0.0, 1.0, 1.0)
    law: Any = model
    if isinstance(model, BoltzmannMachine) and beta < 1:
        law = Tempered(model, beta)
    sampler = replace(trained.sampler, clamp=dict(clamp))
    done = 0
    with frozen(model):
        while done < wanted and (session.has_time() or not done):
            session.state, _ = sampler.step(law, session.state, generator=session.generator)
            done += 1
    _check_finite(session)
    return done


def _check_finite(session: Session) -> None:
    if not all(bool(value.isfinite().all()) for value in session.state.values()):
        session.state = {}
        raise ValueError("The chains ran away to infinity: this model has no proper law. Start again.")
