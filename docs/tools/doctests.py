"""Examples in docstrings as blocks of code: `>>>` means a quotation to Markdown."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"(?:^|\n)(>>> .*?)(?=\n\n|\Z)", re.DOTALL)


class Doctests(Extension):
    """Fences each run of `>>>` lines with what they print."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of whatever is read."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(r"\n```pycon\n\1\n```", obj.docstring.value)
