"""Several processes that learn and draw together: which rows belong to whom, and what they tell each other.

Rows of a batch, chains and temperatures' chains are divided; parameters, random state and decisions are the same
everywhere. Random numbers belong to the row: all workers carry one generator in one state, and a draw inside a part
takes from the numbers of the whole those of its rows (`draws`). So the same seed gives the same numbers to every row,
whatever the number of workers. The process group is PyTorch's (`torch.distributed`), started by `torchrun`.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib import import_module

import torch
from torch import Tensor, distributed

SECONDS = 60.0
"""How long a worker waits for the others before it gives up; `HARMONIUM_WORKER_SECONDS` says otherwise."""

_HEAD = 504  # bytes of a text that travel with its length


class WorkersApartError(RuntimeError):
    """The workers do not fit together, or one of them is gone."""


@dataclass(frozen=True)
class Part:
    """What one of `world` workers has of `total` rows: `count` of them from `first` on, along `axis`.

    The parts are contiguous and near-equal, of two rows at least: PyTorch lays a single row out in memory as it likes,
    and draws in the order of memory. Where there are fewer the part is repeated: every worker has all rows, and each
    counts `1/world`.

    >>> [Part(rank, 3, 10).count for rank in range(3)]
    [3, 3, 4]
    """

    rank: int
    world: int
    total: int
    axis: int = 0
    adds: Callable[[Tensor], Tensor] | None = None  # a faster way than the group to add up a few numbers

    @property
    def repeated(self) -> bool:
        """Whether every worker has all rows, there being too few to share."""
        return self.total < 2 * self.world and self.world > 1

    @property
    def first(self) -> int:
        """The number of its first row in the whole."""
        return 0 if self.repeated else self.total * self.rank // self.world

    @property
    def count(self) -> int:
        """How many rows it has."""
        return self.total if self.repeated else self.total * (self.rank + 1) // self.world - self.first

    def of(self, total: int) -> Part:
        """Return what the same worker has of another whole."""
        return replace(self, total=total, axis=0)

    @property
    def counts(self) -> list[int]:
        """How many rows each worker has."""
        return [replace(self, rank=rank).count for rank in range(self.world)]

    def take(self, x: Tensor) -> Tensor:
        """Return its rows of a whole tensor."""
        return x.narrow(self.axis, self.first, self.count)


_CURRENT: ContextVar[Part | None] = ContextVar("part", default=None)
_ALONE: ContextVar[bool] = ContextVar("alone", default=False)

current = _CURRENT.get
"""Return the part that draws are made for, None for a whole."""


@contextmanager
def dividing(part: Part | None) -> Iterator[None]:
    """Let the tensors that are drawn within the block be a part of a whole; with None they are whole again."""
    token = _CURRENT.set(part)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextmanager
def of(total: int) -> Iterator[int]:
    """Go over from the part at hand to that of another whole, such as chains; give the number of its rows here."""
    if (part := current()) is None:
        yield total
        return
    part = part.of(total)
    with dividing(part):
        yield part.count


@contextmanager
def along(axis: int) -> Iterator[None]:
    """Let the rows of the part at hand be those of another axis: behind temperatures, for example."""
    part = current()
    with dividing(None if part is None else replace(part, axis=axis)):
        yield


def whole(n: int) -> int:
    """Return what n rows here are divided by in a mean over the whole."""
    part = current()
    if part is None:
        return n
    return part.total * part.world if part.repeated else part.total


def mean(x: Tensor) -> Tensor:
    """Return the mean over rows; in a part, its share of the mean over the whole: the shares of all workers add up."""
    part = current()
    return x.mean() if part is None else x.sum() / (whole(len(x)) * max(1, x[:1].numel()))


def total(x: Tensor, *, axis: int | None = None) -> Tensor:
    """Return the sum of all values, or along an axis; in a part, of those of all workers."""
    here, part = x.sum(axis) if axis is not None else x.sum(), current()
    return here if part is None else (part.adds or add_up)(here)


def world() -> int:
    """Return the number of workers; 1 for a process on its own."""
    return 1 if _ALONE.get() or not distributed.is_initialized() else distributed.get_world_size()


def rank() -> int:
    """Return the number of this worker."""
    return 0 if world() == 1 else distributed.get_rank()


def is_first() -> bool:
    """Return whether this worker is the one that prints and writes: by `torchrun`'s word before a group is joined."""
    if not distributed.is_initialized() and not _ALONE.get():
        return os.environ.get("RANK", "0") == "0"
    return rank() == 0


def part_of(total: int) -> Part | None:
    """Return what this worker has of so many rows; None where it is alone, or has a part of them already."""
    n = world()
    return None if n == 1 or current() is not None else Part(rank(), n, total)


