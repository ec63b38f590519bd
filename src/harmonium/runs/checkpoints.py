"""The training state on disk: the last few checkpoints, each whole and verified."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as tensors_to_bytes

from harmonium.runs.atomic import (
    TEMPORARY,
    remove_atomic,
    remove_temporary,
    room_for,
    sha256,
    sync_folder,
    write_synced,
)
from harmonium.runs.tensor_file import detached
from harmonium.types import State

TENSORS, VALUES, MANIFEST = "state.safetensors", "state.json", "manifest.json"
KEPT = 3

_NAME = re.compile(r"^update-(\d+)$")


class DamagedCheckpointError(ValueError):
    """A checkpoint does not hold what its manifest says."""


@dataclass(frozen=True)
class Checkpoints:
    """The folder of a run's checkpoints: `update-000000120/` holds tensors, plain values and the manifest of both.

    A checkpoint is written beside the others under a temporary name, synced to the disk and renamed: it appears whole
    or not at all. The manifest has the SHA-256 of each file, checked on load. The newest three are kept.
    """

    folder: Path

    def save(self, tensors: State, values: dict[str, Any]) -> Path:
        """Write a checkpoint of the update that `values` names and drop the oldest beyond three."""
        self.folder.mkdir(parents=True, exist_ok=True)
        update = int(values["update"])
        path = self.folder / f"update-{update:09d}"
        files = {TENSORS: tensors_to_bytes(detached(tensors)), VALUES: json.dumps(values).encode()}
        manifest = {"update": update, "sha256": {name: sha256(content) for name, content in files.items()}}
        temporary = self.folder / f"{TEMPORARY}{os.getpid()}-{path.name}"
        with room_for(path, temporary):
            temporary.mkdir()
            for name, content in {**files, MANIFEST: json.dumps(manifest, indent=1).encode()}.items():
                write_synced(temporary / name, content)
            sync_folder(temporary)
        if path.exists():  # the same update again: a run that was stopped there and went on
            remove_atomic(path)
        temporary.rename(path)
        sync_folder(self.folder)
        for old in self.paths()[:-KEPT]:
            remove_atomic(old)
        return path

    def paths(self) -> list[Path]:
        """Return the folders of the checkpoints, oldest first."""
        if not self.folder.is_dir():
            return []
        return sorted(path for path in self.folder.iterdir() if _NAME.match(path.name))

    def load(
        self,
        check: Callable[[State, dict[str, Any]], None] | None = None,
        *,
        on_damage: Callable[[str], None] | None = None,
    ) -> tuple[State, dict[str, Any]] | None:
        """Return the newest checkpoint that is whole and passes `check`, or None if there is none yet.

        A damaged one is passed over for the one before, which `on_damage` is told in words. When all are damaged, an
        error says so: the run is then better trained again.
        """
        paths = self.paths()
        for path in reversed(paths):
            try:
                tensors, values = read_checkpoint(path)
                if check is not None:
                    _checked(path, tensors, values, check)
                return tensors, values
            except DamagedCheckpointError as error:
                if on_damage is not None:
                    on_damage(f"{error} Going back to the checkpoint before it.")
        if paths:
            raise DamagedCheckpointError(
                f"None of the {len(paths)} checkpoints in {self.folder} is whole. Train again with --overwrite."
            )
        return None

    def tidy(self) -> None:
        """Remove what a killed process left unfinished."""
        if self.folder.is_dir():
            remove_temporary(self.folder)


def read_checkpoint(path: Path) -> tuple[State, dict[str, Any]]:
    """Read one checkpoint and check it against its manifest."""
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        contents = {name: (path / name).read_bytes() for name in (TENSORS, VALUES)}
        for name, content in contents.items():
            if sha256(content) != manifest["sha256"][name]:
                raise DamagedCheckpointError(f"{path / name} is damaged: its SHA-256 is not the one in {MANIFEST}.")
        # A copy of each tensor lies aligned in memory, like those of a run that was never stopped.
        tensors = {name: value.clone() for name, value in tensors_from_bytes(contents[TENSORS]).items()}
        return tensors, json.loads(contents[VALUES])
    except DamagedCheckpointError:
        raise
    except (OSError, KeyError, TypeError, ValueError, RecursionError, MemoryError, SafetensorError) as error:
        raise DamagedCheckpointError(f"The checkpoint {path} cannot be read ({type(error).__name__}).") from error


def _checked(
    path: Path, tensors: State, values: dict[str, Any], check: Callable[[State, dict[str, Any]], None]
) -> None:
    """Raise what `check` finds wrong as damage of this checkpoint."""
    try:
        check(tensors, values)
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedCheckpointError(f"The checkpoint {path} does not fit this run: {error}") from error
