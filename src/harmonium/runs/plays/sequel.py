"""A film that goes on: each frame is drawn given those before it, beside the film as it truly went."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from harmonium.models import TemporalRBM
from harmonium.runs.plays.base import Move, Play, Seen, Session, count, flag
from harmonium.runs.plays.images import has_image_parts, shown_parts
from harmonium.runs.trained import Trained
from harmonium.samplers.in_time import draw_frame, following

N_FILMS, MAX_FRAMES, N_STEPS = 24, 60, 60
"""Films to begin as, frames of one move, and steps of the chain behind a frame."""


class Sequel(Play):
    """Frame after frame from `p(v_t | frames before)`, from the first frames of a held-out film on.

    A move draws `frames` more frames of the film that begins as number `film` does; `restart` goes back to its start.
    """

    name = "sequel"
    moving = True

    def suits(self, trained: Trained) -> bool:
        """Return whether frames are images."""
        return isinstance(trained.model, TemporalRBM) and has_image_parts(trained)

    def opening(self, trained: Trained) -> Seen:
        """Return the last given frame of each film, and how many frames are given."""
        first = n_given(trained)
        return {"starts": shown_parts(trained, films(trained)[:, first - 1]), "given": first}

    def watched(self, trained: Trained, session: Session, is_new: bool) -> Move:
        """Return the next frame; after a checkpoint the film begins anew."""
        return {"frames": 1, "restart": is_new}

    @torch.no_grad()
    def move(self, trained: Trained, session: Session, move: Move) -> Seen:
        """Return the frames that were drawn, those that truly came at their times, and the number of the last."""
        known, model, first = films(trained), trained.model, n_given(trained)
        chosen, wanted = count(move, "film", 0, len(known) - 1, 0), count(move, "frames", 0, MAX_FRAMES, 1)
        if flag(move, "restart") or session.memory.get("film") != chosen or "frame" not in session.state:
            begin = known[chosen : chosen + 1, :first]
            session.state = {"frame": begin[:, -1], **model.conditions(begin)}
            session.memory |= {"film": chosen, "n": first}
        drawn: list[Tensor] = []
        while len(drawn) < wanted and (session.has_time() or not drawn):
            conditions = {name: session.state[name] for name in model.given}
            frame = draw_frame(model, conditions, session.state["frame"], None, N_STEPS, generator=session.generator)
            session.state = {"frame": frame, **following(model, frame, conditions)}
            drawn.append(frame)
        before, session.memory["n"] = session.memory["n"], session.memory["n"] + len(drawn)
        if not drawn:  # only looked at: the last frame
            drawn, before = [session.state["frame"]], before - 1
        truth = known[chosen, before : before + len(drawn)]
        return {
            "images": shown_parts(trained, torch.cat(drawn)),
            "truth": shown_parts(trained, truth) if len(truth) else None,
            "frame": session.memory["n"],
        }


def films(trained: Trained) -> Tensor:
    """Return held-out films, training ones where there are no others."""
    held_out = trained.rows("test")
    found: Any = trained.rows("train") if held_out is None else held_out
    return found[:N_FILMS]


def n_given(trained: Trained) -> int:
    """Return how many frames of a film are given."""
    return max(1, trained.model.order)
