"""Tables: an RBM whose hidden layer is one category, sized, started and trained so that nothing is to be tuned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from harmonium.data import Column, Data, log_slopes
from harmonium.evaluation.moments import moments_apart
from harmonium.evaluation.row_scores import observed_log_likelihood
from harmonium.evaluation.synthetic import draw_rows
from harmonium.learning import Training
from harmonium.learning.choose_mixture import choose_mixture
from harmonium.learning.fit_table import BATCH_SIZE, N_STARTS, RATE, n_epochs, observed_nats, table_machine
from harmonium.learning.monitors import KeepBest
from harmonium.learning.objectives import ObservedLikelihood
from harmonium.learning.starts.mixture import start_mixture
from harmonium.models import RBM
from harmonium.models.observed import counted_log_z, draw_observed
from harmonium.runs.kinds.base import OF_TWO_PHASES, Kind, PanelMaker
from harmonium.runs.likelihood_words import likelihood_lines
from harmonium.runs.outline import few_rows
from harmonium.runs.panels import GroupedBars, Histograms, Panel, Shown
from harmonium.runs.plays import Play, Row
from harmonium.runs.scores import against_simple, held_out
from harmonium.runs.settings import Config, Section
from harmonium.runs.subject import Subject
from harmonium.runs.task import Task
from harmonium.runs.trained import Trained
from harmonium.runs.values import SPLITS, Prepared
from harmonium.runs.words import as_dict
from harmonium.types import Estimate

_N_SHOWN, _N_NAMED, _N_DRAWS = 24, 12, 2000


class TableSettings(Section):
    """How large the model is: what is 0 or left out is chosen by the likelihood of training rows left out."""

    components: int = Field(default=0, ge=0, description="Components, the values of the hidden category; 0 chooses.")
    shrinkage: float | None = Field(
        default=None, ge=0, le=1, description="How far correlations are shrunk: 1 is independent columns."
    )


class TableKind(Kind[TableSettings]):
    """An RBM for the columns of a table, with one hidden category: likelihood, samples and conditionals are exact."""

    name = "table"
    summary = "the rows of a table, with holes: RBM with a hidden category; nothing to tune"
    settings = TableSettings
    takes = ("table",)
    unread = (*OF_TWO_PHASES, "model.n_hidden", "model.hidden", "model.options", "data.binarize", "data.standardize")
    recipes: ClassVar[Mapping[str, dict[str, Any]]] = {
        "*": {
            "training": {
                "epochs": 0,
                "batch_size": BATCH_SIZE,
                "optimizer": "adam",
                "learning_rate": RATE,
                "schedule": "linear",
            },
            "run": {"threads": 1},
        }
    }
    watched: ClassVar[Mapping[str, str]] = {
        "validation_log_likelihood": "validation {:.3f}",
        "best_log_likelihood": "best {:.3f} nats of encoded values",
    }

    def choose(self, config: Config, prepared: Prepared, say: Callable[[str], None]) -> Config:
        """Return the configuration with the size, the shrinkage and the number of epochs chosen, where left open."""
        data, own = prepared.data, self.own(config)
        update: dict[str, Any] = {}
        if not own.components or own.shrinkage is None:
            say("choosing the number of components and the shrinkage, on training rows left out …")
            generator = torch.Generator().manual_seed(config.run.seed)
            found = choose_mixture(lambda n: table_machine(data.columns, n), data.train, generator=generator)
            chosen: dict[str, float] = {"components": own.components or found.n_components}
            chosen["shrinkage"] = found.shrinkage if own.shrinkage is None else own.shrinkage
            update["own"] = own.model_copy(update=chosen)
            say(f"chosen: {chosen['components']} components, correlations shrunk by {chosen['shrinkage']:g}")
        if not config.training.epochs:
            epochs = n_epochs(len(data.train), config.training.batch_size)
            update["training"] = config.training.model_copy(update={"epochs": epochs})
        return config.model_copy(update=update)

    def build(self, config: Config, data: Data, *, generator: torch.Generator) -> RBM:
        """Return the machine, not started yet."""
        return table_machine(data.columns, max(1, self.own(config).components))

    def task(self, config: Config, prepared: Prepared, model: RBM, *, generator: torch.Generator) -> Task:
        """Learn from what is observed of the rows, and keep what suits others best."""
        x = prepared.data.train.to(model.weight)
        return Task(x, ObservedLikelihood(), [KeepBest(observed_nats)], prepared.data.valid)

    def warm_up(self, config: Config, prepared: Prepared, training: Training) -> bool:
        """Start the machine at the rows."""
        model: Any = training.model
        start_mixture(
            model,
            prepared.data.train,
            shrinkage=self.own(config).shrinkage or 0.0,
            n_starts=N_STARTS,
            generator=training.generator,
        )
        return True

    def draw(
        self, trained: Trained, n: int, *, n_steps: int, y: int | None = None, generator: torch.Generator
    ) -> Tensor:
        """Return `n` rows, drawn exactly, their numbers distributed as those of the data: there are no chains."""
        self.refuse_class(y)
        return draw_rows(trained.model, trained.data.columns, n, generator=generator)

    def fill_in(self, trained: Trained, given: Tensor, *, n_steps: int, generator: torch.Generator) -> Tensor:
        """Return rows with unknown values drawn given the others, exactly."""
        return draw_observed(trained.model, given.to(trained.model.weight), generator=generator)

    def outline(self, config: Config, prepared: Prepared) -> Prepared:
        """Return the columns, their scales and levels, and no rows."""
        return few_rows(prepared, 0, 0)

    def plays(self) -> tuple[Play, ...]:
        """Return a row to fill in."""
        return (Row(),)

    # --- scores and the report ---
    @torch.no_grad()
    def scores(self, trained: Trained, *, n_chains: int | None = None, n_betas: int | None = None) -> dict[str, Any]:
        """Return the log-likelihood of the observed values of each split, that of independent columns, and how the
        means and spreads of samples compare with those of the training rows."""
        data, model = trained.data, trained.model
        z = float(counted_log_z(model))
        scores: dict[str, Any] = {
            "data": str(data),
            "note": f"{data.note}; nats of the observed values, in the units of the table",
            "log_z": as_dict(Estimate(z, 0.0, z, z, "exact", at_least=z, at_most=z)),
        }
        apart = table_machine(data.columns, 1)
        start_mixture(apart, data.train, shrinkage=1.0)
        rows = {split: x for split in SPLITS if (x := trained.rows(split)) is not None}
        slopes = {split: log_slopes(x, data.columns).sum(1) for split, x in rows.items()}
        found = {split: _shifted(observed_log_likelihood(model, x), slopes[split]) for split, x in rows.items()}
        scores |= {split: as_dict(part.mean()) | {"n": len(rows[split])} for split, part in found.items()}
        split = held_out(rows)
        alone = observed_log_likelihood(apart, rows[split]).value + slopes[split]
        scores |= against_simple(found[split], {"independent columns": alone})
        generator = torch.Generator().manual_seed(trained.config.run.seed + 1)
        drawn = self.draw(trained, _N_DRAWS, n_steps=1, generator=generator)
        return scores | {"moments": moments_apart(drawn, data.train, data.columns)}

    def lines(self, scores: Mapping[str, Any]) -> list[str]:
        """Return the likelihoods, and how samples compare with the rows."""
        moments = scores["moments"]
        line = (
            f"      samples: means within {moments['mean']:.2f} standard deviations of the data's, spreads within a "
            f"factor {moments['spread']:.2f}, shares of levels within {moments['share']:.2f}"
        )
        return [*likelihood_lines(scores), line]

    def size(self, config: Config) -> str:
        """Return the number of components."""
        return str(self.own(config).components)

    def sections(self) -> tuple[str | PanelMaker, ...]:
        """Return the sections of the report."""
        return ("learning", columns_panel, "filters", "parameters")


def _shifted(estimate: Estimate, by: Tensor) -> Estimate:
    """Return log-likelihoods with an exact number added to each."""
    value = estimate.value + by
    return Estimate(value, 0.0, value, value, estimate.kind, at_least=value, at_most=value)


def columns_panel(subject: Subject) -> Panel:
    """Return each column of the rows and of as many samples of the model."""
    data, kind = subject.data, TableKind()
    drawn = kind.draw(subject.trained, _N_DRAWS, n_steps=1, generator=subject.generator)
    pictures: list[Shown] = []
    start = 0
    for i, column in enumerate(column for column in data.columns if column.width):
        rows, samples = (x[:, start : start + column.width].double() for x in (data.train, drawn))
        rows, start = rows[~rows.isnan().any(1)], start + column.width
        if i >= _N_SHOWN or not len(rows):
            continue
        name = f"column-{i}"
        if column.is_numeric:
            values = {"data": column.inverse(rows[:, 0]), "samples": column.inverse(samples[:, 0])}
            pictures.append(Histograms(name, f"Rows and samples of {column.name}.", values, column.name, column.name))
        else:
            pictures.append(_shares(name, column, {"data": rows, "samples": samples}))
    text = f"The training rows beside {_N_DRAWS:,} rows drawn from the model. Nothing was selected."
    return Panel("Columns", text, pictures)


def _shares(name: str, column: Column, values: Mapping[str, Tensor]) -> GroupedBars:
    """Return the shares of the levels of a column, the most frequent ones in their order if there are many."""
    shares = {said: (torch.cat([1 - x, x], 1) if column.type == "binary" else x).mean(0) for said, x in values.items()}
    n = len(column.levels)
    kept = shares["data"].topk(min(n, _N_NAMED)).indices.sort().values
    which = "levels" if n <= _N_NAMED else f"{_N_NAMED} most frequent of {n} levels"
    levels = [str(column.levels[i]) for i in kept]
    series = {said: share[kept].tolist() for said, share in shares.items()}
    return GroupedBars(name, f"Shares of the {which} of {column.name}.", levels, series, column.name, "share")
