"""What every other module speaks of: states, energies, estimates with errors, and checks of shapes."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from harmonium import native
from harmonium.display import html_table

P = ParamSpec("P")
R = TypeVar("R")


@runtime_checkable
class _Array(Protocol):
    """What NumPy can read: its arrays, and tables such as those of pandas."""

    def __array__(self) -> Any: ...


Values = Any
"""The values of a layer: a tensor, a NumPy array, or a DataFrame of numbers."""

State = dict[str, Tensor]
"""A configuration of a machine: the name of each layer and its values, `(*batch, *shape)`."""


class Filled(NamedTuple):
    """A state with its hidden layers filled in, and the fields of those that stand at their means.

    A hidden layer without a field was drawn.
    """

    state: State
    fields: State


@runtime_checkable
class EnergyModel(Protocol):
    """Anything with `free_energy(x) -> (*batch,)`, where `p(x) = exp(-free_energy(x)) / Z`."""

    def free_energy(self, x: Tensor) -> Tensor:
        """Return the free energy of each sample, up to one constant shared by all."""
        ...


@runtime_checkable
class Starts(Protocol):
    """What says where chains start: `initial(n, *, generator=None)`."""

    def initial(self, n: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw `n` points."""
        ...


class Shaped(Protocol):
    """What has the shape of one sample, as a layer of units does."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape without the batch."""
        ...


@dataclass(frozen=True)
class Estimate:
    """A number with its uncertainty: `value ± error` (one standard error), inside `[lower, upper]`.

    `kind` says where it comes from: `"exact"`, `"ais"`, `"reverse-ais"`, `"sandwich"`, `"tempering"`, `"bounds"`,
    `"bethe"`, `"perturb-and-map"`, `"bogoliubov"`. `ess` is the effective sample
    size of the weights behind it. `trusted` is False when the method itself says that the number should not be relied
    on, and `note` says why. `lower` and `upper` are statistical: they hold as often as three standard errors do.
    `at_least` and `at_most` are guaranteed, whatever any chain did. The numbers may be tensors, one entry a sample;
    `mean()` averages them, and `spread` is then the standard error over the samples, beside `error`, which they share.

    >>> print(Estimate(-85.31, 0.04, -85.5, -85.2, "sandwich"))
    -85.310 ± 0.040 [-85.500, -85.200] (sandwich)
    """

    value: Any
    error: Any
    lower: Any
    upper: Any
    kind: str
    ess: float | None = None
    trusted: bool = True
    note: str = ""
    at_least: Any = -math.inf
    at_most: Any = math.inf
    spread: float = 0.0
    n_samples: int = 1

    def mean(self) -> Estimate:
        """Return the average over the samples; their common error stays what it is, and their spread stands beside it.

        >>> print(Estimate(torch.tensor([-1.0, -2.0, -3.0]), 0.04, -3.1, -0.9, "sandwich").mean())
        -2.000 ± 0.040 [-3.100, -0.900] (sandwich), ± 0.58 over 3 samples
        """
        if isinstance(self.value, Tensor) and self.value.numel() == 0:
            raise ValueError("There is no mean of no samples. Give at least one row.")
        names = ("value", "error", "lower", "upper", "at_least", "at_most")
        means: dict[str, Any] = {
            name: torch.as_tensor(getattr(self, name), dtype=torch.float64).mean().item() for name in names
        }
        values = torch.as_tensor(self.value, dtype=torch.float64)
        n = values.numel()
        return replace(self, **means, spread=(values.std() / n**0.5).item() if n > 1 else 0.0, n_samples=n)

    def _repr_html_(self) -> str:
        """Return the numbers as a table, for notebooks."""
        if isinstance(self.value, Tensor) and self.value.numel() == 0:
            return html_table({"over": "no samples"})
        shown = self.mean() if isinstance(self.value, Tensor) and self.value.ndim else self
        rows: dict[str, Any] = {"value": f"{shown.value:.6g}", "error": f"{shown.error:.2g}", "kind": self.kind}
        rows |= {"between": f"{shown.lower:.6g} and {shown.upper:.6g}"} if self.kind != "exact" else {}
        rows |= {"over": f"{shown.n_samples:,} samples, ± {shown.spread:.2g}"} if shown.spread else {}
        rows |= {} if self.trusted else {"do not rely on it": self.note}
        return html_table(rows)

    def __str__(self) -> str:
        if isinstance(self.value, Tensor):
            return f"{tuple(self.value.shape)} values" + (f", mean {self.mean()}" if self.value.numel() else "")
        over = f", ± {self.spread:.2g} over {self.n_samples:,} samples" if self.spread else ""
        if self.kind == "exact" or (self.kind == "exact bound" and not self.error):
            shown = f"{self.value:.2f}" if self.spread > 0.02 else f"{self.value:.10g}"
            return f"{shown} ({self.kind}){over}"
        known = 0 < self.error < math.inf
        digits = min(6, max(2, 1 - math.floor(math.log10(self.error)))) if known else 2
        numbers = (
            f"{self.value:.{digits}f} ± {self.error:.{digits}f} [{self.lower:.{digits}f}, {self.upper:.{digits}f}]"
        )
        return f"{numbers} ({self.kind}){over}" + ("" if self.trusted else f", not trustworthy: {self.note}")


