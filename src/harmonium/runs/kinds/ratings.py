"""Ratings of items by users: what is missing is predicted, and the best of it recommended."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor

from harmonium.data import Data
from harmonium.learning.monitors import RatingError
from harmonium.learning.objectives import LeaveOneOut
from harmonium.models import RatingRBM
from harmonium.runs.choices import HIDDEN
from harmonium.runs.kinds.base import OF_TWO_PHASES, Kind, PanelMaker
from harmonium.runs.outline import few_rows
from harmonium.runs.panels import Bars, Histograms, Lines, Panel
from harmonium.runs.plays import Play, Shelf
from harmonium.runs.settings import Config, Section
from harmonium.runs.subject import Subject
from harmonium.runs.task import Task
from harmonium.runs.trained import Trained
from harmonium.runs.values import Prepared
from harmonium.runs.words import number
from harmonium.samplers import sample

_N_USERS, _N_BEST = 3, 5


class RatingsSettings(Section):
    """What is a row of the machine, and how the field of a row grows with the ratings in it (see `RatingRBM`).

    `scale` names all ratings that may be given; without one they are those that occur.
    """

    scale: str = Field(
        default="", description='Ratings that may be given, such as "1, 2, 3, 4, 5"; default: all there are.'
    )

    rows: Literal["items", "users"] = Field(
        default="items", description="What a row of the machine is: items (one unit a user) or users."
    )
    share: float = Field(
        default=0.35, ge=0, le=1, description="Power of the length of a row that its field is divided by."
    )

    @field_validator("scale")
    @classmethod
    def _numbers(cls, value: str) -> str:
        try:
            levels = [float(word) for word in value.split(",")] if value else []
        except ValueError:
            levels = [math.nan]
        if not all(map(math.isfinite, levels)) or sorted(set(levels)) != levels or len(levels) == 1:
            raise ValueError('must name at least two numbers, each larger than the last, such as "1, 2, 3, 4, 5"')
        return value


class RatingsKind(Kind[RatingsSettings]):
    """A machine over the ratings that are there."""

    name = "ratings"
    summary = "ratings of items by users; predicts missing ones and recommends"
    settings = RatingsSettings
    takes: ClassVar[tuple[str, ...]] = ("ratings",)
    unread = (*OF_TWO_PHASES, "data.binarize", "data.standardize")
    recipes: ClassVar[Mapping[str, dict[str, Any]]] = {
        "*": {
            "model": {"n_hidden": 50, "hidden": "gaussian"},
            "training": {
                "epochs": 12,
                "batch_size": 64,
                "optimizer": "adam",
                "learning_rate": 0.01,
                "schedule": "linear",
                "weight_decay": 1e-5,
            },
        }
    }
    watched: ClassVar[Mapping[str, str]] = {"validation_rmse": "valid RMSE {:.4f}"}

    def values(self, config: Config, data: Data) -> Prepared:
        """Return the tables as they are, all of their ratings on the scale if there is one."""
        scale = tuple(float(word) for word in self.own(config).scale.split(",") if word)
        if not scale:
            return Prepared(data)
        known = torch.cat([x[~x.isnan()] for x in data.splits.values()])
        wrong = known[~torch.isin(known, torch.tensor(scale).to(known))]
        if len(wrong):
            raise ValueError(
                f"{len(wrong)} of {len(known):,} ratings of {data.name} are not on the scale {self.own(config).scale}, "
                f"such as {wrong[0].item():g}. Drop them, or name them in --scale."
            )
        return Prepared(
            dataclasses.replace(
                data, columns=tuple(dataclasses.replace(column, levels=scale) for column in data.columns)
            )
        )

    def outline(self, config: Config, prepared: Prepared) -> Prepared:
        """Return all training ratings: which are there is a condition of those that are drawn."""
        return few_rows(prepared, len(prepared.data.train), 0)

    def build(self, config: Config, data: Data, *, generator: torch.Generator) -> RatingRBM:
        """Return the machine with its biases at the data."""
        own, levels = self.own(config), [float(str(level)) for level in data.columns[0].levels]
        hidden = HIDDEN[config.model.hidden](config.model.n_hidden, config.model.options)
        n_users, n_items = data.train.shape
        model = RatingRBM(n_users, n_items, levels, hidden, rows=own.rows, share=own.share, generator=generator)
        model.start(data.train)
        return model

    def shape(self, model: Any, data: Data) -> tuple[int, ...]:
        """Return the shape of the ratings of one user."""
        return tuple(data.shape)

    def task(self, config: Config, prepared: Prepared, model: Any, *, generator: torch.Generator) -> Task:
        """Return rows that hold a rating, each rating learned from the others of its row, and the error of others."""
        data = prepared.data
        state = model.observed(data.train)
        some = state["rated"].any(1)
        watched = [] if data.valid is None else [RatingError(data.train, data.valid)]
        return Task({name: value[some] for name, value in state.items()}, LeaveOneOut(), [*watched])

    def draw(
        self, trained: Trained, n: int, *, n_steps: int, y: int | None = None, generator: torch.Generator
    ) -> Tensor:
        """Return the ratings of the first `n` users, drawn anew together with those of all users; NaN stays."""
        model, table = trained.model, trained.data.train
        if y is not None or n > len(table):
            raise ValueError(f"Ratings have no classes, and there are {len(table)} users. Got -n {n}.")
        state = model.observed(table)
        given = {name: state[name] for name in model.given}
        drawn = sample(model, len(state["rated"]), n_steps=n_steps, given=given, generator=generator)
        ratings = drawn @ torch.tensor(model.levels).to(drawn)
        ratings = ratings.t() if model.rows == "items" else ratings
        return ratings.masked_fill(table.isnan(), math.nan)[:n]

    def fill_in(self, trained: Trained, given: Tensor, *, n_steps: int, generator: torch.Generator) -> Tensor:
        """Refuse: a missing rating has a law of its own, which `RatingRBM.law_of` gives exactly."""
        raise ValueError("Missing ratings are not drawn but predicted: see the report, or RatingRBM.predict in Python.")

    def plays(self) -> tuple[Play, ...]:
        """Return the ratings of a user, to be changed."""
        return (Shelf(),)

    def scores(self, trained: Trained, *, n_chains: int | None = None, n_betas: int | None = None) -> dict[str, Any]:
        """Return the error of predicted ratings, and how probable the true ones are, given all earlier splits."""
        data, found = trained.data, dict[str, Any]()
        known = data.train
        for split, asked in (("valid", data.valid), ("test", data.test)):
            if asked is not None:
                found[split] = rating_scores(trained.model, known, asked)
                known = torch.where(known.isnan(), asked, known)
        told = "exact for each rating given the others; that of all ratings of a row together needs a Z for each row"
        return {"data": str(data), "note": data.note, "ratings": found, "likelihood": told}

    def lines(self, scores: Mapping[str, Any]) -> list[str]:
        """Return the errors and the nats of single ratings."""
        told = [
            f"{split:>5} RMSE {score['rmse']:.4f} ± {score['error']:.4f}, mean absolute error {score['mae']:.4f}, "
            f"{score['nats']:.4f} ± {score['nats_error']:.4f} nats a rating, of {score['n']:,} ratings; means of users "
            f"and items: RMSE {score['means']:.4f}"
            for split, score in scores["ratings"].items()
        ]
        return [*told, *super().lines(scores)]

    def headline(self, scores: Mapping[str, Any]) -> str:
        """Return the error of the test ratings."""
        found = scores["ratings"].get("test")
        return f"test RMSE {found['rmse']:.4f}" if found else ""

    def verdict(self, scores: Mapping[str, Any]) -> list[str]:
        """Return the errors in sentences."""
        return [
            f"{'Test' if split == 'test' else 'Validation'} ratings are missed by {number(score['rmse'], 4)} ± "
            f"{number(score['error'], 4)} (RMSE); the means of users and items alone miss them by "
            f"{number(score['means'], 4)}. Their mean log-probability, each given the known ratings, is "
            f"{number(score['nats'], 4)} ± {number(score['nats_error'], 4)} nats."
            for split, score in scores["ratings"].items()
        ]

    def sections(self) -> tuple[str | PanelMaker, ...]:
        """Return the error over the epochs, predictions beside the truth, and recommendations."""
        return self.errors, self.predictions, self.recommendations, "parameters"

    def errors(self, subject: Subject) -> Panel | None:
        """Return the error of the validation ratings over the epochs."""
        curve = [r["validation_rmse"] for r in subject.trained.records if "validation_rmse" in r]
        if not curve:
            return None
        scores = (subject.trained.scores or {}).get("ratings", {}).get("valid")
        levels = {"means of users and items": scores["means"]} if scores else {}
        epochs = list(range(1, len(curve) + 1))
        chart = Lines("rmse", "Of held-out ratings.", epochs, {"valid": curve}, "", "epoch", "RMSE", levels)
        return Panel("Learning", "The root of the mean squared error at the end of each epoch.", [chart])

    def predictions(self, subject: Subject) -> Panel | None:
        """Return what is predicted for ratings of each level, of the last split."""
        data, model = subject.data, subject.model
        asked, known = (data.valid, data.train) if data.test is None else (data.test, data.train)
        if asked is None:
            return None
        users, items = (~asked.isnan()).nonzero(as_tuple=True)
        expected, truth = model.predict(known, users, items), asked[users, items]
        sets = {f"rated {level:g}": expected[truth == level] for level in model.levels if bool((truth == level).any())}
        means = {f"{level:g}": expected[truth == level].mean().item() for level in model.levels}
        shown = dict(list(sets.items())[:: max(1, (len(sets) - 1) // 2)])
        pictures = [
            Bars("expected", "The mean prediction for ratings of each level: nearer to the middle.", means, "", "mean"),
            Histograms("predictions", "Predictions for the lowest, middle and highest ratings.", shown, "", "expected"),
        ]
        return Panel("Predictions", "Of ratings that were held out.", [*pictures])

    def recommendations(self, subject: Subject) -> Panel:
        """Return the items that some users should like best."""
        data, model = subject.data, subject.model
        lines = ["The largest expected ratings of the first users, among items not rated in the training data."]
        for user, row in enumerate(data.train[:_N_USERS]):
            n = min(_N_BEST, int(row.isnan().sum()))
            if not n:
                lines.append(f"User {user + 1} has rated every item.")
                continue
            best = model.recommend(data.train, n, [user])[0]
            expected = model.predict(data.train, torch.full_like(best, user), best).tolist()
            named = "; ".join(f"{data.columns[i].name} ({v:.1f})" for v, i in zip(expected, best.tolist(), strict=True))
            lines.append(f"User {user + 1}: {named}.")
        return Panel("Recommendations", "\n".join(lines))


def rating_scores(model: RatingRBM, known: Tensor, asked: Tensor) -> dict[str, Any]:
    """Return errors of predicted ratings with a standard error, nats of the true ones, and the error of plain means."""
    users, items = (~asked.isnan()).nonzero(as_tuple=True)
    truth, law = asked[users, items], model.law_of(known, users, items)
    levels = torch.tensor(model.levels).to(law)
    squares = (law @ levels - truth).square().double()
    rmse, n = squares.mean().sqrt().item(), len(truth)
    right = law[torch.arange(n), (levels == truth[:, None]).long().argmax(1)]
    return {
        "rmse": rmse,
        "error": (squares.std() / (2 * rmse * math.sqrt(n))).item() if n > 1 and rmse else 0.0,
        "mae": (law @ levels - truth).abs().mean().item(),
        "nats": right.log().mean().item(),
        "nats_error": (right.log().double().std() / math.sqrt(n)).item() if n > 1 else 0.0,
        "means": (means_of(known)[users, items] - truth).square().mean().sqrt().item(),
        "n": n,
    }


def means_of(table: Tensor) -> Tensor:
    """Return `μ + b_u + b_i` with damped means of items (25 ratings of prior) and users (10)."""
    there, filled = (~table.isnan()).to(table), table.nan_to_num(0.0)
    mean = filled.sum() / there.sum()
    item = ((filled - mean) * there).sum(0) / (there.sum(0) + 25)
    user = ((filled - mean - item) * there).sum(1) / (there.sum(1) + 10)
    return mean + user[:, None] + item
