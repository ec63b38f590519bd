"""The data directory: where files of known data sets are looked for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from harmonium.data.checksums import verify

VARIABLE = "HARMONIUM_DATA"

FETCHED = ("mnist", "fashion-mnist", "binarized-mnist")
"""The data sets that `harmonium fetch` brings."""


class MissingDataError(FileNotFoundError, ValueError):
    """A file of a data set is not there; the message says which file to put where."""


@dataclass(frozen=True)
class DataDirectory:
    """The folder given as `path`, or else the one named by the environment variable HARMONIUM_DATA."""

    path: str | os.PathLike[str] | None = None

    def root(self) -> Path | None:
        """Return the directory, or None if neither the argument nor the variable names one."""
        chosen = self.path if self.path is not None else os.environ.get(VARIABLE) or None
        return None if chosen is None else Path(chosen).expanduser()

    def find(self, *relatives: str) -> Path:
        """Return the first of these files that exists, its SHA-256 verified where it is known."""
        root = self.root()
        if root is not None:
            for relative in relatives:
                path = root / relative
                if path.is_file():
                    verify(path, relative)
                    return path
        raise MissingDataError(self.missing(*relatives))

    def has(self, relative: str) -> bool:
        """Say whether the file is there."""
        root = self.root()
        return root is not None and (root / relative).is_file()

    def missing(self, *relatives: str) -> str:
        """Return the message for a missing file: which one, where, and how the directory is chosen."""
        root = self.root()
        places = " or ".join(f"<data-dir>/{relative}" for relative in relatives)
        if root is None:
            where = "No data directory is chosen"
        elif not root.is_dir():
            where = f"The data directory {root} does not exist"
        else:
            where = f"The data directory is {root}, which does not hold it"
        name = relatives[0].partition("/")[0]
        fetched = f", or fetch it with: harmonium fetch {name}" if name in FETCHED else ""
        return (
            f"Missing data file: put it at {places}{fetched}. {where}. "
            f"Choose the directory with --data-dir (`data_dir=` in Python) or the environment variable {VARIABLE}."
        )
