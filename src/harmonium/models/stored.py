"""Models as files: one safetensors file that holds the parameters and says in plain words what the model is."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import nn

FORMAT = "harmonium-1"
"""What the metadata of a file call its format."""

CLASS = "class"


class Stored(nn.Module):
    """A model that can be written to a file with `save` and comes back with `harmonium.load`.

    The file holds the tensors under names that a person can read, and as JSON in its metadata the class of the model
    with the arguments of its constructor, down to the units and couplings: no code and no pickle.
    """

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model into one safetensors file. A file that is there already is kept, unless `overwrite`.

        >>> import tempfile
        >>> rbm = RBM(Gaussian(2), Bernoulli(16))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rbm.save(f"{folder}/moons.safetensors")
        ...     again = load(f"{folder}/moons.safetensors")
        >>> torch.equal(again.weight, rbm.weight)
        True
        """
        path = Path(path)
        if path.exists() and not overwrite:
            raise ValueError(f"{path} is there already. Choose another name, or say save(path, overwrite=True).")
        if not path.parent.is_dir():
            raise ValueError(f"There is no folder {path.parent} to save into. Make it first, or choose another.")
        described = describe(self)
        rebuild(described)  # what cannot be read again is not written
        names = self.stored_names()
        tensors = {names[key]: value.detach().cpu().contiguous() for key, value in self.state_dict().items()}
        metadata = {"format": FORMAT, "model": json.dumps(described, indent=1)}
        save_file({name: value.clone() for name, value in tensors.items()}, path, metadata)

    def stored_names(self) -> dict[str, str]:
        """Return the name in a file of each entry of `state_dict`; a machine names them after its layers."""
        names = {key: key for key in self.state_dict()}
        for prefix, module in self.named_modules():
            if module is not self and isinstance(module, Stored):
                names |= {f"{prefix}.{key}": f"{prefix}.{name}" for key, name in module.stored_names().items()}
        return names


def load(path: str | os.PathLike[str]) -> Any:
    """Return the model that `save` has written, ready to be used.

    Only classes of harmonium are built, and nothing in the file is run.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no file {path}.")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
        tensors = load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file, or is damaged: {error}.") from error
    if metadata.get("format") != FORMAT:
        raise ValueError(
            f"{path} does not say what model it holds (format {metadata.get('format')!r}, not {FORMAT!r}). Files of "
            "model.save(path) do; the parameters of a run are read with harmonium.runs.Run.open(folder).model()."
        )
    model = rebuild(json.loads(metadata["model"]))
    floats = [value.dtype for value in tensors.values() if value.is_floating_point()]
    model.to(floats[0] if floats else torch.float32)
    names = model.stored_names()
    absent, strange = set(names.values()) - set(tensors), set(tensors) - set(names.values())
    if absent or strange:
        raise ValueError(f"{path} does not fit its own description: it lacks {sorted(absent)}, has {sorted(strange)}.")
    model.load_state_dict({key: tensors[name] for key, name in names.items()})
    return model.eval()


def describe(thing: Any) -> Any:
    """Return anything that makes up a model as plain values: a module as its class and the arguments it was given."""
    if isinstance(thing, nn.ModuleList | list | tuple):
        return [describe(item) for item in thing]
    if isinstance(thing, nn.ModuleDict | Mapping):
        return {name: describe(item) for name, item in thing.items()}
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    if isinstance(thing, torch.Tensor):
        return thing.tolist()
    if isinstance(thing, nn.Module):
        name = type(thing).__name__
        if known_classes().get(name) is not type(thing):
            raise ValueError(
                f"{name} is not a class of harmonium, so that no file can bring it back. Save its parameters with "
                "safetensors and model.state_dict(), and build it again in your own code."
            )
        return {CLASS: name} | {argument: describe(value) for argument, value in _arguments(thing)}
    raise ValueError(f"{type(thing).__name__} cannot be written to a file as plain values. Got {thing!r}.")


def rebuild(plain: Any) -> Any:
    """Return what `describe` has described, its parameters at their start."""
    if isinstance(plain, list):
        return tuple(rebuild(item) for item in plain)
    if not isinstance(plain, dict):
        return plain
    values = {name: rebuild(value) for name, value in plain.items() if name != CLASS}
    if CLASS not in plain:
        return values
    kind = known_classes().get(plain[CLASS])
    if kind is None:
        known = ", ".join(sorted(known_classes()))
        raise ValueError(f"The file holds a {plain[CLASS]!r}, which is not a class of harmonium. It knows {known}.")
    many: tuple[Any, ...] = ()
    for name, parameter in _parameters(kind).items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            found = values.pop(name)
            many = tuple(found.values()) if isinstance(found, dict) else found
    try:
        return kind(*many, **values)
    except TypeError as error:
        raise ValueError(f"The file describes a {plain[CLASS]} that this version does not know: {error}.") from error


def known_classes() -> dict[str, type[nn.Module]]:
    """Return the classes of modules that a file may name: all of those in harmonium, by their names."""

    def below(kind: type[nn.Module]) -> Iterator[type[nn.Module]]:
        yield kind
        for child in kind.__subclasses__():
            yield from below(child)

    return {
        kind.__name__: kind
        for kind in below(nn.Module)
        if kind.__module__.startswith("harmonium.") and not kind.__name__.startswith("_")
    }


def _parameters(kind: type) -> dict[str, inspect.Parameter]:
    """Return the arguments of a constructor that say what is built; the generator only draws first weights."""
    found = dict(inspect.signature(kind.__init__).parameters)  # type: ignore[misc]
    return {name: p for name, p in list(found.items())[1:] if name != "generator"}


def _arguments(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """Yield the arguments that a module was made with: constructors keep them under their names."""
    layers = getattr(module, "units", None)
    for name in _parameters(type(module)):
        if hasattr(module, name):
            yield name, getattr(module, name)
        elif isinstance(layers, nn.ModuleDict) and name in layers:
            yield name, layers[name]
        elif name == "shape" and isinstance(layers, nn.ModuleDict):  # a machine of one layer
            yield name, next(iter(layers.values())).shape
        else:
            raise ValueError(f"{type(module).__name__} does not keep its argument `{name}`, and cannot be written.")
