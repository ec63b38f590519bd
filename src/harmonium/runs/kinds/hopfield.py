"""Hopfield networks: patterns are stored, not learned, and the report shows how they come back."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from harmonium.data import Data
from harmonium.draws import draw_uniform
from harmonium.models import DenseHopfield, Hopfield
from harmonium.models.associative_memory import AssociativeMemory
from harmonium.runs.kinds.base import FOLLOWED, Kind, PanelMaker
from harmonium.runs.outline import few_rows
from harmonium.runs.panels import ImageGrid, Lines, Panel, Shown
from harmonium.runs.plays import Memory, Play
from harmonium.runs.scores import machine_scores
from harmonium.runs.settings import Config, Section
from harmonium.runs.subject import Subject
from harmonium.runs.trained import Trained
from harmonium.runs.values import Prepared

RECALLED = 0.95
"""The overlap with its pattern above which a cue counts as recalled."""

_NOISE = (0.1, 0.2, 0.3, 0.4)
_N_CUES, _N_SHOWN, _N_SWEEPS = 200, 10, 30
_FEW_TO_ANNEAL = 100  # up to here log Z of the network is estimated without being asked


class HopfieldSettings(Section):
    """Which patterns are stored, and how: `rule` as in `Hopfield.store`, or "dense" with interactions of `order`."""

    rule: Literal["hebb", "storkey", "pseudo-inverse", "dense"] = Field(
        default="pseudo-inverse", description="How patterns are stored: hebb, storkey, pseudo-inverse or dense."
    )
    order: int = Field(default=3, ge=2, description="Spins that interact at once, of --rule dense.")
    n_patterns: int = Field(
        default=10, ge=1, description="Training samples that are stored, in turn of each class where there are classes."
    )


class HopfieldKind(Kind[HopfieldSettings]):
    """An associative memory; with `training.epochs` it goes on to learn the stored patterns as a Boltzmann machine."""

    name = "hopfield"
    summary = "Hopfield network; stores binary patterns and completes them"
    settings = HopfieldSettings
    unread = (
        "data.standardize",
        "model.n_hidden",
        "model.hidden",
        "model.options",
        *FOLLOWED,
    )
    recipes: ClassVar[Mapping[str, dict[str, Any]]] = {"*": {"training": {"epochs": 0, "track_likelihood": False}}}

    def values(self, config: Config, data: Data) -> Prepared:
        """Return patterns of -1 and 1, the training samples reduced to those that are stored."""
        if config.data.binarize in ("scale", "resample") or data.kind != "binary":
            raise ValueError(
                f"A Hopfield network stores patterns of two values. {data.name} holds {data.kind} data"
                + (f", binarize = {config.data.binarize!r}" if config.data.binarize != "none" else "")
                + ". Choose binary data, or gray images with --binarize threshold or sample."
            )
        chosen, n = stored_rows(data), self.own(config).n_patterns
        if n > len(data.train):
            raise ValueError(f"There are {len(data.train):,} training samples of {data.name}, and n_patterns is {n}.")
        parts: dict[str, Any] = {split: x.float() * 2 - 1 for split, x in data.splits.items()}
        parts["train"] = parts["train"][chosen[:n]]
        if data.train_labels is not None:
            parts["train_labels"] = data.train_labels[chosen[:n]]
        note = f"as −1 and 1, {n} training samples stored; {data.note}"
        half = torch.tensor(0.5)
        return Prepared(dataclasses.replace(data, note=note, **parts), half, half)

    def outline(self, config: Config, prepared: Prepared) -> Prepared:
        """Return the patterns that are stored."""
        return few_rows(prepared, len(prepared.data.train), 0)

    def build(self, config: Config, data: Data, *, generator: torch.Generator) -> AssociativeMemory:
        """Return the network with the patterns in it."""
        return self._stored(config, data.train.flatten(1))

    def _stored(self, config: Config, patterns: Tensor) -> AssociativeMemory:
        own = self.own(config)
        if own.rule == "dense":
            return DenseHopfield.store(patterns, own.order)
        return Hopfield.store(patterns, own.rule)

    def plays(self) -> tuple[Play, ...]:
        """Return the memory to play with."""
        return (Memory(lambda trained, patterns: self._stored(trained.config, patterns)),)

    def scores(self, trained: Trained, *, n_chains: int | None = None, n_betas: int | None = None) -> dict[str, Any]:
        """Return how well patterns come back from flipped units, and the log-likelihoods of any machine.

        log Z of more than 100 units is only tried when it is asked for.
        """
        generator = torch.Generator().manual_seed(trained.config.run.seed + 1)
        scores: dict[str, Any] = {"data": str(trained.data), "note": trained.data.note, "recall": {}}
        patterns = _stored(trained)
        for share in _NOISE:
            truth = patterns[torch.arange(max(_N_CUES, len(patterns))) % len(patterns)]
            ends = trained.model.recall(flipped(truth, share, generator=generator), generator=generator)
            overlap = (ends * truth).double().mean(1)
            scores["recall"][f"{share:.0%}"] = {
                "overlap": overlap.mean().item(),
                "error": (overlap.std() / math.sqrt(len(overlap))).item(),
                "recalled": (overlap > RECALLED).double().mean().item(),
                "n": len(overlap),
            }
        n_units = patterns.shape[1]
        if n_units > _FEW_TO_ANNEAL and n_chains is None and n_betas is None:
            return scores | {
                "likelihood": f"not tried: log Z of {n_units} units takes minutes. Ask for it with: harmonium evaluate "
                "RUN --n-betas 1000"
            }
        found = machine_scores(trained, n_chains=n_chains, n_betas=n_betas)
        for name in ("baseline", "baselines", "margin"):  # laws fitted to a handful of patterns say nothing
            found.pop(name, None)
        return found | scores

    def lines(self, scores: Mapping[str, Any]) -> list[str]:
        """Return what comes back, and the log-likelihoods."""
        told = [
            f"recall with {share.replace('%', ' %')} of the units flipped: overlap {score['overlap']:.3f} ± "
            f"{score['error']:.3f}, above {RECALLED} for {score['recalled']:.0%} of {score['n']} cues"
            for share, score in scores["recall"].items()
        ]
        return [*told, *super().lines(scores)]

    def headline(self, scores: Mapping[str, Any]) -> str:
        """Return how many cues come back from a fifth of the units flipped."""
        return f"recalls {scores['recall']['20%']['recalled']:.0%} from 20 % noise" if "recall" in scores else ""

    def verdict(self, scores: Mapping[str, Any]) -> list[str]:
        """Return what comes back, in a sentence."""
        told = ", ".join(
            f"{score['recalled']:.0%} from {share.replace('%', ' %')}" for share, score in scores["recall"].items()
        )
        return [f"Patterns come back with an overlap above {RECALLED} from flipped units: {told}."]

    def size(self, config: Config) -> str:
        """Return the number of patterns."""
        return f"{self.own(config).n_patterns} patterns"

    def sections(self) -> tuple[str | PanelMaker, ...]:
        """Return recall in pictures and in curves, and what any machine shows."""
        return "learning", self.recalled, self.completed, self.descent, "energies", "parameters"

    def recalled(self, subject: Subject) -> Panel | None:
        """Return stored patterns, corrupted ones, and where each network step takes them."""
        if subject.image is None:
            return None
        patterns = _stored(subject.trained)[:_N_SHOWN]
        cues = flipped(patterns, 0.25, generator=subject.generator)
        pictures: list[Shown] = [
            ImageGrid(
                "recall",
                "From above: stored patterns, a quarter of their units flipped, after one sweep, and at the end of "
                "recall at zero temperature.",
                self._rows(subject, patterns, cues),
                len(patterns),
            )
        ]
        drawn = subject.model.recall(
            flipped(patterns, 0.5, generator=subject.generator),
            beta=1.0,
            n_steps=_N_SWEEPS,
            generator=subject.generator,
        )
        caption = (
            f"Drawn from e^(−E), {_N_SWEEPS} sweeps at β = 1 from random spins: at this temperature states are noisy."
        )
        pictures.append(ImageGrid("drawn", caption, subject.shown(drawn), len(patterns)))
        return Panel("Recall", "What the network makes of corrupted patterns. Nothing was selected.", pictures)

    def completed(self, subject: Subject) -> Panel | None:
        """Return patterns whose lower half was hidden by noise."""
        if subject.image is None:
            return None
        patterns = _stored(subject.trained)[:_N_SHOWN]
        images = patterns.reshape(len(patterns), *subject.image)
        noise = flipped(images, 0.5, generator=subject.generator)
        below = torch.arange(subject.image[-2])[:, None] >= subject.image[-2] // 2
        cues = torch.where(below, noise, images).reshape(patterns.shape)
        caption = "From above: stored patterns, their lower half replaced by noise, after one sweep, at the end."
        grid = ImageGrid("completion", caption, self._rows(subject, patterns, cues), len(patterns))
        return Panel("Completion", "A part brings back the whole.", [grid])

    def _rows(self, subject: Subject, patterns: Tensor, cues: Tensor) -> Tensor:
        first = subject.model.recall(cues, n_steps=1, generator=subject.generator)
        end = subject.model.recall(first, generator=subject.generator)
        return subject.shown(torch.cat([patterns, cues, first, end]))

    def descent(self, subject: Subject) -> Panel:
        """Return the energy along recall, for several shares of noise."""
        network, patterns = subject.model, _stored(subject.trained)
        series: dict[str, list[float]] = {}
        for share in _NOISE:
            cues = flipped(patterns, share, generator=subject.generator)
            energies = [network.energy(cues)]
            network.recall(
                cues,
                n_steps=_N_SWEEPS,
                generator=subject.generator,
                on_step=lambda i, x, seen=energies: seen.append(network.energy(x)),
            )
            series[f"{share:.0%} flipped".replace("%", " %")] = [e.mean().item() for e in energies]
        length = max(map(len, series.values()))
        full = {name: values + values[-1:] * (length - len(values)) for name, values in series.items()}
        levels = {"stored patterns": network.energy(patterns).mean().item()}
        caption = "The mean over all patterns. One unit at a time never raises it; recall stops where no unit changes."
        chart = Lines("descent", caption, list(range(length)), full, "", "sweep", "energy", levels)
        return Panel("Energy along the way", "Recall goes downhill.", [chart])


def _stored(trained: Trained) -> Tensor:
    patterns = trained.rows("train")
    if patterns is None:
        raise ValueError(f"{trained.data.name} holds no patterns.")
    return patterns


def stored_rows(data: Data) -> Tensor:
    """Return the numbers of the training samples in the order in which they are stored: in turn of each class."""
    order = torch.arange(len(data.train))
    if data.train_labels is None:
        return order
    turn = torch.zeros_like(order)
    for y in data.train_labels.unique():
        of_class = data.train_labels == y
        turn[of_class] = torch.arange(int(of_class.sum()))
    return (turn * (int(data.train_labels.max()) + 1) + data.train_labels).argsort(stable=True)


def flipped(x: Tensor, share: float, *, generator: torch.Generator) -> Tensor:
    """Return spins, each flipped with this probability."""
    return torch.where(draw_uniform(x, generator=generator) < share, -x, x)
