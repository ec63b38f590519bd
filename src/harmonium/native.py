"""The inner loops of `native.c`, for tensors in single precision on the CPU, where it was compiled."""

from __future__ import annotations

import ctypes
import threading
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn

from harmonium import workers

_LOWEST = torch.iinfo(torch.int64).min
_POINTER, _LENGTH, _NUMBER = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
_ARGUMENTS = {
    "draw_words": (_POINTER, _LENGTH, _LENGTH, _POINTER),
    "draw_uniform": (_POINTER, _LENGTH, _LENGTH, _POINTER),
    "draw_normal": (_POINTER, _LENGTH, _LENGTH, _POINTER),
    "draw_bernoulli": (_POINTER, _POINTER, _LENGTH, _LENGTH, _POINTER),
    "draw_bernoulli_of_field": (_POINTER, _POINTER, _LENGTH, _LENGTH, _POINTER),
    "draw_step": (_POINTER, _POINTER, _POINTER, _NUMBER, _NUMBER, _LENGTH, _LENGTH, _POINTER),
    "mean_difference": (_POINTER, _POINTER, _LENGTH, _POINTER, _LENGTH, _LENGTH),
    "as_bytes": (_POINTER, _POINTER, _LENGTH, ctypes.POINTER(_LENGTH)),
    "join_planes": (_POINTER, _POINTER, _POINTER, ctypes.c_double, _LENGTH),
    "split_planes": (_POINTER, _POINTER, _POINTER, _NUMBER, _LENGTH),
    "pick_images": (_POINTER, _POINTER, _POINTER, _LENGTH, _LENGTH, _LENGTH, _LENGTH, ctypes.POINTER(_LENGTH)),
    "pcd_updates": (
        *(_POINTER, _POINTER, _POINTER, _NUMBER, _POINTER, _LENGTH, _LENGTH, _POINTER),
        *(_LENGTH, _LENGTH, _LENGTH, _LENGTH, _POINTER, _POINTER, _POINTER, _POINTER, ctypes.POINTER(_LENGTH)),
    ),
}


