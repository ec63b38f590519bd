"""Notebooks of the tutorials, made from their pages: one source, two forms.

    python -m docs.tools.notebooks            write docs/notebooks/*.ipynb, and run them
    python -m docs.tools.notebooks --check    say whether they are those of the pages

Prose becomes Markdown, Python becomes code, commands become `!harmonium …`. What a page shows as printed text and as
pictures of its own is left out: the notebook makes it anew.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat

from docs.tools.pages import DOCS, ROOT, Block, blocks

TUTORIALS = ("teacher", "practitioner", "researcher")
_SAVED = re.compile(r'^(\s*)(.+)\.savefig\("[\w-]+\.png"\)$', re.MULTILINE)


def cells_of(page: Path) -> list[Any]:
    """Return the cells of a page, without outputs."""
    text, cells, end = page.read_text(encoding="utf-8"), [], 0
    own = rf"!\[[^\]]*\]\(\.\./images/{page.stem}/[^)]*\)\n*"

    def prose(part: str) -> None:
        plain = re.sub(own, "", part).strip()
        if plain:
            plain = re.sub(r"\]\((?!\.\./|[a-z]+:|#)", "](../tutorials/", plain)
            cells.append(nbformat.v4.new_markdown_cell(plain))

    for block in blocks(page):
        prose(text[end : block.start])
        end = block.end
        if block.language == "python":
            cells.append(nbformat.v4.new_code_cell(shown(block)))
        elif block.language == "sh":
            cells.append(nbformat.v4.new_code_cell("\n".join(f"!{line}" for line in block.text.strip().splitlines())))
        elif not (block.language == "text" and block.follows):
            cells.append(nbformat.v4.new_markdown_cell(text[block.start : block.end]))
    prose(text[end:])
    cells.insert(1, nbformat.v4.new_code_cell("%matplotlib inline"))  # below the title: figures appear
    for i, cell in enumerate(cells):
        cell["id"] = f"{page.stem}-{i}"
    return cells


def shown(block: Block) -> str:
    """Return code whose figures appear in the notebook instead of being saved."""
    return _SAVED.sub(r"\1display(\2)", block.text.rstrip())


def notebook(page: Path) -> Any:
    """Return the notebook of a page, not yet run."""
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return nbformat.v4.new_notebook(cells=cells_of(page), metadata=kernel)


def sources(made: Any) -> list[tuple[str, str]]:
    """Return what a notebook says, without what it printed."""
    return [(cell["cell_type"], cell["source"]) for cell in made["cells"]]


def path_of(name: str) -> Path:
    """Return the file of a notebook."""
    return DOCS / "notebooks" / f"{name}.ipynb"


def outdated() -> list[str]:
    """Return the tutorials whose notebook is not that of the page, or is no notebook, or was not run."""
    found = []
    for name in TUTORIALS:
        kept = nbformat.read(path_of(name), as_version=4)
        nbformat.validate(kept)
        code = [cell for cell in kept["cells"] if cell["cell_type"] == "code"]
        ran = all(cell["execution_count"] for cell in code)
        if sources(kept) != sources(notebook(DOCS / "tutorials" / f"{name}.md")) or not ran:
            found.append(name)
    return found


def write(name: str) -> None:
    """Make a notebook, run it in a folder with the data files, and keep it with its outputs."""
    from nbclient import NotebookClient

    made = notebook(DOCS / "tutorials" / f"{name}.md")
    with tempfile.TemporaryDirectory() as folder:
        for file in (DOCS / "data").iterdir():
            shutil.copy(file, folder)
        NotebookClient(made, timeout=600, resources={"metadata": {"path": folder}}).execute()
    for cell in made["cells"]:
        cell.get("metadata", {}).pop("execution", None)  # times of this machine
        for output in cell.get("outputs", []):
            if "text" in output:
                output["text"] = output["text"].replace(folder, ".").replace(f"{ROOT}/", "")
    made["metadata"].pop("language_info", None)
    path_of(name).parent.mkdir(exist_ok=True)
    nbformat.write(made, path_of(name))


if __name__ == "__main__":
    if "--check" in sys.argv:
        if stale := outdated():
            sys.exit(f"Not those of their pages: {', '.join(stale)}. Make them anew with: make notebooks")
    else:
        for tutorial in TUTORIALS:
            write(tutorial)