@contextmanager
def alone() -> Iterator[None]:
    """Let the process act as if there were no others: for what the first worker does by itself."""
    token = _ALONE.set(True)
    try:
        with dividing(None):
            yield
    finally:
        _ALONE.reset(token)


@contextmanager
def joined() -> Iterator[None]:
    """Join the group that `torchrun` started, for as long as the block lasts; without one do nothing.

    The workers speak by gloo, about what lies on GPUs by NCCL. Whoever does not answer for `SECONDS` is given up.
    `torchrun` keeps one store over all restarts: without names of its own for each attempt workers would look for each
    other where those of the attempt before were.
    """
    if distributed.is_initialized() or int(os.environ.get("WORLD_SIZE", "1")) == 1 or "RANK" not in os.environ:
        yield
        return
    on_gpus = torch.cuda.is_available() and distributed.is_nccl_available()
    import_module("torch.distributed.nn")  # now: later its default arguments keep the group and its threads to the end
    with in_words("start"):
        backend, limit = "cpu:gloo,cuda:nccl" if on_gpus else "gloo", timedelta(seconds=time_limit())
        c10d = import_module("torch.distributed.distributed_c10d")
        store, rank_here, n = next(c10d.rendezvous("env://", timeout=limit))
        if os.environ.get("LOCAL_WORLD_SIZE") == str(n):  # where all are restarted together, and count alike
            store = c10d.PrefixStore(f"attempt-{n_restarts()}", store)
        distributed.init_process_group(backend, store=store, rank=rank_here, world_size=n, timeout=limit)
    try:
        yield
    finally:
        distributed.destroy_process_group()


def device_of_worker(name: str) -> str:
    """Return the device that this worker computes on: of `cuda` each process of a host has its own GPU.

    >>> device_of_worker("cuda:1")
    'cuda:1'
    """
    return f"cuda:{os.environ['LOCAL_RANK']}" if name == "cuda" and "LOCAL_RANK" in os.environ else name


def n_restarts() -> int:
    """Return how often `torchrun` has started the workers again."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def time_limit() -> float:
    """Return how many seconds a worker waits for the others."""
    text = os.environ.get("HARMONIUM_WORKER_SECONDS", str(SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ValueError(f"HARMONIUM_WORKER_SECONDS must be a number of seconds above 0. Got {text!r}.")
    return seconds


def add_up(x: Tensor) -> Tensor:
    """Add up the tensors of all workers, in place: each gets the same bits."""
    if world() > 1:
        with in_words("add up gradients"):
            distributed.all_reduce(x)
    return x


def agreed(here: bool) -> bool:
    """Return whether it is so for all workers."""
    return int(add_up(torch.tensor(int(here)))) == world()


def meet() -> None:
    """Wait until all workers have come here."""
    if world() > 1:
        with in_words("meet the others"):
            distributed.barrier()


def gather(x: Tensor, *, axis: int = 0, lengths: list[int] | None = None) -> Tensor:
    """Return the parts of all workers joined along an axis, in their order.

    They may have different lengths, which are asked for unless they are known.
    """
    n = world()
    if n == 1:
        return x
    if lengths is None:
        lengths = gather(torch.tensor([x.shape[axis]]), lengths=[1] * n).tolist()
    x = x.movedim(axis, 0).contiguous()
    with in_words("gather rows"):
        longest = max(lengths)
        padded = torch.cat([x, x.new_zeros(longest - len(x), *x.shape[1:])])
        as_bytes = padded.view(torch.uint8) if padded.dtype is torch.bool else padded
        parts = [torch.empty_like(as_bytes) for _ in range(n)]
        distributed.all_gather(parts, as_bytes)
    joined_parts = torch.cat([part[:length] for part, length in zip(parts, lengths, strict=True)])
    return joined_parts.view(x.dtype).movedim(0, axis)


def gather_all(state: Mapping[str, Tensor], *, lengths: list[int] | None = None) -> dict[str, Tensor]:
    """Return the rows of each tensor of a state, of all workers; tensors of one type travel together."""
    result: dict[str, Tensor] = {}
    ordered = dict(sorted(state.items()))  # a state that was read from a file may be in any order
    for dtype in dict.fromkeys(value.dtype for value in ordered.values()) if world() > 1 else ():
        some = {name: value for name, value in ordered.items() if value.dtype is dtype}
        widths = [value.shape[1:].numel() for value in some.values()]
        flat = [value.reshape(len(value), width) for value, width in zip(some.values(), widths, strict=True)]
        rows = gather(torch.cat(flat, dim=1), lengths=lengths)
        for (name, value), part in zip(some.items(), rows.split(widths, dim=1), strict=True):
            result[name] = part.reshape(len(rows), *value.shape[1:])
    return {name: result.get(name, value) for name, value in state.items()}


def by_rows(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return `function(x)`, each worker doing its own rows: for features, energies and all that draws nothing.

    What goes wrong in the rows of one worker is told to all.

    >>> by_rows(lambda x: 2 * x, torch.ones(3))
    tensor([2., 2., 2.])
    """
    part = part_of(len(x))
    if part is None or part.repeated:
        return function(x)
    found, trouble = x[:0], None
    try:
        found = function(part.take(x))
    except (ValueError, TypeError) as error:
        trouble = error
    texts = told("" if trouble is None else str(trouble))
    if any(texts):
        raise ValueError(next(filter(None, texts))) from trouble
    return gather(found)


