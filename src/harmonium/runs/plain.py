"""Only plain files and folders belong to a run: no links out of it, nothing that waits or never ends."""

from __future__ import annotations

import os
import stat
from pathlib import Path

MAX_ENTRIES = 10_000
"""A run has a few dozen entries; a folder with more than this is something else."""


def check_plain(folder: Path) -> None:
    """Raise unless all that lies in a folder, at any depth, is a plain file or a folder.

    A symbolic link would let a run change what is not its own; a pipe or a device would make a reader wait for ever.
    The folder itself may be reached through a link.
    """
    waiting, n = [folder], 0
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                n += 1
                if n > MAX_ENTRIES:
                    raise ValueError(
                        f"{folder} has more than {MAX_ENTRIES:,} entries: this is not the folder of a run."
                    )
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
                elif not entry.is_file(follow_symlinks=False):
                    what = _words(entry.stat(follow_symlinks=False).st_mode)
                    raise ValueError(
                        f"{entry.path} is {what}. A run holds plain files and folders only: remove it, or put a copy "
                        "of what it stands for in its place."
                    )


def _words(mode: int) -> str:
    kinds = ((stat.S_ISLNK, "a symbolic link"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    return next((words for test, words in kinds if test(mode)), "a device")
