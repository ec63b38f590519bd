"""Models of sequences: what comes next, films, missing frames."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from harmonium.data import Data
from harmonium.evaluation.autoregression import LinearAutoregression
from harmonium.evaluation.baselines import independent_log_likelihood
from harmonium.evaluation.compare import exactly
from harmonium.evaluation.conditional import conditional_log_likelihood
from harmonium.learning.starts import initialize
from harmonium.models import TemporalRBM
from harmonium.runs.choices import HIDDEN
from harmonium.runs.kinds.base import FOLLOWED, Kind, PanelMaker
from harmonium.runs.kinds.rbm import visible_units
from harmonium.runs.outline import few_rows
from harmonium.runs.panels import Film, ImageRows, Panel
from harmonium.runs.plays import Play, Sequel
from harmonium.runs.settings import Config, Section
from harmonium.runs.subject import Subject
from harmonium.runs.trained import Trained
from harmonium.runs.values import SPLITS, Prepared
from harmonium.runs.words import as_dict, number
from harmonium.samplers.in_time import complete, generate, predict

_N_SCORED, _N_FRAMES, _N_FILMS, _N_STRIP, _N_KEPT = 100, 60, 4, 16, 64
_N_PREDICTED = 200  # steps of the chain behind a prediction


class TemporalSettings(Section):
    """What a frame sees of the past: the last `order` frames, and with `recurrent` a memory of all before."""

    order: int = Field(default=3, ge=0, description="Frames before that a frame is given.")
    recurrent: bool = Field(default=False, description="A memory of all frames before; learns through time.")


class TemporalRBMKind(Kind[TemporalSettings]):
    """A conditional or a recurrent temporal RBM on sequences `(T, *frame)`."""

    name = "temporal-rbm"
    summary = "RBM of each frame of a sequence given those before"
    settings = TemporalSettings
    unread = ("training.centering", *FOLLOWED, "run.log_z")
    recipes: ClassVar[Mapping[str, dict[str, Any]]] = {
        "*": {
            "model": {"n_hidden": 300},
            "training": {
                "objective": "cd",
                "n_steps": 5,
                "epochs": 20,
                "batch_size": 10,
                "optimizer": "adam",
                "learning_rate": 0.003,
                "schedule": "linear",
            },
        },
    }

    def values(self, config: Config, data: Data) -> Prepared:
        """Return sequences: binary ones as they are, real ones standardized by each entry of a frame over all time."""
        if data.kind not in ("binary", "real") or len(data.shape) < 2:
            raise ValueError(
                f"A temporal-rbm is for sequences of binary or real frames, of shape (n_frames, …). {data.name} holds "
                f"{data.kind} data of shape {tuple(data.shape)}. Try --data bouncing-balls, or a .npy file (n, T, …)."
            )
        if data.shape[0] <= self.own(config).order:
            raise ValueError(
                f"Sequences must be longer than order={self.own(config).order}. {data.name} has {data.shape[0]}. "
                "Choose a smaller --order."
            )
        if data.kind == "binary" or not config.data.standardize:
            return Prepared(data)
        mean = data.train.mean((0, 1))
        std = data.train.std((0, 1)).clamp_min(1e-3)
        parts: dict[str, Any] = {split: (x - mean) / std for split, x in data.splits.items()}
        return Prepared(dataclasses.replace(data, **parts), mean, std)

    def outline(self, config: Config, prepared: Prepared) -> Prepared:
        """Return a few sequences, whose beginnings films are drawn from."""
        return few_rows(prepared, _N_KEPT, _N_KEPT)

    def build(self, config: Config, data: Data, *, generator: torch.Generator) -> TemporalRBM:
        """Return the machine, the biases of its frames fitted to the training split."""
        own = self.own(config)
        frames = dataclasses.replace(
            data, train=data.train[:, 0], valid=None, test=None, shape=tuple(data.shape[1:]), train_labels=None,
            valid_labels=None, test_labels=None,
        )  # fmt: skip
        frame = visible_units(frames)
        hidden = HIDDEN[config.model.hidden](config.model.n_hidden, config.model.options)
        model = TemporalRBM(frame, hidden, own.order, recurrent=own.recurrent, generator=generator)
        initialize(model, {"frame": data.train.reshape(len(data.train), -1, *frame.shape)})
        return model

    def shape(self, model: TemporalRBM, data: Data) -> tuple[int, ...]:
        """Return the shape of a sequence with flat frames."""
        return (data.shape[0], *model.layer("frame").shape)

    # --- samples ---
    def draw(
        self, trained: Trained, n: int, *, n_steps: int, y: int | None = None, generator: torch.Generator
    ) -> Tensor:
        """Return films as long as those of the data that begin as held-out ones do, each frame a chain of its own."""
        self.refuse_class(y)
        x = trained.rows("test")
        x = trained.rows("train") if x is None else x
        if x is None:
            raise ValueError("There are no sequences to begin from.")
        first = max(1, trained.model.order)
        start = x[torch.arange(n) % len(x), :first]
        n_frames = trained.shape[0] - first
        film = generate(trained.model, start, n_frames, n_steps=min(n_steps, _N_FRAMES), generator=generator)
        return torch.cat([start, film], 1)

    def fill_in(self, trained: Trained, given: Tensor, *, n_steps: int, generator: torch.Generator) -> Tensor:
        """Return sequences with what is NaN drawn, frame after frame."""
        return complete(trained.model, given, n_steps=min(n_steps, _N_FRAMES), generator=generator)

    def takes_away(self, model: TemporalRBM, mask: Tensor) -> Tensor:
        """Return the mask without the first frames: nothing comes before them."""
        return mask & (torch.arange(mask.shape[1], device=mask.device) >= max(1, model.order)).reshape(
            -1, *(1,) * (mask.ndim - 2)
        )

    def images(self, data: Data) -> tuple[int, tuple[int, ...]] | None:
        """Return the frames of a film."""
        image = frame_image(data)
        return None if image is None else (data.shape[0], image)

    def plays(self) -> tuple[Play, ...]:
        """Return the film that goes on."""
        return (Sequel(),)

    # --- scores and the report ---
    def scores(self, trained: Trained, *, n_chains: int | None = None, n_betas: int | None = None) -> dict[str, Any]:
        """Return squared prediction errors a frame, beside simple ones, and nats of frames given those before."""
        data, model, section = trained.data, trained.model, trained.config.run
        generator = torch.Generator().manual_seed(section.seed + 1)
        scores: dict[str, Any] = {"data": str(data), "note": f"{data.note}; nats of a frame given those before"}
        rows = {split: x for split in SPLITS if (x := trained.rows(split)) is not None}
        order = max(1, model.order)
        line = LinearAutoregression.fitted(rows["train"], rows.get("valid", rows["train"]), order)
        scores["prediction"] = {}
        for split, x in rows.items():
            if split != "train":
                x = x[:_N_SCORED]
                found = predict(model, x, n_steps=_N_PREDICTED, generator=generator)
                scores["prediction"][split] = {
                    "model": squared_errors(found[:, order - model.order :], x[:, order:]),
                    "linear": squared_errors(line.predict(x), x[:, order:]),
                    "last": squared_errors(x[:, order - 1 : -1], x[:, order:]),
                    "ridge": line.ridge,
                    "order": order,
                    "n": len(x),
                }
                nats = conditional_log_likelihood(
                    model,
                    x,
                    n_chains=n_chains or min(64, section.ais_chains),
                    n_betas=n_betas or min(300, section.ais_betas),
                    generator=generator,
                )
                scores[split] = as_dict(nats) | {"n": nats.n_samples}
        if data.kind == "binary" and "test" in rows:
            frames, known = (rows[split].flatten(end_dim=1) for split in ("test", "train"))
            law = exactly(independent_log_likelihood(model.layer(model.data_layer), frames, known)).mean()
            scores["baseline"] = {"name": "independent units", "value": law.value, "spread": law.spread}
            nats = scores["test"]  # of all frames but the first ones, so not in pairs
            scores["margin"] = {
                "value": nats["value"] - law.value,
                "error": nats["error"],
                "spread": math.hypot(nats["spread"], law.spread),
            }
        return scores

    def lines(self, scores: Mapping[str, Any]) -> list[str]:
        """Return the prediction errors below the nats."""
        lines = super().lines(scores)
        for split, found in scores["prediction"].items():
            lines.append(
                f"{split:>5} squared prediction error a frame  {found['model']['value']:.3f} ± "
                f"{found['model']['error']:.3f}; linear autoregression of order {found['order']} (ridge "
                f"{found['ridge']:g}) {found['linear']['value']:.3f}, the last frame {found['last']['value']:.3f}"
            )
        return lines

    def headline(self, scores: Mapping[str, Any]) -> str:
        """Return the prediction error."""
        found = scores["prediction"].get("test")
        return f"error a frame {found['model']['value']:.3f}, linear {found['linear']['value']:.3f}" if found else ""

    def verdict(self, scores: Mapping[str, Any]) -> list[str]:
        """Return how much better than a line it predicts."""
        found = (scores.get("prediction") or {}).get("test")
        if not found:
            return []
        less = 100 * (1 - found["model"]["value"] / found["linear"]["value"])
        told, where = number(found["model"]["value"], 3), "below" if less > 0 else "above"
        line = f"a linear autoregression of order {found['order']}"
        return [f"The squared error of the next frame is {told}, {number(abs(less), 2)} % {where} {line}."]

    def size(self, config: Config) -> str:
        """Return the number of hidden units, the order, and whether there is a memory."""
        own = self.own(config)
        return f"{config.model.n_hidden}, order {own.order}{', recurrent' if own.recurrent else ''}"

    def sections(self) -> tuple[str | PanelMaker, ...]:
        """Return curves, predictions, films."""
        return "learning", self.predictions, self.films, "parameters"

    def predictions(self, subject: Subject) -> Panel | None:
        """Return a held-out film above the prediction of each of its frames, and what is missing filled in."""
        image = frame_image(subject.data)
        if image is None:
            return None
        model, (name, x) = subject.model, subject.held_out
        x, first = x[:1], max(1, model.order)
        found = predict(model, x, generator=subject.generator)[:, first - model.order :]
        holed = x.clone()
        holed[:, first + 2 : first + 7] = math.nan
        filled = complete(model, holed, generator=subject.generator)
        rows = {
            "film": x[0, first:],
            "predicted": found[0],
            "known": holed[0, first:],
            "filled in": filled[0, first:],
        }
        shown = {label: _images(subject, film, image)[:_N_STRIP] for label, film in rows.items()}
        caption = (
            f"A {name} film; the mean of each frame given those before; five frames taken away; these drawn, "
            "given the frames before them."
        )
        return Panel("Prediction", "What comes next.", [ImageRows("predictions", caption, shown)])

    def films(self, subject: Subject) -> Panel | None:
        """Return free generation as a film strip and as an animation."""
        image = frame_image(subject.data)
        if image is None:
            return None
        model, (_, x) = subject.model, subject.held_out
        start = x[:_N_FILMS, : max(1, model.order)]
        film = generate(model, start, _N_FRAMES, generator=subject.generator)
        films = torch.cat([start, film], 1)
        strip = {f"film {i + 1}": _images(subject, one, image)[::2][:_N_STRIP] for i, one in enumerate(films)}
        first = f"The first {start.shape[1]} frames are given, the rest are drawn, each given those before."
        pictures = [
            ImageRows("strip", f"{first} Every second frame.", strip),
            Film("film", first, torch.stack([_images(subject, one, image) for one in films])),
        ]
        return Panel("Films", "Free generation: drawn values, not their means. Nothing was selected.", pictures)


def frame_image(data: Data) -> tuple[int, int, int] | None:
    """Return the shape of a frame as an image, None if it is none."""
    shape = tuple(data.shape[1:])
    full = (1, *shape) if len(shape) == 2 else shape
    return (full[0], full[1], full[2]) if len(full) == 3 and full[0] in (1, 3) else None


def squared_errors(found: Tensor, x: Tensor) -> dict[str, float]:
    """Return the mean squared error of a frame, and its standard error over sequences."""
    each = (found - x).square().flatten(2).sum(2).mean(1)
    return {"value": each.mean().item(), "error": (each.std() / math.sqrt(len(each))).item()}


def _images(subject: Subject, film: Tensor, image: tuple[int, int, int]) -> Tensor:
    """Return flat frames of one film as images in [0, 1], by the range of the data where they are real."""
    frames = film.detach().reshape(-1, *image).cpu()
    if subject.data.kind == "binary":
        return frames
    low, high = subject.train.aminmax()
    return (frames - low) / (high - low)
