"""NumPy files, never pickled ones."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor


def as_tensor(array: np.ndarray, path: Path, name: str = "") -> Tensor:
    """Return the array as a tensor in native byte order; text and objects are refused."""
    label = f"{path}{f' [{name}]' if name else ''}"
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{label} holds {array.dtype} values. Only booleans, integers and real numbers can be read.")
    if array.dtype.itemsize > 8:
        raise ValueError(f"{label} holds {array.dtype} values. Save it with at most 64 bits a value.")
    return torch.from_numpy(np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False)))


def read_array(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Read a `.npy` file as `{"x": tensor}` or a `.npz` file as its named tensors. Pickled objects are refused."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                return {"x": as_tensor(stored, path)}
            return {name: as_tensor(stored[name], path, name) for name in stored.files}
    except FileNotFoundError:
        raise
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        raise ValueError(
            f"{path} cannot be read as a NumPy file ({error}). Files with pickled objects are never loaded: "
            f"save numbers only, with np.save or np.savez."
        ) from error