def load() -> ctypes.CDLL | None:
    """Return the compiled library, or None if there was no compiler when Harmonium was installed."""
    spec = find_spec("harmonium._native")
    if spec is None or spec.origin is None:
        return None
    plain = Path(spec.origin).with_name("_native.so")  # before one that was built in place for a version of Python
    origin = str(plain) if plain.is_file() else spec.origin
    try:
        library = ctypes.CDLL(origin)
    except OSError as trouble:
        warnings.warn(f"{origin} does not load ({trouble}); PyTorch does its work.", RuntimeWarning, stacklevel=2)
        return None
    missing = [name for name in _ARGUMENTS if not hasattr(library, name)]
    if missing:
        warnings.warn(
            f"{origin} was compiled from other sources: it has no {missing[0]}. PyTorch does its work. Compile it "
            "again: python setup.py build_ext --inplace in a checkout.",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    for name, arguments in _ARGUMENTS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, None
    return library


LIBRARY = load()


class _Seed(threading.local):
    """The state of the streams, 32 words, that a generator sets before every use."""

    def __init__(self) -> None:
        self.words = torch.empty(32, dtype=torch.int64, device="cpu")
        self.pointer = self.words.data_ptr()

    def draw(self, generator: torch.Generator | None) -> int:
        self.words.random_(_LOWEST, None, generator=generator)
        return self.pointer


_SEED = _Seed()


def _draw(name: str, out: Tensor, *inputs: Tensor, numbers: tuple[float, ...] = (), seed: int) -> Tensor:
    """Fill `out` by one of the loops, from the seed; in a part with the numbers that its rows have in the whole."""
    draw = getattr(LIBRARY, name)
    pointers = [x.data_ptr() for x in (out, *inputs)]
    part = workers.current()
    if part is None:
        draw(*pointers, *numbers, 0, out.numel(), seed)
        return out
    row = out.shape[part.axis + 1 :].numel()
    n = part.count * row
    for piece in range(out.shape[: part.axis].numel()):
        at = out.element_size() * piece * n
        draw(*(pointer + at for pointer in pointers), *numbers, (piece * part.total + part.first) * row, n, seed)
    return out


def fill_words(out: Tensor, *, generator: torch.Generator | None = None) -> bool:
    """Fill 64-bit integers with random bits; return False if the library cannot."""
    if LIBRARY is None or out.device.type != "cpu":
        return False
    LIBRARY.draw_words(out.data_ptr(), 0, out.numel(), _SEED.draw(generator))
    return True


def fill_uniform(out: Tensor, *, generator: torch.Generator | None = None) -> bool:
    """Fill with uniform values in [0, 1), multiples of 2⁻²⁴; return False if the library cannot."""
    if LIBRARY is None or not _within_reach(out):
        return False
    _draw("draw_uniform", out, seed=_SEED.draw(generator))
    return True


def fill_normal(out: Tensor, *, generator: torch.Generator | None = None) -> bool:
    """Fill with standard normal values; return False if the library cannot."""
    if LIBRARY is None or not _within_reach(out):
        return False
    _draw("draw_normal", out, seed=_SEED.draw(generator))
    return True


def bernoulli(probability: Tensor, *, generator: torch.Generator | None = None) -> Tensor | None:
    """Return 1 with these probabilities and else 0; None if the library cannot."""
    if LIBRARY is None or not _within_reach(probability):
        return None
    return _draw("draw_bernoulli", torch.empty_like(probability), probability, seed=_SEED.draw(generator))


def bernoulli_of_field(field: Tensor, *, generator: torch.Generator | None = None) -> Tensor | None:
    """Return 1 with probability `σ(field)` and else 0; None if the library cannot."""
    if LIBRARY is None or not _within_reach(field):
        return None
    return _draw("draw_bernoulli_of_field", torch.empty_like(field), field, seed=_SEED.draw(generator))


def noisy_step(
    x: Tensor, slope: Tensor, step: float, scale: float, *, generator: torch.Generator | None = None
) -> Tensor | None:
    """Return `x + step · slope + scale · ε` with standard normal ε; None if the library cannot."""
    if LIBRARY is None or not (_within_reach(x) and _within_reach(slope) and x.stride() == slope.stride()):
        return None
    return _draw("draw_step", torch.empty_like(x), x, slope, numbers=(step, scale), seed=_SEED.draw(generator))


def mean_difference(a: Tensor, b: Tensor) -> Tensor | None:
    """Return the mean of the rows of `a` less that of `b`; None if the library cannot."""
    if LIBRARY is None or not (_within_reach(a) and _within_reach(b) and a.ndim == 2 and a.shape[1:] == b.shape[1:]):
        return None
    n, width = a.shape
    if n == 0 or b.shape[0] == 0:
        return None
    out = a.new_empty(width)
    LIBRARY.mean_difference(out.data_ptr(), a.data_ptr(), n, b.data_ptr(), b.shape[0], width)
    return out


def pick_rows(rows: Tensor, index: Tensor, *, channels_last: bool = False) -> Tensor | None:
    """Return the rows of bytes with these numbers as floats, images with channels innermost; None if it cannot."""
    if (
        LIBRARY is None
        or rows.dtype not in (torch.uint8, torch.bool)
        or index.dtype is not torch.int64
        or index.ndim != 1
        or not (rows.device.type == index.device.type == "cpu")
        or not (rows.is_contiguous() and index.is_contiguous())
    ):
        return None
    channels_last = channels_last and rows.ndim == 4
    layout = torch.channels_last if channels_last else torch.contiguous_format
    out = torch.empty(index.shape + rows.shape[1:], dtype=torch.float32, device="cpu", memory_format=layout)
    n, n_channels, wrong = index.shape[0], rows.shape[1] if channels_last else 1, _LENGTH(-1)
    pointers = out.data_ptr(), rows.data_ptr(), index.data_ptr()
    places = out.numel() // max(1, n * n_channels)
    LIBRARY.pick_images(*pointers, n, n_channels, places, len(rows), ctypes.byref(wrong))
    if wrong.value >= 0:
        raise IndexError(f"Row {int(index[wrong.value])} is asked for, and there are {len(rows)}.")
    return out


def as_bytes(x: Tensor) -> tuple[Tensor, bool] | None:
    """Return floats as bytes, and whether all are whole numbers from -128 to 127; None if the library cannot."""
    if LIBRARY is None or not (_within_reach(x) and x.is_contiguous()):
        return None
    out, other = torch.empty(x.shape, dtype=torch.int8, device="cpu"), _LENGTH(0)
    LIBRARY.as_bytes(out.data_ptr(), x.data_ptr(), x.numel(), ctypes.byref(other))
    return out, not other.value


def join_planes(high: Tensor, low: Tensor, step: float) -> Tensor | None:
    """Return `step · (256 high + low)` of 32-bit integers as floats; None if the library cannot."""
    if LIBRARY is None or not (high.is_contiguous() and low.is_contiguous() and high.device.type == "cpu"):
        return None
    out = torch.empty(high.shape, dtype=torch.float32, device="cpu")
    LIBRARY.join_planes(out.data_ptr(), high.data_ptr(), low.data_ptr(), step, out.numel())
    return out


def split_planes(x: Tensor, step: float) -> tuple[Tensor, Tensor] | None:
    """Return the bytes a and b of `x = step · (256 a + b)` to the nearest; None if the library cannot.

    The step is a power of two, at least 2⁻¹²⁰ so that its inverse is a float.
    """
    if LIBRARY is None or not (step >= 2.0**-120 and _within_reach(x) and x.is_contiguous()):
        return None
    high, low = (torch.empty(x.shape, dtype=torch.int8, device="cpu") for _ in range(2))
    LIBRARY.split_planes(high.data_ptr(), low.data_ptr(), x.data_ptr(), 1 / step, x.numel())
    return high, low


def pcd_updates(
    theta: Sequence[Tensor],
    average: Sequence[Tensor],
    shares: Tensor,
    rows: Tensor,
    chains: Sequence[Tensor],
    means: Sequence[Tensor],
    *,
    rate: float,
    batch_size: int,
    n_steps: int,
    generator: torch.Generator | None = None,
) -> int | None:
    """Make updates of an RBM of binary units in place, one with each batch of rows, and return how many were made.

    `theta` and `average` (which may be empty) are W, b and c; `chains` are v and h; `means` take those of the hidden
    units of the last batch and of the chains. It stops before an update that is not finite. None if the library cannot.
    """
    tensors = (*theta, *average, shares, rows, *chains, *means)
    if LIBRARY is None or not all(map(_within_reach, tensors)) or workers.current() is not None:
        return None
    (n_v, n_h), n_chains, n_rows = theta[0].shape, chains[0].shape[0], rows.shape[0]
    n_updates, n_draws = -(-n_rows // batch_size), 2 * n_steps
    seeds = torch.empty(n_updates * n_draws * len(_SEED.words), dtype=torch.int64, device="cpu")
    seeds.random_(_LOWEST, None, generator=generator)  # the words that as many draws would take one by one
    work, done = torch.empty(n_chains * n_v + n_v + n_h, dtype=torch.float32, device="cpu"), _LENGTH(0)
    parameters, averages, states = (
        (_POINTER * max(3, len(group)))(*(x.data_ptr() for x in group)) for group in (theta, average, chains)
    )
    LIBRARY.pcd_updates(
        *(parameters, averages, shares.data_ptr(), rate, rows.data_ptr(), n_rows, batch_size),
        *(states, n_chains, n_steps, n_v, n_h, means[0].data_ptr(), means[1].data_ptr()),
        *(work.data_ptr(), seeds.data_ptr(), ctypes.byref(done)),
    )
    return done.value


def _within_reach(x: Tensor) -> bool:
    """Return whether x is plain floats that lie in the memory of the CPU without gaps."""
    return (
        x.dtype is torch.float32
        and x.device.type == "cpu"
        and type(x) in (Tensor, nn.Parameter)
        and (x.is_contiguous() or x.is_contiguous(memory_format=torch.channels_last))
    )
