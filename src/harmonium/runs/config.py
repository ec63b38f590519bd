"""From TOML files, flags and recipes to one configuration, with errors in plain words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from harmonium.data.from_path import TABLES
from harmonium.data.gate import check_file
from harmonium.data.ratings import is_ratings
from harmonium.runs.choices import HIDDEN_OPTIONS
from harmonium.runs.kinds import KINDS, AnyKind
from harmonium.runs.settings import Config, Section

S = TypeVar("S", bound=Section)

SHARED = ("data", "model", "training", "run")
"""The sections that all kinds of models have."""

MAX_BYTES, MAX_DOTS = 2**18, 64
"""The size of a TOML file, and of a key in it: a parser takes memory with the square of the latter."""

OF_THE_MACHINE = ("data.data_dir", "run.threads")
"""Settings that say where a run is, not what it does."""


class ConfigError(ValueError):
    """The configuration is not one; the message has a line for each thing to change."""


def resolve(*layers: Mapping[str, Any]) -> Config:
    """Merge settings, later ones win, over the recipe for their data and kind of model, and check them all.

    >>> resolve({"data": {"name": "moons"}, "model": {"kind": "gaussian-rbm"}}).model.n_hidden
    16
    """
    given: dict[str, Any] = reduce(merge, layers, {})
    name = chosen(given, "data", "name")
    if not name:
        raise ConfigError("No data is chosen. Give --data with a name or a path, or `name` in section [data].")
    wanted = chosen(given, "model", "kind")
    wanted = default_kind(str(name)) if wanted is None else wanted
    if not isinstance(wanted, str) or wanted not in KINDS:
        raise ConfigError(f"[model] kind must be one of {', '.join(KINDS)}. Got {wanted!r}.")
    kind = KINDS[wanted]
    refuse_unread(given, kind)
    settings = merge(merge(kind.recipe(str(name)), given), {"model": {"kind": wanted}})
    own, complaints = _checked(kind.settings, settings.pop(kind.name, {}), kind.name)
    config, others = _checked(Config, settings, "")
    if own is None or config is None or complaints or others:
        raise ConfigError("\n".join([*others, *complaints]))
    refuse_options(config, kind)
    return config.model_copy(update={"own": own, "unread": kind.unread})


def refuse_options(config: Config, kind: AnyKind) -> None:
    """Raise if an option of the model is none: a misspelled one would be ignored."""
    if kind.options is None:
        return
    known = (*HIDDEN_OPTIONS.get(config.model.hidden, ()), *kind.options)
    for name in config.model.options:
        if name not in known:
            there = f"There are: {', '.join(known)}." if known else "There are none for this model."
            raise ConfigError(f"[model] options.{name} is not a setting. {there}")


def departures(config: Config) -> dict[str, tuple[Any, Any]]:
    """Return the settings that are not those of the recipe for its data and its kind: its value, and the recipe's.

    >>> departures(resolve({"data": {"name": "moons"}, "model": {"kind": "gaussian-rbm", "n_hidden": 8}}))
    {'model.n_hidden': (8, 16)}
    """
    recipe = flattened(resolve({"data": {"name": config.data.name}, "model": {"kind": config.model.kind}}).model_dump())
    own = {name: value for name, value in flattened(config.model_dump()).items() if name not in OF_THE_MACHINE}
    return {name: (value, recipe.get(name)) for name, value in own.items() if value != recipe.get(name)}


def flattened(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by their dotted names.

    >>> flattened({"run": {"seed": 1}})
    {'run.seed': 1}
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found |= flattened(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def default_kind(data: str) -> str:
    """Return the kind of model that data are learned by unless told: ratings and tables have their own.

    >>> default_kind("movielens"), default_kind("wine.csv"), default_kind("moons")
    ('ratings', 'table', 'rbm')
    """
    path = Path(data).expanduser()
    if data == "movielens" or (path.suffix == ".csv" and path.is_file() and is_ratings(path)):
        return "ratings"
    return "table" if data.lower().endswith(TABLES) else "rbm"


def read_config(path: Path) -> Config:
    """Read a resolved configuration."""
    return resolve(read_toml(path))


def chosen(given: Mapping[str, Any], section: str, name: str) -> Any:
    """Return a setting, or None where it, or its section, is not there.

    >>> chosen({"model": {"kind": "dbn"}}, "model", "kind")
    'dbn'
    """
    part = given.get(section)
    return part.get(name) if isinstance(part, Mapping) else None


def refuse_unread(given: Mapping[str, Any], kind: AnyKind) -> None:
    """Raise if settings were given that the kind of model would ignore, or that are none."""
    own = [kind.name] if kind.settings.model_fields else []
    for name in given:
        if name in KINDS and name not in own:
            keys = ", ".join(given[name]) if isinstance(given[name], Mapping) else ""
            raise ConfigError(
                f"[{name}] is not for model {kind.name!r}, which does not read it. Leave it out{keys and f' ({keys})'}."
            )
        if name not in (*SHARED, *own):
            raise ConfigError(f"[{name}] is not a setting. There are: {', '.join((*SHARED, *own))}.")
    for name in kind.unread:
        section, _, key = name.partition(".")
        if chosen(given, section, key) is not None:
            raise ConfigError(
                f"[{section}] {key} is not for model {kind.name!r}, which does not read it. Leave it out."
            )


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
        if check_file(path) > MAX_BYTES:
            raise ConfigError(f"{path} has more than {MAX_BYTES:,} bytes: this is no configuration.")
        text = path.read_text(encoding="utf-8")
        if any(part.count(".") > MAX_DOTS for part in re.split(r"[,=\[\]{}\n]", text)):
            raise ConfigError(f"{path} is not a configuration: a key in it has more than {MAX_DOTS} dots.")
        return tomllib.loads(text)
    except FileNotFoundError:
        raise ConfigError(f"There is no configuration file {path}.") from None
    except RecursionError:
        raise ConfigError(f"{path} is not a configuration: it is nested too deeply.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error


def _checked(model: type[S], settings: Any, section: str) -> tuple[S | None, list[str]]:
    """Return the checked settings, or None, and a line for each thing that is wrong with them."""
    try:
        return model.model_validate(settings), []
    except ValidationError as error:
        return None, in_words(error, model, section)


def in_words(error: ValidationError, model: type[BaseModel], section: str = "") -> list[str]:
    """Return a line for each complaint of pydantic: where, what is wrong, and what was given."""
    lines = []
    for item in error.errors():
        first, *keys = map(str, (section, *item["loc"]) if section else item["loc"])
        where = f"[{first}] {'.'.join(keys)}".rstrip()
        if item["type"] == "extra_forbidden":
            lines.append(f"{where} is not a setting. There are: {', '.join(_names(model, item['loc'][:-1]))}.")
        elif item["type"] == "missing":
            lines.append(f"{where} must be given.")
        else:
            text = item["msg"].removeprefix("Value error, ").replace("Input should", "must")
            lines.append(f"{where} {text}. Got {shortened(item['input'])}.")
    return lines


def shortened(value: Any) -> str:
    """Return a value as it is written, not more than a line of it.

    >>> shortened("abc"), len(shortened("x" * 10**6))
    ("'abc'", 101)
    """
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def _names(model: Any, path: Iterable[int | str]) -> list[str]:
    """Return the settings that there are at a place."""
    for key in path:
        model = model.model_fields[key].annotation
    return list(model.model_fields)
