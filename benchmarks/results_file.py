"""Results that a benchmark has already: one JSON object a line, so that it goes on where it stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class ResultsFile:
    """A file of results by what was asked, each with the CPU seconds that it took; `find` prints every one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.known = {self._key(line["asked"]): line for line in map(json.loads, lines)}

    @staticmethod
    def _key(asked: dict[str, Any]) -> str:
        return json.dumps(asked, sort_keys=True)

    def find(self, asked: dict[str, Any], compute: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of what is asked: from the file, or computed from the arguments now and written there."""
        key = self._key(asked)
        if key not in self.known:
            started = time.process_time()
            found = compute(*arguments)
            line = {"asked": asked, "found": found, "seconds": round(time.process_time() - started, 1)}
            self.known[key] = line
            with self.path.open("a") as file:
                file.write(json.dumps(line) + "\n")
        line = self.known[key]
        print(" ".join(f"{name}={value}" for name, value in asked.items()), line["found"], line["seconds"], flush=True)
        return line["found"]
