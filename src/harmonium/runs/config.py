"""The configuration of a run: sections of a TOML file, checked in plain words."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

import tomli_w
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from harmonium.runs.recipes import recipe


class ConfigError(ValueError):
    """The configuration is not one; the message has a line for each thing to change."""


class Section(BaseModel):
    """A section of the configuration: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


class DataSection(Section):
    """Which data, and how their values are made: a known name or a path, binarization, standardization."""

    name: str
    data_dir: str | None = None
    binarize: Literal["none", "threshold", "sample", "resample", "scale"] = "none"
    standardize: bool = True
    seed: int = Field(default=0, ge=0)
    options: dict[str, Any] = Field(default_factory=dict)


class ModelSection(Section):
    """Which model; `options` are those of its kind."""

    kind: str = "rbm"
    n_hidden: int = Field(default=500, ge=1)
    hidden: str = "bernoulli"
    options: dict[str, Any] = Field(default_factory=dict)

    @field_validator("kind")
    @classmethod
    def _known_kind(cls, value: str) -> str:
        from harmonium.runs.build import MODELS  # it needs this module

        return known(value, MODELS)

    @field_validator("hidden")
    @classmethod
    def _known_hidden(cls, value: str) -> str:
        from harmonium.runs.build import HIDDEN

        return known(value, HIDDEN)