def check_shape(x: Tensor, shape: Iterable[int], *, name: str, layer: str, owner: object) -> None:
    """Raise unless `x` is a floating tensor of shape `(*batch, *shape)`, as the units `owner` of a layer need."""
    wanted = tuple(shape)
    if not isinstance(x, Tensor):
        raise TypeError(
            f"`{name}` must be a torch.Tensor. Got {type(x).__name__}. Convert it with torch.as_tensor({name})."
        )
    if not x.is_floating_point():
        raise TypeError(
            f"`{name}` must be a floating-point tensor to match {layer}={owner!r}. Got {x.dtype}. "
            f"Convert it with {name}.float()."
        )
    n = len(wanted)
    if x.ndim < n or tuple(x.shape[x.ndim - n :]) != wanted:
        inner = ", ".join(map(str, wanted))
        raise ValueError(
            f"`{name}` must have shape (*batch, {inner}) to match {layer}={owner!r}. Got {tuple(x.shape)}. "
            f"Reshape it, or build {layer} with the shape of your data."
        )


def check_generator(given: object) -> None:
    """Raise unless it is a generator, or None for the global one: a number is taken for one easily."""
    if given is not None and not isinstance(given, torch.Generator):
        seed = given if isinstance(given, int) else 0
        raise TypeError(
            f"`generator` must be a torch.Generator. Got {given!r}. Use torch.Generator().manual_seed({seed})."
        )


def check_dtype(x: Tensor, like: Tensor, *, name: str) -> None:
    """Raise unless `x` has the dtype of `like`, a parameter of the model."""
    if x.dtype != like.dtype:
        raise TypeError(
            f"`{name}` must be {like.dtype} to match the parameters of the model. Got {x.dtype}. "
            f"Convert it with {name}.to({like.dtype}), or the model with model.to({x.dtype})."
        )


