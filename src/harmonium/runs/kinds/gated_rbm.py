"""Gated RBMs: how one image of a pair comes from the other."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from harmonium.data import Data, load
from harmonium.evaluation.baselines import independent_log_likelihood
from harmonium.evaluation.classify.softmax_regression import softmax_regression
from harmonium.evaluation.compare import exactly
from harmonium.evaluation.conditional import conditional_log_likelihood
from harmonium.models import GatedRBM
from harmonium.runs.choices import HIDDEN
from harmonium.runs.kinds.base import FOLLOWED, Kind, PanelMaker, monitors, objective
from harmonium.runs.outline import few_rows
from harmonium.runs.panels import ImageRows, Panel
from harmonium.runs.plays import Analogy, Play
from harmonium.runs.settings import Config, Section
from harmonium.runs.subject import Subject
from harmonium.runs.task import Task
from harmonium.runs.trained import Trained
from harmonium.runs.values import Prepared
from harmonium.runs.words import as_dict, number
from harmonium.samplers import sample
from harmonium.units import Spin

_N_SHOWN, _N_CLASSIFIED, _N_KEPT = 12, 10_000, 64


class GatedSettings(Section):
    """How many pairs of filters compare the two images."""

    factors: int = Field(default=300, ge=1, description="Pairs of filters of a gated-rbm.")


class GatedRBMKind(Kind[GatedSettings]):
    """A gated RBM on pairs of binary images, as -1 and 1: the first is given, the second modelled."""

    name = "gated-rbm"
    summary = "RBM of one image given another: learns transformations"
    settings = GatedSettings
    unread = (
        "data.binarize",
        "data.standardize",
        "training.centering",
        *FOLLOWED,
        "run.log_z",
    )
    recipes: ClassVar[Mapping[str, dict[str, Any]]] = {
        "*": {
            "model": {"n_hidden": 100},
            "training": {
                "objective": "cd",
                "epochs": 10,
                "batch_size": 100,
                "optimizer": "adam",
                "learning_rate": 0.003,
                "schedule": "linear",
            },
        },
    }

    def values(self, config: Config, data: Data) -> Prepared:
        """Return pairs with values -1 and 1; restored they are 0 and 1."""
        if data.kind != "binary" or len(data.shape) < 2 or data.shape[0] != 2:
            raise ValueError(
                f"A gated-rbm is for pairs of binary images, of shape (2, …). {data.name} holds {data.kind} data of "
                f"shape {tuple(data.shape)}. Try --data shifted-dots or turned-dots, or a .npy file (n, 2, …) of 0/1."
            )
        parts: dict[str, Any] = {split: 2.0 * x.float() - 1 for split, x in data.splits.items()}
        note = f"as -1 and 1; {data.note}; nats of the second image given the first"
        half = torch.tensor(0.5)
        return Prepared(dataclasses.replace(data, kind="real", levels=None, note=note, **parts), half, half)

    def outline(self, config: Config, prepared: Prepared) -> Prepared:
        """Return a few pairs, from whose inputs samples are drawn."""
        return few_rows(prepared, _N_KEPT, _N_KEPT)

    def build(self, config: Config, data: Data, *, generator: torch.Generator) -> GatedRBM:
        """Return the machine, untrained."""
        n = math.prod(data.shape[1:])
        hidden = HIDDEN[config.model.hidden](config.model.n_hidden, config.model.options)
        return GatedRBM(n, Spin(n), hidden, self.own(config).factors, generator=generator)

    def shape(self, model: GatedRBM, data: Data) -> tuple[int, ...]:
        """Return the shape of a pair of flat images."""
        return (2, *model.layer("output").shape)

    def task(self, config: Config, prepared: Prepared, model: GatedRBM, *, generator: torch.Generator) -> Task:
        """Return pairs as inputs and outputs."""
        rows = prepared.rows("train", self.shape(model, prepared.data))
        if rows is None:
            raise ValueError("There are no pairs to learn from.")
        return Task({"input": rows[:, 0], "output": rows[:, 1]}, objective(config), monitors(config))

    # --- samples ---
    def draw(
        self, trained: Trained, n: int, *, n_steps: int, y: int | None = None, generator: torch.Generator
    ) -> Tensor:
        """Return held-out inputs, each beside an output drawn given it."""
        self.refuse_class(y)
        x = trained.rows("test")
        x = trained.rows("train") if x is None else x
        if x is None:
            raise ValueError("There are no inputs to draw outputs for.")
        first = x[torch.arange(n) % len(x), 0]
        drawn = sample(trained.model, n, n_steps=n_steps, given={"input": first}, generator=generator)
        return torch.stack([first, drawn], 1)

    def fill_in(self, trained: Trained, given: Tensor, *, n_steps: int, generator: torch.Generator) -> Tensor:
        """Return pairs with the missing values of the second image drawn; the first must be whole."""
        known = {"input": given[:, 0], "output": given[:, 1]}
        drawn = sample(trained.model, len(given), n_steps=n_steps, given=known, generator=generator)
        return torch.stack([given[:, 0], drawn], 1)

    def takes_away(self, model: GatedRBM, mask: Tensor) -> Tensor:
        """Return the mask of the second images: the first are conditions."""
        return mask & torch.tensor([False, True]).reshape(2, *(1,) * (mask.ndim - 2)).to(mask.device)

    def images(self, data: Data) -> tuple[int, tuple[int, ...]] | None:
        """Return the two images of a pair."""
        image = pair_image(data)
        return None if image is None else (2, image)

    def plays(self) -> tuple[Play, ...]:
        """Return the transformation of a pair, done to a drawing."""
        return (Analogy(),)

    # --- scores and the report ---
    def scores(self, trained: Trained, *, n_chains: int | None = None, n_betas: int | None = None) -> dict[str, Any]:
        """Return nats of outputs given inputs, and how well a line tells the transformation from the hidden units."""
        data, model, section = trained.data, trained.model, trained.config.run
        generator = torch.Generator().manual_seed(section.seed + 1)
        scores: dict[str, Any] = {"data": str(data), "note": data.note, "accuracy": {}}
        for split in ("valid", "test"):
            x = trained.rows(split)
            if x is not None:
                nats = conditional_log_likelihood(
                    model,
                    {"input": x[:, 0], "output": x[:, 1]},
                    n_chains=n_chains or min(64, section.ais_chains),
                    n_betas=n_betas or min(300, section.ais_betas),
                    generator=generator,
                )
                scores[split] = as_dict(nats) | {"n": nats.n_samples}
        train, test = trained.labeled("train"), trained.labeled("test")
        if train is not None and test is not None:
            untrained = self.build(trained.config, data, generator=generator)
            for name, machine in (("trained", model), ("random weights", untrained)):
                scores["accuracy"][name] = accuracy(machine, train, test)
            law = exactly(independent_log_likelihood(model.layer("output"), test[0][:, 1], train[0][:, 1])).mean()
            scores["baseline"] = {"name": "independent units", "value": law.value, "spread": law.spread}
            nats = scores["test"]  # of some of the pairs, so not in pairs with the law of all
            scores["margin"] = {
                "value": nats["value"] - law.value,
                "error": nats["error"],
                "spread": math.hypot(nats["spread"], law.spread),
            }
        return scores

    def lines(self, scores: Mapping[str, Any]) -> list[str]:
        """Return the accuracies below the nats."""
        found = scores["accuracy"]
        told = [f" test accuracy of the transformation by a line, {name}: {value:.2%}" for name, value in found.items()]
        return [*super().lines(scores), *told]

    def headline(self, scores: Mapping[str, Any]) -> str:
        """Return the accuracy."""
        return f"transformation {scores['accuracy']['trained']:.1%}" if scores["accuracy"] else super().headline(scores)

    def verdict(self, scores: Mapping[str, Any]) -> list[str]:
        """Return how well the transformation is told."""
        found = scores.get("accuracy") or {}
        if not found:
            return []
        mine, control = (number(100 * found[name]) for name in ("trained", "random weights"))
        told = f"A linear classifier tells the transformation from the hidden units in {mine} %"
        return [f"{told}, with random weights in {control} %."]

    def sections(self) -> tuple[str | PanelMaker, ...]:
        """Return curves, analogies and pairs of filters."""
        return "learning", self.analogies, self.filter_pairs, "parameters"

    @torch.no_grad()
    def analogies(self, subject: Subject) -> Panel | None:
        """Return pairs above a digit and what their transformation makes of it."""
        image = pair_image(subject.data)
        if image is None:
            return None
        model, (name, x) = subject.model, subject.held_out
        x = x[:_N_SHOWN]
        digits = digit_inputs(image[-1], len(x)).to(x)
        found = model.apply_analogy(x[:, 0], x[:, 1], digits)
        rows = {"input": x[:, 0], "output": x[:, 1], "digit": digits, "analogy": found}
        shown = {label: ((values + 1) / 2).reshape(-1, *image).cpu() for label, values in rows.items()}
        caption = (
            f"{name.capitalize()} pairs; a digit that was never learned from; the mean output for it and the hidden "
            "units of the pair."
        )
        return Panel(
            "Analogies", "The transformation of a pair applied to a digit.", [ImageRows("analogies", caption, shown)]
        )

    def filter_pairs(self, subject: Subject) -> Panel | None:
        """Return the largest filters of inputs and outputs, a pair in a column."""
        image = pair_image(subject.data)
        if image is None:
            return None
        first, second, third = (filters.detach() for filters in subject.model.coupling.filters)
        strength = first.norm(dim=0) * second.norm(dim=0) * third.norm(dim=0)
        largest = strength.argsort(descending=True)[:_N_SHOWN]
        rows = {}
        for label, filters in (("input", first), ("output", second)):
            part = filters.t()[largest]
            rows[label] = (part / (2 * part.abs().amax(1, keepdim=True)) + 0.5).reshape(-1, *image).cpu()
        caption = "Each column is a factor: the input through one filter times the output through the other."
        return Panel("Filter pairs", "What is compared.", [ImageRows("filter-pairs", caption, rows)])


def pair_image(data: Data) -> tuple[int, int, int] | None:
    """Return the shape of one image of a pair, None if it is none."""
    shape = tuple(data.shape[1:])
    return (1, shape[0], shape[1]) if len(shape) == 2 else None


def digit_inputs(size: int, n: int) -> Tensor:
    """Return `n` handwritten digits, 8x8, at the center of images of this size, as -1 and 1, flat."""
    digits = load("digits", binarize="threshold").train[:n, 0].float()
    before = max(0, (size - digits.shape[-1]) // 2)
    after = size - digits.shape[-1] - before
    return (2 * torch.nn.functional.pad(digits, (before, after, before, after)) - 1).flatten(1)


@torch.no_grad()
def accuracy(model: GatedRBM, train: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]) -> float:
    """Return the share of test pairs whose transformation a linear classifier of the hidden means tells."""
    (x, labels), (z, truth) = ((rows[:_N_CLASSIFIED], y[:_N_CLASSIFIED]) for rows, y in (train, test))
    seen, held_out = model.hidden_mean(x[:, 0], x[:, 1]), model.hidden_mean(z[:, 0], z[:, 1])
    return (softmax_regression((seen, labels), (held_out, truth)) == truth).double().mean().item()