class TrainingSection(Section):
    """How it learns. A rate, limit or target of 0 is off."""

    objective: str = "pcd"
    n_steps: int = Field(default=1, ge=1)
    n_chains: int = Field(default=128, ge=1)
    betas: list[float] = Field(default_factory=lambda: [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    epochs: int = Field(default=20, ge=0)
    batch_size: int = Field(default=128, ge=1)
    optimizer: Literal["sgd", "adam"] = "sgd"
    learning_rate: float = Field(default=0.05, gt=0)
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    final_learning_rate: float = Field(default=0.0, ge=0)
    momentum: float = Field(default=0.0, ge=0, lt=1)
    weight_decay: float = Field(default=0.0, ge=0)
    centering: bool = False
    sparsity_target: float = Field(default=0.1, gt=0, lt=1)
    sparsity_rate: float = Field(default=0.0, ge=0)
    clip: float = Field(default=0.0, ge=0)
    norm_limit: float = Field(default=0.0, ge=0)
    average: float = Field(default=0.0, ge=0, lt=1)
    track_likelihood: bool = True
    options: dict[str, Any] = Field(default_factory=dict)

    @field_validator("objective")
    @classmethod
    def _known_objective(cls, value: str) -> str:
        from harmonium.runs.build import OBJECTIVES

        return known(value, OBJECTIVES)

    @model_validator(mode="after")
    def _schedule_goes_somewhere(self) -> Self:
        if self.final_learning_rate and self.schedule == "constant":
            raise ValueError("final_learning_rate needs a schedule that goes there: choose linear or cosine")
        return self


class JointSection(Section):
    """How a joint energy model is made and learns; for model kind `jem` only.

    Chains take `training.n_steps` Langevin steps `x ← x - step_size ∂F/∂x + noise ε` (eq. 6.28 of Tomczak's chapter) at
    each update. With `buffer` they are `training.n_chains` persistent ones, which start anew with probability
    `renewal`; `class_chains` gives each a class. `starts` are uniform, or blurred data, or (images) those and clouds.
    `labels` is how many labels are known, 0 for all; `baseline` leaves L_gen out: a plain classifier. A guard returns
    to the last good state up to `n_tries` times.
    """

    network: str = "mlp"
    step_size: float = Field(default=0.2, gt=0)
    noise: float = Field(default=0.05, ge=0)
    limit: float = Field(default=0.0, ge=0)
    buffer: bool = True
    renewal: float = Field(default=0.02, ge=0, le=1)
    class_chains: bool = False
    starts: Literal["uniform", "class-gaussians", "clouds"] = "uniform"
    clamp: bool = False
    classification_weight: float = Field(default=1.0, ge=0)
    generation_weight: float = Field(default=1.0, ge=0)
    input_noise: float = Field(default=0.1, ge=0)
    energy_penalty: float = Field(default=0.0, ge=0)
    labels: int = Field(default=0, ge=0)
    n_labeled: int = Field(default=64, ge=1)
    baseline: bool = False
    n_tries: int = Field(default=10, ge=0)

    @field_validator("network")
    @classmethod
    def _known_network(cls, value: str) -> str:
        from harmonium.runs.networks import NETWORKS

        return known(value, NETWORKS)


class DeepSection(Section):
    """How a deep belief network is made and learns; for model kind `dbn` only.

    `spec` names the hidden layers from below, as in "conv 16 4x4/2, conv 32 4x4/2, dense 200, dense 500"; "" chooses by
    the size of the images. All units have `levels` 0..N, 0 standing for those of the data (255 for 8-bit images); the
    top machine alone, from which samples are drawn, is binary. `order`: the machines below the top learn together and
    the top after them, or all at once ("joint"), or one after another ("greedy"). `spread` is that of the fields at the
    start (see `initialize_layers`). `training.learning_rate` is that of `layer_rates`; `training.objective`, `n_steps`
    and `n_chains` are of the top machine: those below learn by means.
    """

    spec: str = ""
    levels: int = Field(default=0, ge=0)
    order: Literal["top-last", "joint", "greedy"] = "top-last"
    spread: float = Field(default=0.3, gt=0)


class RunSection(Section):
    """Where and how it runs: seed, device, threads, checkpoints, and what is done when training has ended.

    A checkpoint is written at the end of an epoch, when at least a second has passed since the last; within a long
    epoch every `checkpoint_seconds`, and every `checkpoint_updates` updates if that is not 0. log Z is estimated with
    `ais_chains` annealed chains over `ais_betas` temperatures where it cannot be counted.
    """

    seed: int = Field(default=0, ge=0)
    device: str = "cpu"
    threads: int | None = Field(default=None, ge=1)
    checkpoint_seconds: float = Field(default=60.0, gt=0)
    checkpoint_updates: int = Field(default=0, ge=0)
    evaluate: bool = True
    ais_chains: int = Field(default=512, ge=2)
    ais_betas: int = Field(default=1000, ge=2)
    report: bool = True


class Config(Section):
    """All that decides a run. The same configuration gives the same run, bit for bit, on the same machine.

    >>> config = Config.resolve({"data": {"name": "moons"}, "model": {"kind": "gaussian-rbm"}})
    >>> config.model.n_hidden
    16
    """

    data: DataSection
    model: ModelSection = Field(default_factory=lambda: ModelSection())
    training: TrainingSection = Field(default_factory=lambda: TrainingSection())
    joint: JointSection = Field(default_factory=lambda: JointSection())
    deep: DeepSection = Field(default_factory=lambda: DeepSection())
    run: RunSection = Field(default_factory=lambda: RunSection())

    @classmethod
    def resolve(cls, *layers: Mapping[str, Any]) -> Config:
        """Merge settings, later ones win, over the recipe for their data and model, and check them all."""
        given: dict[str, Any] = {}
        for layer in layers:
            given = merge(given, layer)
        data, model = given.get("data", {}), given.get("model", {})
        name, kind = (
            part.get(key) if isinstance(part, Mapping) else None for part, key in ((data, "name"), (model, "kind"))
        )
        if not name:
            raise ConfigError("No data is chosen. Give --data with a name or a path, or `name` in section [data].")
        refuse_unused(given, str(kind or "rbm"))
        settings = merge(recipe(str(name), str(kind or "rbm")), given)
        try:
            return cls.model_validate(settings)
        except ValidationError as error:
            raise ConfigError(in_words(error)) from error

    @model_serializer(mode="wrap")
    def _used(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return the settings that the kind of model reads."""
        settings: dict[str, Any] = handler(self)
        for name in unused(self.model.kind):
            section, _, key = name.partition(".")
            (settings[section] if key else settings).pop(key or section, None)
        return settings

    @classmethod
    def read(cls, path: Path) -> Config:
        """Read a resolved configuration."""
        return cls.resolve(read_toml(path))

    def to_toml(self) -> str:
        """Return the whole configuration as TOML; what is None is left out, since TOML has no word for it.

        >>> print(Config.resolve({"data": {"name": "moons"}}).to_toml().splitlines()[1])
        name = "moons"
        """
        return tomli_w.dumps(self.model_dump(exclude_none=True))


def unused(kind: str) -> tuple[str, ...]:
    """Return the settings, or whole sections, that a kind of model does not read."""
    from harmonium.runs.build import MODELS  # it needs this module

    return MODELS[kind].unused if kind in MODELS else ()


def refuse_unused(given: Mapping[str, Any], kind: str) -> None:
    """Raise if settings were given that the kind of model would ignore."""
    for name in unused(kind):
        section, _, key = name.partition(".")
        part = given.get(section)
        if section in given and (not key or (isinstance(part, Mapping) and key in part)):
            where = f"[{section}] {key}".rstrip()
            raise ConfigError(f"{where} is not for model {kind!r}, which does not read it. Leave it out.")


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings where those above win.

    >>> merge({"run": {"seed": 0, "device": "cpu"}}, {"run": {"seed": 1}})
    {'run': {'seed': 1, 'device': 'cpu'}}
    """
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        result[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file, with errors in words."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"There is no configuration file {path}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error


def known(value: str, table: Mapping[str, Any]) -> str:
    """Return the value if the table has it."""
    if value not in table:
        raise ValueError(f"must be one of {', '.join(table)}")
    return value


def in_words(error: ValidationError) -> str:
    """Return a line for each complaint of pydantic: where, what is wrong, and what was given."""
    lines = []
    for item in error.errors():
        section, *keys = (str(part) for part in item["loc"])
        where = f"[{section}] {'.'.join(keys)}".rstrip()
        if item["type"] == "extra_forbidden":
            names = Config.model_fields if not keys else Config.model_fields[section].annotation.model_fields  # type: ignore[union-attr]
            lines.append(f"{where} is not a setting. There are: {', '.join(names)}.")
            continue
        if item["type"] == "missing":
            lines.append(f"{where} must be given.")
            continue
        text = item["msg"].removeprefix("Value error, ").replace("Input should", "must")
        lines.append(f"{where} {text}. Got {item['input']!r}.")
    return "\n".join(lines)
