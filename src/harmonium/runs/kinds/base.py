"""A kind of model: everything that the command line, a run and its report need to know of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from harmonium.data import Data
from harmonium.data.base import KINDS as DATA_KINDS
from harmonium.evaluation.likelihood_track import LikelihoodTrack
from harmonium.learning import Training
from harmonium.learning.monitors import Monitor, Patience, default_monitors
from harmonium.learning.objectives import Contrastive, Objective
from harmonium.learning.transforms import Centering, Transform
from harmonium.runs.choices import OBJECTIVES
from harmonium.runs.likelihood_words import likelihood_headline, likelihood_lines
from harmonium.runs.outline import few_rows
from harmonium.runs.panels import Panel
from harmonium.runs.plays import Chains, Drawing, Filters, Plane, Play, Reconstructions, Walk
from harmonium.runs.scores import machine_scores
from harmonium.runs.settings import Config, Section
from harmonium.runs.subject import Subject
from harmonium.runs.task import Task
from harmonium.runs.trained import Trained
from harmonium.runs.values import Prepared, complete, unit_values
from harmonium.samplers import Gibbs, Sampler, sample

S = TypeVar("S", bound=Section)

PanelMaker = Callable[[Subject], Panel | None]
"""A function that looks at a trained model and returns a section of its report, or None if it does not apply."""


FOLLOWED = ("training.track_likelihood", "training.patience")
"""Settings of the likelihood that is followed while a machine learns."""

SPARSE = ("training.sparsity_target", "training.sparsity_rate")
"""Settings of the pressure on hidden units to be off."""

ANNEALED = ("run.log_z", "run.ais_chains", "run.ais_betas")
"""Settings of log Z where it cannot be counted."""

OF_TWO_PHASES = (
    "training.objective",
    "training.n_steps",
    "training.n_chains",
    "training.betas",
    "training.fast_rate",
    "training.n_units",
    "training.centering",
    *SPARSE,
    *FOLLOWED,
    *ANNEALED,
)
"""Settings of learning by two phases and of annealing, which a kind with a loss of its own does not read."""


class Kind(ABC, Generic[S]):
    """A kind of model. A subclass says what differs from a Boltzmann machine; `name`, `summary`, `build` it must say.

    `settings` are the kind's own, a section of the TOML file with its name; a field with a description also has a flag
    of `harmonium train`. `unread` are shared settings, as `section.key`, that it does not read: to give one is an
    error. `options` are those in `[model] options` beside those of hidden units; None leaves it to `build` to check.
    `takes` are the kinds of data that it may be given. `recipes` are good settings by the name of the data,
    `"*"` for any other. `watched` are the monitors shown while it learns, and how; the format may name other metrics of
    the record. A model passed to a method is one that `build` returned.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    settings: type[S] = Section  # type: ignore[assignment]
    unread: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[tuple[str, ...] | None] = ()
    takes: ClassVar[tuple[str, ...]] = tuple(kind for kind in DATA_KINDS if kind != "ratings")
    recipes: ClassVar[Mapping[str, dict[str, Any]]] = {}
    watched: ClassVar[Mapping[str, str]] = {
        "validation_log_likelihood": (
            "valid {:.2f} ± {log_z_error:.2g} (log Z) ± {validation_log_likelihood_spread:.2g} (samples)"
        ),
        "best_epoch": "best epoch {}",
        "pseudo_likelihood": "pseudo-likelihood {:.4g}",
        "reconstruction": "reconstruction {:.4g}",
        "free_energy_gap": "gap {:+.3g}",
        "r_hat": "R-hat {:.2f}",
    }

    def own(self, config: Config) -> S:
        """Return the settings of this kind in a configuration."""
        if not isinstance(config.own, self.settings):
            raise TypeError(f"The settings must be those of {self.name!r}. Got those of {config.model.kind!r}.")
        return config.own

    def recipe(self, data: str) -> dict[str, Any]:
        """Return good settings for data of this name: its own, else those for any data, else none."""
        return self.recipes.get(data) or self.recipes.get("*") or {}

    # --- from data to a model that learns ---
    def values(self, config: Config, data: Data) -> Prepared:
        """Return the values that the model sees, or say what must be chosen first."""
        return unit_values(config, data)

    @abstractmethod
    def build(self, config: Config, data: Data, *, generator: torch.Generator) -> nn.Module:
        """Return the model, untrained."""

    def choose(self, config: Config, prepared: Prepared, say: Callable[[str], None]) -> Config:
        """Return the configuration with what is left to the data chosen; `say` tells of it. Most leave nothing."""
        return config

    def outline(self, config: Config, prepared: Prepared) -> Prepared:
        """Return what a run keeps of its data to be sampled without them; most need a few rows to be built from."""
        return few_rows(prepared)

    def shape(self, model: Any, data: Data) -> tuple[int, ...]:
        """Return the shape of one sample as the model takes it."""
        shape: tuple[int, ...] = model.layer(model.data_layer).shape
        return shape

    def task(self, config: Config, prepared: Prepared, model: Any, *, generator: torch.Generator) -> Task:
        """Return what the model learns from, its objective, and what is watched."""
        shape = self.shape(model, prepared.data)
        valid, rows = complete(prepared.rows("valid", shape)), prepared.rows("train", shape)
        return Task(rows, objective(config, model, rows), monitors(config), valid)

    def optimizer(self, config: Config, model: Any) -> torch.optim.Optimizer:
        """Return what moves the parameters."""
        section = config.training
        parameters = [p for p in model.parameters() if p.requires_grad]
        if section.optimizer == "adam":
            return torch.optim.Adam(parameters, section.learning_rate, fused=True)
        return torch.optim.SGD(parameters, section.learning_rate, momentum=section.momentum, fused=True)

    def centering(self) -> Transform:
        """Return how the gradient is centered, where that is asked for."""
        return Centering()

    def warm_up(self, config: Config, prepared: Prepared, training: Training) -> bool:
        """Do what comes once before the first update, with the generator of the training; return whether it did.

        A run that is stopped meanwhile begins it anew.
        """
        return False

    # --- samples ---
    def sampler(self, config: Config) -> Sampler:
        """Return how the chains of the model run."""
        return Gibbs()

    def start(
        self, config: Config, prepared: Prepared, n: int, y: Tensor | None = None, *, generator: torch.Generator
    ) -> Tensor | None:
        """Return where `n` chains start, of classes `y` if given; None leaves it to the model."""
        return None

    def origin(self, config: Config) -> str:
        """Return where chains start, in words."""
        return "the model's biases alone"

    def draw(
        self, trained: Trained, n: int, *, n_steps: int, y: int | None = None, generator: torch.Generator
    ) -> Tensor:
        """Return `n` samples as the model has them: the ends of chains of `n_steps` steps, of class `y` if given."""
        self.refuse_class(y)
        start = trained.start(n, generator=generator)
        return sample(trained.model, n, sampler=trained.sampler, n_steps=n_steps, start=start, generator=generator)

    def refuse_class(self, y: int | None) -> None:
        """Raise where samples of a class are asked for."""
        if y is not None:
            raise ValueError(f"A {self.name} has no classes to draw from. Leave --class out.")

    def fill_in(self, trained: Trained, given: Tensor, *, n_steps: int, generator: torch.Generator) -> Tensor:
        """Return samples with the values that are NaN in `given` drawn from the model, given the others."""
        n = len(given)
        start = trained.start(n, generator=generator)
        return sample(
            trained.model, n, sampler=trained.sampler, n_steps=n_steps, given=given, start=start, generator=generator
        )

    def takes_away(self, model: Any, mask: Tensor) -> Tensor:
        """Return the values that may be taken away to be filled in, of a mask `(n, *shape)`; most models want none."""
        return mask

    def images(self, data: Data) -> tuple[int, tuple[int, ...]] | None:
        """Return how many images side by side a sample is, and their shape; None if it is none."""
        return (1, tuple(data.shape)) if len(data.shape) == 3 else None

    def plays(self) -> tuple[Play, ...]:
        """Return what can be played with the model on the live page, of which those are offered that suit it."""
        return Chains(), Drawing(), Walk(), Plane(), Filters(), Reconstructions()

    # --- scores and the report ---
    def scores(self, trained: Trained, *, n_chains: int | None = None, n_betas: int | None = None) -> dict[str, Any]:
        """Return what `evaluation.json` holds; `n_chains` and `n_betas` are of the estimate of log Z."""
        return machine_scores(trained, n_chains=n_chains, n_betas=n_betas)

    def lines(self, scores: Mapping[str, Any]) -> list[str]:
        """Return the scores as lines to be printed."""
        return likelihood_lines(scores)

    def headline(self, scores: Mapping[str, Any]) -> str:
        """Return the one score by which runs are listed, beside the best simple law; "" if there is none yet."""
        return likelihood_headline(scores)

    def verdict(self, scores: Mapping[str, Any]) -> list[str]:
        """Return sentences for the top of the report, in front of those on the log-likelihood."""
        return []

    def size(self, config: Config) -> str:
        """Return how large the model is, in a word, for the list of runs."""
        return str(config.model.n_hidden)

    def sections(self) -> tuple[str | PanelMaker, ...]:
        """Return the sections of the report in order: those of `harmonium.plots` by name, others as functions."""
        return (
            "learning",
            "samples",
            "density",
            "filters",
            "reconstructions",
            "inpainting",
            "energies",
            "parameters",
        )


AnyKind = Kind[Any]
"""A kind, whatever its own settings."""


def objective(config: Config, model: nn.Module | None = None, rows: Tensor | None = None) -> Objective:
    """Return the objective that the settings name; one that draws noise makes it for the model and its data."""
    made = OBJECTIVES[config.training.objective](config.training, model, rows)
    if model is not None:
        try:
            made.check(model)
        except TypeError as trouble:
            raise ValueError(f"--objective {config.training.objective} is not for this model. {trouble}") from trouble
    return made


def contrastive(config: Config) -> Contrastive:
    """Return the objective that the settings name for one machine of a network, which must have two phases."""
    made = objective(config)
    if not isinstance(made, Contrastive):
        names = "cd, mean-field-cd, pcd, fast-pcd, tempered-pcd"
        raise ValueError(f"--objective {config.training.objective} is not for a {config.model.kind}. Use {names}.")
    return made


def monitors(config: Config) -> list[Monitor]:
    """Return what is watched while a Boltzmann machine learns."""
    section, track = config.training, LikelihoodTrack(seed=config.run.seed)
    if section.patience:
        return [*default_monitors(), Patience(track, section.patience)]
    return [*default_monitors(), *([track] if section.track_likelihood else [])]