def without_gradient(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function as `torch.no_grad()` does, at no cost where gradients are off: inner loops nest it."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        if not torch.is_grad_enabled():
            return function(*args, **kwargs)
        with torch.no_grad():
            return function(*args, **kwargs)

    return wrapper


def capabilities() -> dict[str, Any]:
    """Return what PyTorch knows of the processor: its name and instructions; an old one says nothing."""
    return dict(getattr(torch.cpu, "get_capabilities", dict)())


@functools.cache
def keep_freed_memory() -> None:
    """Ask the C library to keep freed memory for the next tensor instead of giving it back page by page.

    A loop over large tensors otherwise spends a tenth of its time on page faults. It holds for the whole process, once
    asked for, and does nothing where the library is not glibc. The long loops (`fit`, `sample`, `ais`) ask for it.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    trim_threshold, mmap_threshold = -1, -3
    mallopt(trim_threshold, 2**30)
    mallopt(mmap_threshold, 2**30)


def weighted(x: Tensor, weight: Tensor | float) -> Tensor:
    """Return each sample of `x` times its weight: a number, or one value for each sample of the leading axes."""
    if isinstance(weight, Tensor) and weight.ndim:
        return x * weight.reshape(*weight.shape, *(1,) * (x.ndim - weight.ndim))
    return x * weight


def weighted_sum(x: Tensor, weight: Tensor | float, shape: tuple[int, ...]) -> Tensor:
    """Return `Σ_batch weight · x` of `x`, `(*batch, *shape)`, in the given shape; sizes of 1 are summed over too."""
    if isinstance(weight, Tensor) and weight.ndim:
        return weighted(x, weight).sum_to_size(shape)
    return x.sum_to_size(shape) * weight


def mean_difference(a: Tensor, b: Tensor, n_a: int | None = None, n_b: int | None = None) -> Tensor:
    """Return the mean of the rows of `a` less that of the rows of `b`; with counts, their sums over these."""
    if n_a not in (None, a.shape[0]) or n_b not in (None, b.shape[0]):
        return a.sum(0).div_(n_a or a.shape[0]).sub_(b.sum(0), alpha=1 / (n_b or b.shape[0]))
    difference = native.mean_difference(a, b)
    return a.mean(0).sub_(b.mean(0)) if difference is None else difference


def gradient(parameter: nn.Parameter) -> Tensor:
    """Return the gradient buffer of a parameter, made of zeros the first time."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad


def softplus(x: Tensor) -> Tensor:
    """Return `log(1 + e^x)`, right to the last digit: PyTorch's default drops e^{-x} above x = 20."""
    return torch.nn.functional.softplus(x, threshold=40.0)


def as_state(x: Values | Mapping[str, Values], layer: str, *, like: Tensor | None = None) -> State:
    """Return `x` as a state of tensors: what is not a mapping is the value of `layer`.

    >>> import numpy as np
    >>> as_state(np.eye(2), "x", like=torch.zeros(1))["x"].dtype
    torch.float32
    """
    parts = x if isinstance(x, Mapping) else {layer: x}
    return {name: value if isinstance(value, Tensor) else as_tensor(value, like=like) for name, value in parts.items()}


class _Lent:
    """The memory of an array that is read only, which PyTorch takes with a warning: none of ours writes to data."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array  # lives as long as what is made of it
        place, _ = array.__array_interface__["data"]
        self.__array_interface__ = {**array.__array_interface__, "data": (place, False)}


def as_tensor(x: Values, *, like: Tensor | None = None) -> Tensor:
    """Return an array or a table of numbers as a tensor; floats in the dtype of `like`, a parameter of the model.

    Without a copy where its dtype stays: a file that is mapped into memory stays on the disk. It is not to be written.

    >>> import numpy as np
    >>> as_tensor(np.arange(3, dtype=np.uint16)).dtype
    torch.int64
    """
    if isinstance(x, Tensor):
        return x
    if not isinstance(x, _Array | list | tuple | int | float):
        raise TypeError(
            f"Values must be a tensor, a NumPy array or a DataFrame of numbers. Got {type(x).__name__}. "
            "Convert it with torch.as_tensor."
        )
    if isinstance(x, list | tuple) and any(isinstance(part, Tensor | np.ndarray) and part.ndim > 1 for part in x):
        raise TypeError(
            f"Values must be one tensor or array. Got a {type(x).__name__} of {len(x)}. Name the layers that they are "
            "values of by a mapping, such as {'visible': x, 'label': y}, or put rows together with torch.cat."
        )
    array = np.asarray(x)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"Values must be numbers. Got an array of {array.dtype}, which holds text or mixed columns. Encode them as "
            "numbers first, or let `harmonium train --data table.csv` read the table."
        )
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:  # PyTorch computes with bytes alone among these
        array = array.astype(np.int64)
    # A number stays one: `ascontiguousarray` would give it an axis.
    array = np.ascontiguousarray(array) if array.ndim else array.copy()
    tensor = torch.from_numpy(array if array.flags.writeable else np.asarray(_Lent(array)))
    return tensor.to(like.dtype) if like is not None and tensor.is_floating_point() else tensor
