"""Joint energy models: a network that classifies and generates, how its chains run, what they learn from."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from harmonium.data import Data
from harmonium.data.known_labels import known_labels
from harmonium.evaluation.classify.accuracy import accuracy, class_probabilities
from harmonium.evaluation.classify.calibration import expected_calibration_error
from harmonium.evaluation.ood import auroc, fpr95
from harmonium.evaluation.outlier_scores import outlier_scores
from harmonium.evaluation.outliers import outlier_table, outliers
from harmonium.laws import ClassGaussians, cloud_starts
from harmonium.learning.monitors import Guard, JointCurves
from harmonium.learning.objectives import JointLikelihood, ReplayBuffer
from harmonium.models import JEM
from harmonium.networks import MLP, SmallConv, SmallResidual
from harmonium.runs.choices import known
from harmonium.runs.class_panels import calibration, held_out_labels
from harmonium.runs.kinds.base import FOLLOWED, SPARSE, Kind, PanelMaker
from harmonium.runs.likelihood_words import announcement
from harmonium.runs.outline import few_rows
from harmonium.runs.panels import Histograms, ImageGrid, Panel, Shown
from harmonium.runs.scores import energy_likelihood
from harmonium.runs.settings import Config, Section
from harmonium.runs.subject import Subject
from harmonium.runs.task import Task
from harmonium.runs.trained import Trained
from harmonium.runs.values import SPLITS, Prepared, real_values, scaled
from harmonium.runs.words import OUTLIER_SCORES, class_lines, class_sentences
from harmonium.samplers import Langevin, sample

NETWORKS: dict[str, Callable[..., nn.Module]] = {"mlp": MLP, "small-conv": SmallConv, "small-residual": SmallResidual}
"""`network(shape, n_outputs, *, generator, **options)` by name; `model.options` are the options."""

_BASE_STD = 3.0  # of the base measure where the data are not images: in units of their spread
_STARTS_FLOOR = 0.1
_MAX_LAW, _MANY_ROWS = 2**24, 2000  # numbers of a law that a run keeps; samples that it keeps of larger ones
_N_CLASSES, _N_EACH, _N_STEPS = 20, 8, 500  # shown in the report

_ADAM: dict[str, Any] = {"optimizer": "adam", "learning_rate": 1e-3, "schedule": "cosine"}
_GRAY_28: dict[str, Any] = {
    "data": {"options": {"n_valid": 5000}},
    "training": _ADAM
    | {"learning_rate": 1.5e-3, "n_steps": 10, "n_chains": 2000, "epochs": 5, "batch_size": 100, "average": 0.99},
    "jem": {
        "network": "small-conv",
        "step_size": 0.2,
        "noise": 0.03,
        "renewal": 0.05,
        "starts": "clouds",
        "clamp": True,
        "input_noise": 0.1,
        "generation_weight": 0.05,
        "energy_penalty": 2e-4,
    },
}
_PLANE: dict[str, Any] = {  # the noise is √(2 step_size): chains follow the law itself, which is what a density needs
    "training": _ADAM | {"learning_rate": 3e-3, "n_steps": 10, "n_chains": 2000, "epochs": 40, "batch_size": 256},
    "jem": {"network": "mlp", "step_size": 0.02, "noise": 0.2, "renewal": 0.02, "input_noise": 0.0},
    "run": {"threads": 1},
}


class JEMSettings(Section):
    """How a joint energy model is made and learns.

    Chains take `training.n_steps` Langevin steps `x ← x - step_size ∂F/∂x + noise ε` (eq. 6.28 of Tomczak's chapter) at
    each update. With `buffer` they are `training.n_chains` persistent ones, which start anew with probability
    `renewal`; `class_chains` gives each a class. `starts` are uniform, or blurred data, or (images) those and clouds.
    The loss is `classification_weight L_clf + generation_weight L_gen`; only with both at 1 it is `-ln p(x, y)`, which
    the recipes of 28 × 28 images leave for a better classifier. `labels` is how many labels are known, 0 for all;
    `baseline` leaves L_gen out: a plain classifier. A guard returns
    to the last good state up to `n_tries` times.
    """

    network: str = Field(default="mlp", description=f"The network: {', '.join(NETWORKS)}.")
    step_size: float = Field(default=0.2, gt=0, description="Step size of Langevin steps.")
    noise: float = Field(default=0.05, ge=0, description="Noise of Langevin steps.")
    limit: float = Field(default=0.0, ge=0)
    buffer: bool = Field(default=True, description="Keep chains in a buffer, or start them at each update.")
    renewal: float = Field(default=0.02, ge=0, le=1)
    class_chains: bool = False
    starts: Literal["uniform", "class-gaussians", "clouds"] = "uniform"
    clamp: bool = False
    classification_weight: float = Field(default=1.0, ge=0)
    generation_weight: float = Field(
        default=1.0, ge=0, description="Weight of L_gen: 1 is ln p(x, y); the recipes of MNIST take 0.05."
    )
    input_noise: float = Field(default=0.1, ge=0, description="Noise added to the data.")
    energy_penalty: float = Field(default=0.0, ge=0)
    labels: int = Field(default=0, ge=0, description="How many labels are known, as many of each class; 0: all.")
    n_labeled: int = Field(default=64, ge=1)
    baseline: bool = Field(default=False, description="Train the network as a plain classifier.")
    n_tries: int = Field(default=10, ge=0)

    @field_validator("network")
    @classmethod
    def _known_network(cls, value: str) -> str:
        return known(value, NETWORKS)


class JEMKind(Kind[JEMSettings]):
    """A classifier that is a density as well: `F(x) = -LogSumExp_y f(x)[y]`."""

    options = None
    name = "jem"
    summary = "joint energy model; one network that classifies and generates"
    settings = JEMSettings
    unread = (
        "data.binarize",
        "model.n_hidden",
        "model.hidden",
        "training.objective",
        "training.betas",
        "training.fast_rate",
        "training.n_units",
        "training.centering",
        *SPARSE,
        *FOLLOWED,
        "run.log_z",
    )
    recipes: ClassVar[Mapping[str, dict[str, Any]]] = {
        "digits": {
            "training": _ADAM | {"n_steps": 20, "n_chains": 2000, "epochs": 150, "batch_size": 128},
            "jem": {"network": "mlp", "step_size": 0.2, "noise": 0.05, "renewal": 0.02, "input_noise": 0.15},
            "run": {"threads": 1},  # small products are faster on one thread
        },
        "mnist": _GRAY_28,
        "fashion-mnist": _GRAY_28,
        "cifar10": {
            "training": _ADAM | {"n_steps": 5, "n_chains": 5000, "epochs": 10, "batch_size": 100},
            "jem": {"network": "small-residual", "step_size": 0.2, "noise": 0.03, "renewal": 0.05, "input_noise": 0.05},
        },
        **dict.fromkeys(("moons", "circles", "mixture", "pinwheel"), _PLANE),
        "*": {
            "training": _ADAM | {"n_steps": 20, "n_chains": 2000, "epochs": 50, "batch_size": 128},
            "jem": {"network": "mlp"},
        },
    }
    watched: ClassVar[Mapping[str, str]] = {
        "validation_accuracy": "valid accuracy {:.2%}",
        "validation_loss": "valid L {:.3f}",
        "validation_generation_loss": "valid L_gen {:+.3f}",
        "rollbacks": "rollbacks {}",
    }

    def values(self, config: Config, data: Data) -> Prepared:
        """Return images on [-1, 1], as the chapter has them, and other real values standardized if wanted."""
        if data.train_labels is None:
            raise ValueError(
                f"A joint model learns classes, and {data.name} has no labels. Choose --model gaussian-rbm."
            )
        if data.kind not in ("levels", "binary"):
            return real_values(data, config.data.standardize)
        unit = scaled(data).data
        parts: dict[str, Any] = {split: 2 * x - 1 for split, x in unit.splits.items()}
        note = f"scaled to [-1, 1]; {data.note}" if data.kind == "levels" else f"-1 and 1; {data.note}"
        half = torch.tensor(0.5)
        return Prepared(dataclasses.replace(unit, note=note, **parts), half, half)

    def build(self, config: Config, data: Data, *, generator: torch.Generator) -> JEM:
        """Return the joint model of a network whose outputs are the classes of the data.

        Chains of images start in the box [-1, 1]; other data get a Gaussian base measure and a box as wide as they are.
        """
        _, y = labeled(data)
        name, options = self.own(config).network, dict(config.model.options)
        network = NETWORKS[name]
        takes = [key for key in inspect.signature(network).parameters if key not in ("shape", "n_outputs", "generator")]
        unknown = [key for key in options if key not in takes]
        if unknown:
            raise ValueError(f"A {name} network does not take {', '.join(unknown)}. It takes {', '.join(takes)}.")
        net = network(data.shape, int(y.max()) + 1, generator=generator, **options)
        if len(data.shape) > 1:
            return JEM(net)
        reach = float(math.ceil(data.train.abs().max().item()))
        return JEM(net, box=(-reach, reach), base_std=_BASE_STD)

    def shape(self, model: JEM, data: Data) -> tuple[int, ...]:
        """Return the shape of one sample of the data."""
        return tuple(data.shape)

    def task(self, config: Config, prepared: Prepared, model: JEM, *, generator: torch.Generator) -> Task:
        """Return the objective of eqs. 6.26 to 6.31 on the training data, with its curves and a guard."""
        own, training, data, device = self.own(config), config.training, prepared.data, config.run.own_device
        (x, y), few = labeled(data), None
        if own.labels:
            rows = known_labels(y, own.labels, generator=generator)
            few = (x[rows].to(device), y[rows].to(device))
            y = torch.full_like(y, -1)
        buffer = None
        if own.buffer and not own.baseline:
            n_classes = model.n_classes if own.class_chains else None
            buffer = ReplayBuffer(training.n_chains, own.renewal, n_classes, self.new_starts(config, data))
        objective = JointLikelihood(
            n_steps=training.n_steps,
            sampler=self.sampler(config),
            buffer=buffer,
            box=model.box if own.clamp else None,
            classification_weight=own.classification_weight,
            generation_weight=0.0 if own.baseline else own.generation_weight,
            input_noise=own.input_noise,
            energy_penalty=own.energy_penalty,
            labeled=few,
            n_labeled=min(own.n_labeled, own.labels or own.n_labeled),
        )
        valid = None
        if data.valid is not None and data.valid_labels is not None:
            valid = (data.valid.to(device), data.valid_labels.to(device))
        return Task((x, y), objective, [JointCurves(valid), Guard(n_tries=own.n_tries)])

    def sampler(self, config: Config) -> Langevin:
        """Return the steps of the chains: those of eq. 6.28 of Tomczak's chapter, clipped if `limit` is not 0."""
        own = self.own(config)
        return Langevin(own.step_size, own.noise, own.limit or None)

    def starts(self, config: Config, data: Data) -> ClassGaussians | None:
        """Return where chains start: a Gaussian for each class (one for all where few labels are known), or None."""
        own = self.own(config)
        if own.starts == "uniform" or data.train_labels is None:
            return None
        groups = torch.zeros_like(data.train_labels) if own.labels else data.train_labels
        return ClassGaussians.fitted(data.train.to(config.run.own_device), groups, floor=_STARTS_FLOOR)

    def new_starts(self, config: Config, data: Data) -> ClassGaussians | None:
        """Return where new chains of the buffer start: as `starts`, or of all kinds of `cloud_starts`."""
        own = self.own(config)
        if own.starts != "clouds":
            return self.starts(config, data)
        if own.class_chains:
            raise ValueError('`starts = "clouds"` have no class. Leave `class_chains` out, or use "class-gaussians".')
        return cloud_starts(data.train.to(config.run.own_device))

    def outline(self, config: Config, prepared: Prepared) -> Prepared:
        """Return a few rows and the law of the starts; of a law that would be too large, many rows instead."""
        laws = self.starts(config, prepared.data)
        if laws is None:
            return few_rows(prepared)
        if laws.factor.numel() > _MAX_LAW:
            return few_rows(prepared, _MANY_ROWS)
        return dataclasses.replace(few_rows(prepared), kept={"starts.mean": laws.mean, "starts.factor": laws.factor})

    def start(
        self, config: Config, prepared: Prepared, n: int, y: Tensor | None = None, *, generator: torch.Generator
    ) -> Tensor | None:
        """Return where `n` chains start, of classes `y` if given; None leaves it to the model."""
        laws: ClassGaussians | None
        if "starts.mean" in prepared.kept:
            mean, factor = (prepared.kept[f"starts.{name}"].to(config.run.own_device) for name in ("mean", "factor"))
            laws = ClassGaussians(mean, factor)
        else:
            laws = self.starts(config, prepared.data)
        if laws is None:
            return None
        anything = torch.full((n,), -1, device=laws.mean.device)
        classes = anything if y is None or self.own(config).labels else y.to(anything)
        return laws.initial(classes, generator=generator)

    def origin(self, config: Config) -> str:
        """Return where chains start, in words."""
        return "noise" if self.own(config).starts == "uniform" else "Gaussians fitted to the data"

    def draw(
        self, trained: Trained, n: int, *, n_steps: int, y: int | None = None, generator: torch.Generator
    ) -> Tensor:
        """Return the ends of chains of `p(x)`, or of `p(x | y)` if a class is given."""
        if y is None:
            return super().draw(trained, n, n_steps=n_steps, generator=generator)
        model: JEM = trained.model
        if model.n_classes is not None and y >= model.n_classes:
            raise ValueError(f"The classes of {trained.data.name} are 0..{model.n_classes - 1}. Got {y}.")
        return of_classes(trained, torch.full((n,), y), n_steps=n_steps, generator=generator)

    def scores(self, trained: Trained, *, n_chains: int | None = None, n_betas: int | None = None) -> dict[str, Any]:
        """Return the accuracy on each split, the calibration error, how outliers are told apart, and log-likelihoods.

        The last three are of the test data (validation data where there are none). AUROC and FPR at 95 % recall are by
        free energy, by the length of its slope, and by the largest class probability. log p(x) is that of the law on
        the box, or with the base measure, whose log Z is estimated by annealing; with more than 100 values a sample
        that cannot be trusted and is only tried when `n_chains` or `n_betas` is given.
        """
        data, model = trained.data, trained.model
        generator = torch.Generator().manual_seed(trained.config.run.seed + 1)
        scores: dict[str, Any] = {"data": str(data), "note": data.note, "accuracy": {}}
        for split in SPLITS:
            if (found := trained.labeled(split)) is not None:
                held_out, (x, y) = split, found
                probabilities = class_probabilities(model, x)
                scores["accuracy"][split] = accuracy(probabilities, y)
        error = expected_calibration_error(probabilities, y.to(probabilities.device))
        scores["calibration_error"] = {"value": error, "split": held_out, "n": len(y)}
        scores["outliers"] = outlier_table(model, x, self.outliers(trained, x, generator=generator))
        scores["rollbacks"] = int(next((r["rollbacks"] for r in reversed(trained.records) if "rollbacks" in r), 0))
        own = self.own(trained.config)
        scores["weights"] = {
            "classification": own.classification_weight,
            "generation": 0.0 if own.baseline else own.generation_weight,
        }
        if own.baseline:
            return scores | {"likelihood": "none: a plain classifier was trained, L_gen was left out"}
        return scores | energy_likelihood(trained, n_chains, n_betas, noise=own.input_noise, generator=generator)

    def outliers(self, trained: Trained, x: Tensor, *, generator: torch.Generator) -> dict[str, Tensor]:
        """Return what is not the data, as many of each as there are samples."""
        section, box = trained.config.data, trained.model.box
        return outliers(x, section.name, box=box, data_dir=section.data_dir, generator=generator)

    def lines(self, scores: Mapping[str, Any]) -> list[str]:
        """Return what the classifier does, and the likelihoods."""
        first = announcement(scores)
        return [*first, *class_lines(scores), *super().lines(scores)[len(first) :]]

    def headline(self, scores: Mapping[str, Any]) -> str:
        """Return the accuracy on the test data, and the likelihood where there is one."""
        found = scores["accuracy"].get("test")
        nats = super().headline(scores)
        return ", ".join([*([f"accuracy {found['value']:.2%}"] if found else []), *([nats] if nats else [])])

    def verdict(self, scores: Mapping[str, Any]) -> list[str]:
        """Return what the classifier does, in sentences."""
        return class_sentences(scores)

    def size(self, config: Config) -> str:
        """Return the name of the network."""
        return self.own(config).network

    def sections(self) -> tuple[str | PanelMaker, ...]:
        """Return what is shown of any energy, and samples of each class, calibration and outliers."""
        own = (self.by_class, calibration, self.told_apart)
        return "learning", "samples", *own, "density", "inpainting", "energies"

    def by_class(self, subject: Subject) -> Panel | None:
        """Return samples of `p(x | y)`, one column for each class."""
        model: JEM = subject.model
        if subject.image is None or model.n_classes is None:
            return None
        n = min(model.n_classes, _N_CLASSES)
        y, n_steps = torch.arange(n).repeat(_N_EACH), min(subject.n_steps, _N_STEPS)
        x = of_classes(subject.trained, y, n_steps=n_steps, generator=subject.generator)
        share = (model.classify(x).cpu() == y).double().mean().item()
        caption = (
            f"Chains of p(x | y), one column a class, {n_steps:,} steps from {subject.trained.origin}. The model "
            f"itself takes {share:.0%} of them for their class."
        )
        return Panel(
            "Samples of each class", "Nothing was selected.", [ImageGrid("classes", caption, subject.shown(x), n)]
        )

    def told_apart(self, subject: Subject) -> Panel | None:
        """Return histograms of three scores on held-out samples and on each set of outliers."""
        found = held_out_labels(subject.trained)
        if found is None:
            return None
        name, x, _ = found
        seed = subject.trained.config.run.seed + 1  # the outliers of the evaluation
        others = self.outliers(subject.trained, x, generator=torch.Generator().manual_seed(seed))
        inside, pictures = outlier_scores(subject.model, x), list[Shown]()
        for other, values in others.items():
            outside = outlier_scores(subject.model, values)
            for score, (_, said) in OUTLIER_SCORES.items():
                file = f"outliers-{other.replace(' ', '-')}-{score.replace('_', '-')}"
                both = (inside[score], outside[score])
                title = f"AUROC {auroc(*both):.3f}, FPR at 95 % recall {fpr95(*both):.3f}"
                sets = dict(zip(("in distribution", "out of distribution"), both, strict=True))
                pictures.append(Histograms(file, f"{said}, of {name} samples and of {other}.", sets, title, "score"))
        text = "A larger score means more like the data. AUROC 1 tells all apart, ½ is chance."
        return Panel("Out of distribution", text, pictures)


def labeled(data: Data) -> tuple[Tensor, Tensor]:
    """Return the training samples with their classes."""
    if data.train_labels is None:
        raise ValueError(f"{data.name} has no labels, and a joint model learns classes. Choose other data.")
    return data.train, data.train_labels


def of_classes(trained: Trained, y: Tensor, *, n_steps: int, generator: torch.Generator) -> Tensor:
    """Return the ends of chains of `p(x | y)`, one for each class in `y`."""
    return sample(
        trained.model.given_class(y),
        len(y),
        sampler=trained.sampler,
        n_steps=n_steps,
        start=trained.start(len(y), y, generator=generator),
        generator=generator,
    )
