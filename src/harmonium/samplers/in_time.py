"""Sequences drawn frame by frame: what comes next, films, missing frames."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.models import Conditioned, TemporalRBM
from harmonium.samplers.gibbs import Gibbs
from harmonium.types import State, Values, as_tensor, keep_freed_memory


@torch.no_grad()
def predict(
    model: TemporalRBM, sequences: Values, *, n_steps: int = 60, generator: torch.Generator | None = None
) -> Tensor:
    """Return `E[v_t | frames before]` for each frame with a whole past, `(*batch, T - order, *frame)`.

    A Gibbs chain for each frame starts at the one before; the means of the frame given its hidden units are averaged
    over the second half of its steps.
    """
    keep_freed_memory()
    _check_count(n_steps, "n_steps")
    state = model.state(sequences)
    frames = state["frame"]
    conditions = {name: state[name] for name in model.given}
    law, gibbs = Conditioned(model, conditions), Gibbs()
    chains = gibbs.init(law, {"frame": _before(model, frames, conditions)}, generator=generator)
    total, n_kept = torch.zeros_like(frames), 0
    for i in range(n_steps):
        chains, _ = gibbs.step(law, chains, generator=generator)
        if 2 * i >= n_steps:
            total += law.mean("frame", chains)
            n_kept += 1
    return total / n_kept


@torch.no_grad()
def generate(
    model: TemporalRBM,
    start: Values,
    n_frames: int,
    *,
    n_steps: int = 60,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw the `n_frames` frames that follow sequences, each given those before it: `(*batch, n_frames, *frame)`.

    `start`, `(*batch, T, *frame)`, has at least as many frames as the order. Each frame is the end of a Gibbs chain
    that starts at the frame before.
    """
    _check_count(n_frames, "n_frames")
    _check_count(n_steps, "n_steps")
    begin = model.layer("frame").encoded(as_tensor(start, like=model._some_parameter()), like=model._some_parameter())
    axis = begin.ndim - len(model.layer("frame").shape) - 1
    conditions, film = model.conditions(begin), []
    frame = begin.select(axis, -1)
    for _ in range(n_frames):
        frame = draw_frame(model, conditions, frame, None, n_steps, generator=generator)
        conditions = following(model, frame, conditions)
        film.append(frame)
    return torch.stack(film, axis)


@torch.no_grad()
def complete(
    model: TemporalRBM, sequences: Values, *, n_steps: int = 60, generator: torch.Generator | None = None
) -> Tensor:
    """Return sequences `(n, T, *frame)` with their missing values (NaN) drawn, frame after frame.

    A value is drawn given the known values of its frame and all frames before, which may have been drawn themselves.
    Frames that come later are not looked at: they would need the normalizer of every frame that they follow.
    """
    _check_count(n_steps, "n_steps")
    some = model._some_parameter()
    film = model.layer("frame").encoded(as_tensor(sequences, like=some), like=some).clone()
    first = max(1, model.order)
    if film.ndim != len(model.layer("frame").shape) + 2 or film.shape[1] <= first:
        raise ValueError(
            f"Sequences must be (n, n_frames, *frame) with more than {first} frames for order={model.order}. "
            f"Got {tuple(film.shape)}."
        )
    if bool(film[:, :first].isnan().any()):
        raise ValueError(
            f"The first {first} frames must be known: nothing comes before them. They hold NaN. Start later, or fill "
            "them in by other means."
        )
    conditions = model.conditions(film[:, :first])
    for t in range(first, film.shape[1]):
        known = ~film[:, t].isnan()
        if not bool(known.all()):
            begin = torch.where(known, film[:, t].nan_to_num(), film[:, t - 1])
            film[:, t] = draw_frame(model, conditions, begin, known, n_steps, generator=generator)
        conditions = following(model, film[:, t], conditions)
    return film


def draw_frame(
    model: TemporalRBM,
    conditions: State,
    begin: Tensor,
    known: Tensor | None,
    n_steps: int,
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Return the end of a chain that starts at `begin`, `known` values held."""
    gibbs = Gibbs() if known is None else Gibbs(clamp={"frame": known})
    law = Conditioned(model, conditions)
    chains = gibbs.init(law, {"frame": begin}, generator=generator)
    for _ in range(n_steps):
        chains, _ = gibbs.step(law, chains, generator=generator)
    return chains["frame"]


def following(model: TemporalRBM, frame: Tensor, conditions: State) -> State:
    """Return the conditions of the next frame."""
    found: State = {}
    if "past" in conditions:
        axis = frame.ndim - len(model.layer("frame").shape)
        found["past"] = torch.cat([conditions["past"].narrow(axis, 1, model.order - 1), frame.unsqueeze(axis)], axis)
    if "memory" in conditions:
        found["memory"] = model.mean("hidden", {"frame": frame, **conditions})
    return found


def _check_count(value: int, name: str) -> None:
    """Raise unless it is at least 1."""
    if value < 1:
        raise ValueError(f"`{name}` must be at least 1. Got {value}.")


def _before(model: TemporalRBM, frames: Tensor, conditions: State) -> Tensor:
    """Return the frame before each: the last of its past, or what the biases say where there is none."""
    if "past" in conditions:
        axis = frames.ndim - len(model.layer("frame").shape)
        return conditions["past"].select(axis, -1)
    units = model.layer("frame")
    return units.mode(model.bias_field("frame")).expand_as(frames)
