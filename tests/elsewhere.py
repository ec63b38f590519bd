"""A device that is not the CPU, for machines that have no other: its tensors have values, and do not mix with others.

It goes by the name of PyTorch's `meta` device, on which a tensor has no values; here each holds one on the CPU that
does the work. What a GPU refuses is refused: an operation on tensors of two devices, numbers without axes excepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

_CROSSING = ("aten::_to_copy", "aten::copy_", "aten::index.Tensor", "aten::index_put_", "aten::_index_put_impl_")


class TwoDevicesError(RuntimeError):
    """An operation saw tensors of two devices."""


class Elsewhere(Tensor):
    """A tensor that lies elsewhere."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> Elsewhere:
        made = Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device="meta",
        )
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


@contextmanager
def elsewhere() -> Iterator[None]:
    """Let `device="meta"` be the device of `Elsewhere` within the block."""
    with _Numbers(), _Operations():
        yield


class _Numbers(TorchFunctionMode):
    """`torch.tensor` of numbers makes its tensor before any operation is seen."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.tensor and kwargs.get("device") is not None:
            device = kwargs.pop("device")
            return func(*args, **kwargs).to(device)
        return func(*args, **kwargs)


class _Operations(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    away = [x for x in tensors if isinstance(x, Elsewhere)]
    here = [x for x in tensors if not isinstance(x, Elsewhere) and x.ndim > 0]
    name = str(func.name())
    if away and here and not name.startswith(_CROSSING):
        raise TwoDevicesError(f"{name} sees tensors of two devices: {[tuple(x.shape) for x in tensors]}.")
    wanted = kwargs.get("device")
    is_away = bool(away) if wanted is None else torch.device(wanted).type == "meta"
    if name.startswith("aten::copy_"):
        is_away = isinstance(args[0], Elsewhere)
    if wanted is not None:
        kwargs = kwargs | {"device": torch.device("cpu")}
    known = {id(x.held): x for x in away}
    plain_args, plain_kwargs = tree_map(lambda x: x.held if isinstance(x, Elsewhere) else x, (args, kwargs))
    found = func(*plain_args, **plain_kwargs)
    if not is_away:
        return found
    return tree_map(lambda x: known.get(id(x), Elsewhere(x)) if type(x) is Tensor else x, found)