def from_first(value: str) -> str:
    """Return the text that the first worker has."""
    return value if world() == 1 else told(value if is_first() else "")[0]


def done_by_first(action: Callable[[], object]) -> None:
    """Let the first worker do something while the others wait; what goes wrong is told to all of them."""
    trouble: Exception | None = None
    if is_first():
        try:
            action()
        except (ValueError, OSError) as error:
            if world() == 1:
                raise
            trouble = error
    text = from_first("" if trouble is None else str(trouble) or type(trouble).__name__)
    if text:
        raise ValueError(text) from trouble


def spread(tensors: Mapping[str, Tensor]) -> None:
    """Give all workers the values that the first one has, in place."""
    if world() > 1:
        values = [value.detach() for value in tensors.values()]
        with in_words("take over the parameters"):
            for dtype in dict.fromkeys(value.dtype for value in values):
                some = [value for value in values if value.dtype is dtype]
                flat = torch.cat([value.reshape(-1) for value in some])
                distributed.broadcast(flat, 0)
                for value, part in zip(some, flat.split([value.numel() for value in some]), strict=True):
                    value.copy_(part.view(value.shape))


def require_same(**held: object) -> None:
    """Raise on every worker unless all of them hold the same, and say what differs and who has it."""
    if world() == 1:
        return
    if len(set(told(digest(held)))) > 1:
        refuse(held)


def refuse(held: Mapping[str, object]) -> None:
    """Raise, on every worker, for the first thing that not all of them hold, and say who has what."""
    for key, value in held.items():
        name, others = key.replace("_", " "), told(_short(value))
        odd = [i for i, other in enumerate(others) if other != others[0]]
        if odd:
            raise WorkersApartError(
                f"Workers must agree on the {name}. Worker 0 has {others[0]}; worker {odd[0]} has {others[odd[0]]}"
                + (f" ({len(odd)} of {len(others)} differ)" if len(odd) > 1 else "")
                + ". Start all of them with the same command, version and data."
            )


def digest(held: Mapping[str, object]) -> str:
    """Return a short text that is the same where the same is held, tensors bit by bit.

    >>> digest({"x": torch.zeros(2)}) == digest({"x": torch.zeros(2, 1)}), digest({"x": 1}) == digest({"x": 2})
    (True, False)
    """
    return hashlib.sha256(repr([(name, _short(value)) for name, value in held.items()]).encode()).hexdigest()[:16]


def told(text: str) -> list[str]:
    """Return the texts of all workers: the beginnings with the lengths at once, then the rest of long ones."""
    letters = text.encode()
    head = len(letters).to_bytes(8, "big") + letters[:_HEAD].ljust(_HEAD, b"\0")
    heads = [bytes(row) for row in gather(_as_row(head), lengths=[1] * world()).tolist()]
    lengths = [int.from_bytes(row[:8], "big") for row in heads]
    ends, rest = [max(0, length - _HEAD) for length in lengths], [b""] * len(heads)
    if any(ends):
        rest = [bytes(part.tolist()) for part in gather(_as_row(letters[_HEAD:])[0], lengths=ends).split(ends)]
    return [(row[8:] + end)[:length].decode() for row, end, length in zip(heads, rest, lengths, strict=True)]


def _as_row(letters: bytes) -> Tensor:
    return torch.tensor([list(letters)], dtype=torch.uint8)


def _short(value: object) -> str:
    if isinstance(value, Tensor):
        numbers = value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
        return "sha256 " + hashlib.sha256(numbers.data).hexdigest()[:16]
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))  # where an object lies in memory is nobody's business


@contextmanager
def in_words(what: str) -> Iterator[None]:
    """Say what a worker waited for when the group falls apart."""
    try:
        yield
    except (RuntimeError, OSError) as error:
        if isinstance(error, WorkersApartError):
            raise
        here = f"Worker {os.environ.get('RANK', '?')} of {os.environ.get('WORLD_SIZE', '?')}"
        raise WorkersApartError(
            f"{here} wanted to {what}, and another worker had ended or did not answer within {time_limit():g} s: see "
            "the error of that one. Set HARMONIUM_WORKER_SECONDS to wait longer; torchrun --max-restarts starts all of "
            f"them again from the last checkpoint. ({str(error).splitlines()[0][:200]})"
        ) from error
