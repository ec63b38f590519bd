"""The settings of a run that all kinds of models share, section by section. A field with a description has a flag."""

from __future__ import annotations

import re
from typing import Any, Literal, Self

import tomli_w
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from harmonium import workers
from harmonium.partition import METHODS
from harmonium.runs.choices import HIDDEN, OBJECTIVES, known

MAX_COUNT = 10**9
"""Beyond this nobody lives to see the end."""


class Section(BaseModel):
    """A section of the configuration: unknown keys and numbers that are not finite are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _truth_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and "bool" not in str(cls.model_fields[info.field_name or ""].annotation):
            raise ValueError("must not be true or false")
        return value


class DataSection(Section):
    """Which data, and how their values are made: a known name or a path, binarization, standardization."""

    name: str = Field(
        description="A known data set (see `harmonium info`) or a path.", json_schema_extra={"flag": "data"}
    )
    data_dir: str | None = None
    binarize: Literal["none", "threshold", "sample", "resample", "scale"] = Field(
        default="none", description="How gray values become 0 and 1: threshold, sample, resample, or scale."
    )
    standardize: bool = Field(default=True, description="Standardize real values.")
    columns: str | dict[str, str] = Field(
        default="", description="Types of a table's columns where the guess is wrong: age=real,id=skip."
    )
    seed: int = Field(default=0, ge=0, lt=2**63)
    options: dict[str, Any] = Field(default_factory=dict)

    @property
    def types(self) -> dict[str, str]:
        """The types of columns by their names.

        >>> DataSection(name="t.csv", columns="age=real, id=skip").types
        {'age': 'real', 'id': 'skip'}
        """
        if isinstance(self.columns, dict):
            return self.columns
        pairs = [part.rpartition("=") for part in self.columns.split(",") if part.strip()]
        return {name.strip(): kind.strip() for name, _, kind in pairs}

    @field_validator("columns")
    @classmethod
    def _are_pairs(cls, value: str | dict[str, str]) -> str | dict[str, str]:
        if isinstance(value, str) and not all("=" in part for part in value.split(",") if part.strip()):
            raise ValueError("must be pairs of a name and a type, such as age=real,id=skip")
        return value


class ModelSection(Section):
    """Which model; `options` are those of its kind."""

    kind: str = Field(
        default="rbm",
        description="The kind of model (see `harmonium info`): {kinds}.",
        json_schema_extra={"flag": "model"},
    )
    n_hidden: int = Field(default=500, ge=1, description="Number of hidden units.")
    hidden: str = Field(default="bernoulli", description=f"Hidden units: {', '.join(HIDDEN)}.")
    options: dict[str, Any] = Field(default_factory=dict)

    @field_validator("hidden")
    @classmethod
    def _known_hidden(cls, value: str) -> str:
        return known(value, HIDDEN)


class TrainingSection(Section):
    """How it learns. A rate, limit or target of 0 is off. `restarts` are epochs at which the schedule begins anew."""

    epochs: int = Field(default=20, ge=0, le=MAX_COUNT, description="Passes over the data.")
    batch_size: int = Field(default=128, ge=1, le=MAX_COUNT, description="Samples in an update.")
    objective: str = Field(default="pcd", description=f"The objective: {', '.join(OBJECTIVES)}.")
    n_steps: int = Field(default=1, ge=1, le=MAX_COUNT, description="Steps of the chains in an update.")
    n_chains: int = Field(default=128, ge=1, description="Persistent chains.")
    betas: list[float] = Field(default_factory=lambda: [0.0, 0.2, 0.4, 0.6, 0.8, 1.0], min_length=1)
    fast_rate: float = Field(default=0.05, gt=0)
    n_units: int = Field(
        default=0, ge=0, description="Units in an update of pseudo-likelihood and its kin, drawn anew; 0: all."
    )
    optimizer: Literal["sgd", "adam"] = Field(default="sgd", description="sgd or adam.")
    learning_rate: float = Field(default=0.05, gt=0, le=1e6, description="Learning rate at the start.")
    schedule: Literal["constant", "linear", "cosine"] = Field(
        default="constant", description="constant, linear or cosine."
    )
    final_learning_rate: float = Field(default=0.0, ge=0, description="Learning rate at the end of a schedule.")
    restarts: list[int] = Field(default_factory=list)
    momentum: float = Field(default=0.0, ge=0, lt=1, description="Momentum of sgd.")
    weight_decay: float = Field(default=0.0, ge=0, description="Decay of the weights.")
    l1_decay: float = Field(default=0.0, ge=0, description="Decay of the weights towards zero, all at one speed.")
    centering: bool = Field(default=False, description="Center the gradient.")
    sparsity_target: float = Field(default=0.1, gt=0, lt=1)
    sparsity_rate: float = Field(default=0.0, ge=0)
    clip: float = Field(default=0.0, ge=0, description="Largest norm of the gradient.")
    norm_limit: float = Field(default=0.0, ge=0)
    average: float = Field(
        default=0.0, ge=0, lt=1, description="Memory of the parameter average, such as 0.999; 0 is off."
    )
    track_likelihood: bool = True
    patience: int = Field(
        default=0,
        ge=0,
        description="Stop after so many epochs without a better validation likelihood, and keep the best; 0 is off.",
    )
    options: dict[str, Any] = Field(default_factory=dict)

    @field_validator("objective")
    @classmethod
    def _known_objective(cls, value: str) -> str:
        return known(value, OBJECTIVES)

    @model_validator(mode="after")
    def _schedule_goes_somewhere(self) -> Self:
        if self.final_learning_rate and self.schedule == "constant":
            raise ValueError("final_learning_rate needs a schedule that goes there: choose linear or cosine")
        return self


class RunSection(Section):
    """Where and how it runs: seed, device, threads, checkpoints, and what is done when training has ended.

    A checkpoint is written at the end of an epoch, when at least a second has passed since the last; within a long
    epoch every `checkpoint_seconds`, and every `checkpoint_updates` updates if that is not 0. Where log Z cannot be
    counted it is estimated by `log_z`, a sandwich unless told, with `ais_chains` chains over `ais_betas` temperatures.
    """

    seed: int = Field(default=0, ge=0, lt=2**63, description="Seed of all random numbers.")
    device: str = Field(default="cpu", description="cpu or cuda.")
    threads: int | None = Field(default=None, ge=1, le=1024, description="Threads to compute with.")
    precision: Literal["float32", "tf32", "bf16"] = Field(
        default="float32", description="Matrix products of training: float32, or tf32 or bf16 where the processor can."
    )
    checkpoint_seconds: float = Field(default=60.0, gt=0)
    checkpoint_updates: int = Field(default=0, ge=0)
    evaluate: bool = Field(default=True, description="Evaluate at the end.")
    log_z: str | None = Field(default=None, description="How log Z is estimated: a method of harmonium logz.")
    ais_chains: int = Field(default=512, ge=2)
    ais_betas: int = Field(default=1000, ge=2)
    report: bool = Field(default=True, description="Write report.html at the end.")

    @property
    def own_device(self) -> str:
        """The device of this worker: of several on a host each has its own GPU."""
        return workers.device_of_worker(self.device)

    @field_validator("log_z")
    @classmethod
    def _known_method(cls, value: str | None) -> str | None:
        return None if value is None else known(value, METHODS)

    @field_validator("device")
    @classmethod
    def _known_device(cls, value: str) -> str:
        if re.fullmatch(r"cpu|cuda(:\d{1,2})?", value) is None:
            raise ValueError("must be cpu or cuda, or one of several such as cuda:1")
        return value


class Config(Section):
    """All that decides a run. The same configuration gives the same run, bit for bit, on the same machine.

    `own` are the settings of the kind of model, written in a section with its name; `unread` names those of the shared
    settings, as `section.key`, that this kind does not read and that are not written. `resolve` makes all of it.
    """

    data: DataSection
    model: ModelSection = Field(default_factory=lambda: ModelSection())
    training: TrainingSection = Field(default_factory=lambda: TrainingSection())
    run: RunSection = Field(default_factory=lambda: RunSection())
    own: SerializeAsAny[Section] = Field(default_factory=Section)
    unread: tuple[str, ...] = Field(default=(), exclude=True)

    @model_serializer(mode="wrap")
    def _as_read(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return the settings that the kind of model reads."""
        settings: dict[str, Any] = handler(self)
        own, run = settings.pop("own"), settings.pop("run")
        settings |= ({self.model.kind: own} if own else {}) | {"run": run}
        for name in self.unread:
            section, _, key = name.partition(".")
            settings[section].pop(key, None)
        return settings

    def to_toml(self) -> str:
        """Return the whole configuration as TOML; what is None is left out, since TOML has no word for it.

        >>> print(Config(data=DataSection(name="moons")).to_toml().splitlines()[1])
        name = "moons"
        """
        return tomli_w.dumps(self.model_dump(exclude_none=True))
