"""Deep belief networks: a stack of machines, what they learn from, what each depth knows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor

from harmonium.data import Data
from harmonium.evaluation.unexplained import mean_sample, unexplained
from harmonium.learning.monitors import Depths, LayerTurns, Monitor
from harmonium.learning.objectives import MeanFieldCD, SummedLayers
from harmonium.learning.starts import initialize_layers, law_machine, layer_rates, principal_machine
from harmonium.learning.transforms import Centering, EachLayer, Transform
from harmonium.models import DBN, RBM
from harmonium.models.dbn_spec import stack_of_spec, units_with_levels
from harmonium.runs.choices import known
from harmonium.runs.kinds.base import ANNEALED, FOLLOWED, SPARSE, Kind, PanelMaker, contrastive
from harmonium.runs.panels import Filters, ImageGrid, ImageRows, Panel
from harmonium.runs.plays import Play, Samples
from harmonium.runs.scores import bound_scores
from harmonium.runs.settings import Config, Section
from harmonium.runs.subject import N_CHAINS, Subject
from harmonium.runs.task import Task
from harmonium.runs.trained import Trained
from harmonium.runs.values import SPLITS, Prepared
from harmonium.runs.words import SPLITS as IN_WORDS
from harmonium.runs.words import number
from harmonium.samplers import sample
from harmonium.samplers.from_top import sample_from_top
from harmonium.units import Bernoulli, Gaussian
from harmonium.units.activation import ACTIVATIONS

_SMALL, _FIRST_CHANNELS = 14, 16  # images are halved while they are at least so wide
_N_START, _N_SCORED, _N_SHOWN = 512, 10_000, 16
_LAW = 0.01  # of the learning rate, for the law of the codes

_TRAINING: dict[str, Any] = {
    "n_steps": 5,
    "n_chains": 100,
    "epochs": 10,
    "optimizer": "adam",
    "learning_rate": 0.1,
    "schedule": "linear",
    "centering": True,
    "average": 0.99,
}


class DBNSettings(Section):
    """How a deep belief network is made and learns.

    `spec` names the hidden layers from below, as in "conv 16 4x4/2, conv 32 4x4/2, dense 200, dense 500"; "" chooses by
    the size of the images. All units have `levels` 0..N, 0 standing for those of the data (255 for 8-bit images), and
    follow `activation` with the steepness `k`, 0 standing for min(1, 4/N). `top` is the machine that samples are drawn
    from: binary; Gaussian below and binary above, a law of the codes, which are centered and scaled in closed form
    (see `code_law`); or multinary as well. `order`: the machines below the top learn together and the top after them,
    or all "together", or one after another ("greedy"). `spread` is that of the fields at the start (see
    `initialize_layers`). `training.learning_rate` is that of `layer_rates`, or with `rates` "one" that of every
    parameter, a hundredth of it that of a Gaussian top; `training.objective`, `n_steps` and `n_chains` are of the top
    machine: those below learn by means.
    Hwang et al. 2020 have top "multinary", order "together", rates "one", 0.03 and the objective mean-field-cd.
    """

    spec: str = Field(
        default="", description='Layers, such as "conv 16 4x4/2, dense 200, dense 500". Default: by image size.'
    )
    levels: int = Field(
        default=0, ge=0, description="Levels 0..N of the units, such as 255 or 1. Default: as the data have."
    )
    k: float = Field(
        default=0.0, ge=0, description="Steepness of the units with levels, N g(k field). Default: min(1, 4/N)."
    )
    activation: str = Field(
        default="sigmoid", description=f"What units with levels follow from 0 to N: {', '.join(ACTIVATIONS)}."
    )
    top: Literal["binary", "gaussian", "multinary"] = Field(
        default="binary",
        description="The top machine: binary; gaussian, a law of the codes below it; multinary, as those below.",
    )
    order: Literal["top-last", "together", "greedy"] = Field(
        default="top-last", description="Which layers learn when: top-last, together or greedy."
    )
    rates: Literal["layers", "one"] = Field(
        default="layers", description="layers: the learning rate fitted to each layer's width and levels; one for all."
    )
    spread: float = Field(default=0.3, gt=0)

    @field_validator("activation")
    @classmethod
    def _known_activation(cls, value: str) -> str:
        return known(value, ACTIVATIONS)


class DBNKind(Kind[DBNSettings]):
    """A deep belief network: machines that learn by their means, and one at the top that is sampled."""

    name = "dbn"
    summary = "deep belief network; learns images layer by layer, draws them top down"
    settings = DBNSettings
    unread = (
        "data.binarize",
        "data.standardize",
        "model.n_hidden",
        "model.hidden",
        "model.options",
        "training.n_units",
        *SPARSE,
        *FOLLOWED,
        *ANNEALED,
    )
    recipes: ClassVar[Mapping[str, dict[str, Any]]] = {
        "digits": {"training": {**_TRAINING, "epochs": 200}, "run": {"threads": 1}},
        "*": {"training": _TRAINING},
    }

    def values(self, config: Config, data: Data) -> Prepared:
        """Return images with levels 0..N, stored as they are where these are their own; restored they are on [0, 1]."""
        if data.kind not in ("levels", "binary") or data.levels is None or len(data.shape) != 3:
            raise ValueError(
                f"A deep belief network is for images with levels, or 0 and 1. {data.name} holds {data.kind} data of "
                f"shape {tuple(data.shape)}. Choose --model rbm, whose visible units follow the data."
            )
        levels = self.own(config).levels or data.levels
        if levels != data.levels:
            factor = levels / data.levels
            parts: dict[str, Any] = {s: x.float() * factor for s in SPLITS if (x := getattr(data, s)) is not None}
            note = f"carried to 0..{levels}; {data.note}"
            data = dataclasses.replace(data, kind="levels", levels=levels, note=note, **parts)
        return Prepared(data, torch.tensor(0.0), torch.tensor(1.0 / levels))

    def build(self, config: Config, data: Data, *, generator: torch.Generator) -> DBN:
        """Return the network of the configuration at the start of its learning.

        All units have the levels of the data but those of the top machine, which are binary unless told: with 255
        levels a draw hardly differs from its mean, and all chains of the top end at one image.
        """
        own = self.own(config)
        *lower, top = (own.spec or default_spec(data.shape)).split(",")
        make = units_with_levels(data.levels or 1, k=own.k or None, activation=own.activation)
        stack: list[RBM] = []
        if lower:
            stack = stack_of_spec(",".join(lower), make(*_below(lower[0], data.shape)), make, generator=generator)
        if own.top == "gaussian":
            return self._with_law(stack, top, own, data, generator)
        at_top = Bernoulli if own.top == "binary" else make
        below = (at_top if stack else make)(*_below(top, DBN(stack).shapes[-1] if stack else data.shape))
        dbn = DBN([*stack, *stack_of_spec(top, below, at_top, generator=generator)])
        initialize_layers(dbn, data.train[:_N_START].reshape(-1, *dbn.visible.shape), spread=own.spread)
        return dbn

    def _with_law(self, stack: list[RBM], top: str, own: DBNSettings, data: Data, generator: torch.Generator) -> DBN:
        """Return the stack below a machine for its codes, which is not learned, and the machine of their law."""
        words = top.split()
        if not stack or words[:1] != ["dense"] or own.order == "together":
            raise ValueError(
                'A Gaussian top is a law of what the layers below it have settled at: "dense N" above at least one '
                f'layer, and not order "together". Got {own.spec!r}, {own.order!r}. Use order "top-last".'
            )
        dbn = DBN(stack)
        initialize_layers(dbn, data.train[:_N_START].reshape(-1, *dbn.visible.shape), spread=own.spread)
        n, n_codes = math.prod(dbn.shapes[-1]), _n_codes(math.prod(dbn.shapes[-1]))
        codes = RBM(Gaussian(n), Gaussian(n_codes), generator=generator).requires_grad_(False)
        return DBN([*stack, codes, law_machine(n_codes, int(words[1]), generator=generator)])

    def shape(self, model: DBN, data: Data) -> tuple[int, ...]:
        """Return the shape of the visible layer: flat below a dense one."""
        return model.visible.shape

    def optimizer(self, config: Config, model: DBN) -> torch.optim.Optimizer:
        """Return Adam or gradient descent, with a rate for each layer (see `layer_rates`) unless one is asked for."""
        section = config.training
        own, law = self.own(config), list(model[-1].parameters()) if self.own(config).top == "gaussian" else []
        below = DBN([*model][:-2]) if law else model
        groups: list[dict[str, Any]] = [{"params": list(below.parameters())}]
        if own.rates == "layers":
            groups = layer_rates(below, section.learning_rate)
        if law:  # its codes have variance 1
            groups.append({"params": law, "lr": section.learning_rate * _LAW})
        if section.optimizer == "adam":
            return torch.optim.Adam(groups, section.learning_rate)
        return torch.optim.SGD(groups, section.learning_rate, momentum=section.momentum)

    def centering(self) -> Transform:
        """Return the centering of the top machine alone."""
        return EachLayer(Centering(), layers=(-1,))

    def task(self, config: Config, prepared: Prepared, model: DBN, *, generator: torch.Generator) -> Task:
        """Return the summed contrastive free energies on the training images; the top machine learns by its chains.

        With order "top-last" the machines below the top learn at once for half of the epochs, then the top does on what
        they have settled at; "together" lets all learn at once, "greedy" one after another.
        """
        own, epochs = self.own(config), config.training.epochs
        members = [*(MeanFieldCD() for _ in range(len(model) - 1)), contrastive(config)]
        law = own.top == "gaussian"
        below = tuple(range(len(model) - 1 - law))
        every = (*((i,) for i in below), (len(model) - 1,))
        top_last = (below, every[-1]) if below else every
        groups = {"together": ((*below, len(model) - 1),), "top-last": top_last, "greedy": every}[own.order]
        if 0 < epochs < len(groups):
            raise ValueError(
                f"`epochs` must be at least {len(groups)}, one for each turn of order {own.order!r}. "
                f'Got {epochs}. Give more, or use order "together".'
            )
        fitted = (len(below), lambda z: principal_machine(z, _n_codes(z.shape[1]))) if law else None
        turns: list[Monitor] = [LayerTurns(groups, own.spread, fitted)] if len(groups) > 1 else []
        rows = prepared.rows("train", self.shape(model, prepared.data))
        return Task(rows, SummedLayers(members=members), [Depths(), *turns], turns=len(groups))

    def draw(
        self, trained: Trained, n: int, *, n_steps: int, y: int | None = None, generator: torch.Generator
    ) -> Tensor:
        """Return the means of the pixels below the ends of chains in the top machine."""
        self.refuse_class(y)
        return _images(trained.model, n, n_steps, generator)

    def fill_in(self, trained: Trained, given: Tensor, *, n_steps: int, generator: torch.Generator) -> Tensor:
        """Raise, since its layers cannot be summed out."""
        raise ValueError("A dbn cannot fill in missing values: it has no free energy.")

    def plays(self) -> tuple[Play, ...]:
        """Return samples drawn anew."""
        return (Samples(self.draw),)

    def scores(self, trained: Trained, *, n_chains: int | None = None, n_betas: int | None = None) -> dict[str, Any]:
        """Return the share of each split that reconstructions from each depth leave unexplained, and a bound.

        The first 10,000 images of a split are taken; v̄ is the mean of all training images. A lower bound of the
        log-likelihood there is where all layers are binary.
        """
        data, mean = trained.data, mean_sample(trained.data.train).reshape(trained.shape)
        generator = torch.Generator().manual_seed(trained.config.run.seed + 1)
        scores: dict[str, Any] = {"data": str(data), "note": data.note, "unexplained": {}}
        scores |= bound_scores(trained, n_chains, n_betas, generator=generator)
        for split in SPLITS:
            x = trained.prepared.rows(split, trained.shape)
            if x is not None:
                shares = unexplained(trained.model, x[:_N_SCORED], mean)
                scores["unexplained"][split] = {"value": shares, "n": len(x[:_N_SCORED])}
        return scores

    def lines(self, scores: Mapping[str, Any]) -> list[str]:
        """Return the shares that are left unexplained, below what is said of all models."""
        lines = super().lines(scores)
        for split, score in scores["unexplained"].items():
            shares = ", ".join(f"{share:.2%}" for share in score["value"])
            lines.append(f"{split:>5} unexplained share from depth 1, 2, …  {shares} of {score['n']:,} images")
        return [*lines, "      Σ(v - v′)² / Σ(v - v̄)²: 0 % is perfect, 100 % is no better than the mean training image"]

    def headline(self, scores: Mapping[str, Any]) -> str:
        """Return the shares of the test images that are left unexplained."""
        found = scores["unexplained"].get("test")
        return f"unexplained {', '.join(f'{share:.1%}' for share in found['value'])}" if found else ""

    def verdict(self, scores: Mapping[str, Any]) -> list[str]:
        """Return what reconstructions from each depth leave unexplained."""
        found = scores.get("unexplained") or {}
        for split, name in IN_WORDS.items():
            if split in found:
                shares = ", ".join(number(100 * share) for share in found[split]["value"])
                images = f"{found[split]['n']:,} {name} images about the mean training image"
                return [
                    f"Of the variation of {images}, reconstructions from depth 1, 2, … leave {shares} % unexplained."
                ]
        return []

    def size(self, config: Config) -> str:
        """Return the number of hidden layers."""
        spec = self.own(config).spec
        return f"{spec.count(',') + 1} layers" if spec else "by size"

    def sections(self) -> tuple[str | PanelMaker, ...]:
        """Return curves, samples, reconstructions from each depth, and filters."""
        return "learning", self.samples, self.depths, self.first_filters

    def samples(self, subject: Subject) -> Panel:
        """Return images drawn from the top down."""
        x = _images(subject.model, N_CHAINS, subject.n_steps, subject.generator)
        text = (
            f"Independent chains of {subject.n_steps:,} Gibbs steps in the top machine, started from its biases alone, "
            "then down by means. Nothing was selected."
        )
        caption = "The means of the pixels given what was drawn at the top."
        return Panel("Samples", text, [ImageGrid("samples", caption, subject.shown(x), 20)])

    @torch.no_grad()
    def depths(self, subject: Subject) -> Panel:
        """Return held-out images above their reconstructions from each depth."""
        dbn: DBN = subject.model
        name, x = subject.held_out
        x = x[:_N_SHOWN]
        rows = {"data": x} | {f"depth {i}": dbn.reconstruct(x, i) for i in range(1, len(dbn) + 1)}
        levels = " → ".join("×".join(map(str, shape)) for shape in dbn.shapes)
        caption = (
            f"{name.capitalize()} images, and what is left of them after going up to each depth and down, by means."
        )
        shown = ImageRows("depths", caption, {label: subject.shown(images) for label, images in rows.items()})
        return Panel("Reconstructions", f"What each depth knows. The levels: {levels}.", [shown])

    def first_filters(self, subject: Subject) -> Panel:
        """Return the weights between the image and the first hidden layer."""
        caption = (
            "The weights between the image and one unit, or one channel, of the first hidden layer, all on one scale."
        )
        shown = Filters("filters", caption, subject.model[0], subject.image)
        return Panel("Filters", "What the first layer looks for.", [shown])


@torch.no_grad()
def _images(dbn: DBN, n: int, n_steps: int, generator: torch.Generator | None) -> Tensor:
    """Return images from chains in the top machine, down by means; of a law of codes the code itself is drawn."""
    if not isinstance(dbn[-1].visible, Gaussian):
        return sample_from_top(dbn, n, n_steps=n_steps, generator=generator)
    level, codes = len(dbn) - 1, sample(dbn[-1], n, n_steps=n_steps, generator=generator)
    return dbn.down(dbn.leave(level, codes), level)


def _n_codes(n: int) -> int:
    """Return how many principal directions of n units are codes of the law: what the last tenth adds is noise."""
    return n - max(1, n // 10)


def _below(layer: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the units below a layer of the spec: flat below a dense one."""
    return (math.prod(shape),) if layer.split()[:1] == ["dense"] else shape


def default_spec(shape: tuple[int, ...]) -> str:
    """Return a network for images of this shape: each convolution halves them, while that leaves at least 7 pixels.

    >>> default_spec((1, 28, 28))
    'conv 16 4x4/2, conv 32 4x4/2, dense 200, dense 500'
    >>> default_spec((1, 8, 8))
    'dense 128, dense 64, dense 128'
    """
    _, height, width = shape
    layers: list[str] = []
    while min(height, width) >= _SMALL and height % 2 == 0 and width % 2 == 0:
        layers.append(f"conv {_FIRST_CHANNELS * 2 ** len(layers)} 4x4/2")
        height, width = height // 2, width // 2
    return ", ".join([*layers, "dense 200, dense 500"] if layers else ["dense 128, dense 64, dense 128"])
