"""The flags of `harmonium train`: one for each setting with a description, of all sections and of all kinds."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo

from harmonium.runs import KINDS, Section
from harmonium.runs.settings import DataSection, ModelSection, RunSection, TrainingSection

SHARED: dict[str, tuple[type[Section], str]] = {
    "data": (DataSection, "Data and model"),
    "model": (ModelSection, "Data and model"),
    "training": (TrainingSection, "Learning"),
    "run": (RunSection, "Running"),
}
"""The sections that all kinds share, each with its heading in the help."""

_SEVERAL = "Of several kinds of model"


@dataclass(frozen=True)
class Flag:
    """A flag for a setting: its name in Python, the place of the setting, and what `--help` says."""

    name: str
    section: str
    key: str
    type: type
    text: str
    heading: str

    def parameter(self) -> inspect.Parameter:
        """Return the flag as a parameter of a command; None stands for a flag that is not given."""
        word = self.name.replace("_", "-")
        names = (f"--{word}/--no-{word}",) if self.type is bool else (f"--{word}",)
        option = typer.Option(*names, help=self.text, rich_help_panel=self.heading, show_default=False)
        annotation = Annotated[self.type | None, option]  # type: ignore[name-defined]
        return inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def all_flags() -> dict[str, Flag]:
    """Return the flags by their names in Python: of the shared sections, then of each kind.

    A setting that several kinds have under one name has one flag, which goes to the kind that is trained; its text says
    what it is for each of them.
    """
    flags: dict[str, Flag] = {}
    for section, (settings, heading) in SHARED.items():
        found = flags_of(section, settings, heading, kinds=", ".join(KINDS))
        flags |= {flag.name: flag for flag in found}
    found_of: dict[str, list[Flag]] = {}
    for kind in KINDS.values():
        for flag in flags_of(kind.name, kind.settings, f"--model {kind.name}: {kind.summary}"):
            if flag.name in flags:
                raise ValueError(f"The setting {flag.key!r} of {kind.name} has a flag that all kinds have. Rename it.")
            found_of.setdefault(flag.name, []).append(flag)
    alone = {name: found[0] for name, found in found_of.items() if len(found) == 1}
    flags |= alone | {name: _of_several(found) for name, found in found_of.items() if name not in alone}
    return dict(sorted(flags.items(), key=lambda item: item[1].section == "run"))  # those come last


def _of_several(flags: list[Flag]) -> Flag:
    """Return the one flag of a setting that several kinds have, with what it says for each."""
    kinds: dict[str, list[str]] = {}
    for flag in flags:
        kinds.setdefault(flag.text, []).append(flag.section)
    text = " ".join(f"{', '.join(names)}: {text}" for text, names in kinds.items())
    of_all = {flag.type for flag in flags}
    return replace(flags[0], text=text, heading=_SEVERAL, type=flags[0].type if len(of_all) == 1 else str)


def flags_of(section: str, settings: type[Section], heading: str, **words: str) -> Iterator[Flag]:
    """Yield a flag for each field with a description; `words` fill in what it leaves open."""
    for key, field in settings.model_fields.items():
        if field.description is not None:
            extra = field.json_schema_extra
            name = str(extra["flag"]) if isinstance(extra, Mapping) and "flag" in extra else key
            text = field.description.format(**words) if words else field.description
            yield Flag(name, section, key, plain_type(field), text, heading)


def plain_type(field: FieldInfo) -> type:
    """Return the type that the command line reads: one of a choice of words is a text, None is left out."""
    found: Any = field.annotation
    if typing.get_origin(found) in (typing.Union, types.UnionType):
        found = next(part for part in typing.get_args(found) if part is not type(None))
    return str if typing.get_origin(found) is typing.Literal else found


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes `**flags` with all flags in its signature, where typer finds them."""
    signature = inspect.signature(command, eval_str=True)
    first = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    generated = [flag.parameter() for flag in all_flags().values()]

    def run(*args: Any, **kwargs: Any) -> None:
        command(*args, **kwargs)

    parameters = generated + [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in first]
    run.__doc__, run.__name__ = command.__doc__, command.__name__
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def flag_settings(given: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the flags that were given as nested settings; one that several kinds have goes to this kind.

    >>> flag_settings({"data": "moons", "n_hidden": None}, "rbm")
    {'data': {'name': 'moons'}}
    """
    flags, settings = all_flags(), dict[str, Any]()
    own = KINDS[kind].settings.model_fields if kind in KINDS else {}
    for name, value in given.items():
        if value is not None:
            flag = flags[name]
            section = kind if flag.section in KINDS and flag.key in own else flag.section
            settings.setdefault(section, {})[flag.key] = value
    return settings
