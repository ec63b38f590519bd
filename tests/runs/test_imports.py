"""No import inside a function hides a cycle: all are at the top of the files, where import-linter reads them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "harmonium"
OPTIONAL = {
    "harmonium.plots",
    "harmonium",
    "harmonium.learning",
    "harmonium.workers",
    "harmonium.web.serve",
    "harmonium.web.launch",
}
"""What `cli` imports late: pictures and the page need what may not be installed, and `--help` does without torch."""


def hidden(source: str) -> list[str]:
    """Return the modules of the package that are imported anywhere but at the top level."""
    tree = ast.parse(source)
    inner = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) and node not in tree.body]
    names = [node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name for node in inner]
    return [name for name in names if name.split(".")[0] == "harmonium"]


@pytest.mark.parametrize("folder", ["runs", "experiments", "plots", "cli"])
def test_imports_are_at_the_top(folder: str) -> None:
    found = {str(path): hidden(path.read_text()) for path in (PACKAGE / folder).rglob("*.py")}
    allowed = OPTIONAL if folder == "cli" else set()
    assert {path: names for path, names in found.items() if set(names) - allowed} == {}


def test_the_check_can_fail() -> None:
    inside = "def f():\n    from harmonium.runs.build import MODELS\n"
    typing = "if TYPE_CHECKING:\n    from harmonium.runs.run import Run\n"
    assert hidden(inside) == ["harmonium.runs.build"] and hidden(typing) == ["harmonium.runs.run"]
    assert hidden("from harmonium.runs.build import MODELS\n") == []
