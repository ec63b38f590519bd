"""The pages as programs: their blocks of code, run in order, with what they print and draw."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^## ([^\n]+)$|^( *)```(\w*)[^\n]*\n(.*?)^\2```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the heading that it stands under and its place in the page.

    `follows` says that nothing but blank lines is between it and the block before: text there is what that one prints.
    """

    language: str
    text: str
    heading: str
    start: int
    end: int
    follows: bool

    @property
    def commands(self) -> list[list[str]]:
        """The calls of `harmonium` in it, as lists of words; what comes after `#` is a comment."""
        joined = self.text.replace("\\\n", " ")
        return [shlex.split(line, comments=True)[1:] for line in joined.splitlines() if line.startswith("harmonium ")]


def pages() -> list[Path]:
    """Return all pages: those of the folder of documents, and those that stand in the root."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    heading, end = "", -1
    for match in _FENCE.finditer(text):
        if match[1]:
            heading = match[1]
            continue
        follows = end >= 0 and not text[end : match.start()].strip()
        found.append(Block(match[3], textwrap.dedent(match[4]), heading, match.start(), match.end(), follows))
        end = match.end()
    return found


def run_page(
    page: Path, folder: Path, *, change: Callable[[str], str] = lambda text: text
) -> Iterator[tuple[Block, str]]:
    """Run the blocks of a page one after the other in a folder, and yield each with what it printed.

    Python blocks share their names. Commands run, in this process, on tutorials only: elsewhere they are examples of
    what one may call. `change` is applied to the text of each block first. The data files of the documents are put into
    the folder.
    """
    for file in (DOCS / "data").iterdir():
        shutil.copy(file, folder)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        printed = io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stdout(printed), narrow():
            if block.language == "python":
                place = f"{page.relative_to(ROOT)}, {block.heading}"
                exec(compile(change(block.text), place, "exec"), namespace)
            elif block.language == "sh" and page.parent.name == "tutorials":
                for words in Block("sh", change(block.text), "", 0, 0, False).commands:
                    call(words)
        yield block, printed.getvalue()


@contextlib.contextmanager
def narrow() -> Iterator[None]:
    """Make tables as wide as a terminal, 80 columns."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"
    try:
        yield
    finally:
        os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)


def call(words: list[str]) -> None:
    """Run the command line as a user would, and raise if it fails."""
    from harmonium.cli.entry import run

    if (code := run(words)) != 0:
        raise RuntimeError(f"`harmonium {shlex.join(words)}` ended with the code {code}.")


def headings(page: Path) -> list[str]:
    """Return the anchors of a page, as MkDocs and GitHub make them."""
    text = _FENCE.sub(lambda match: match[0] if match[1] else "", page.read_text(encoding="utf-8"))
    found = re.findall(r"^#{1,6} +(.+?)(?: *\{#([\w-]+)\})?$", text, re.MULTILINE)
    return [anchor or slug(title) for title, anchor in found]


def slug(title: str) -> str:
    """Return the anchor of a heading.

    >>> slug("How large is `log Z`?")
    'how-large-is-log-z'
    """
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
    return re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")


def links(page: Path) -> list[str]:
    """Return the targets of the links and pictures of a page that lead to files, code left out."""
    text = _FENCE.sub(lambda match: match[0] if match[1] else "", page.read_text(encoding="utf-8"))
    text = re.sub(r"(`+).+?\1", "", text)
    return [target for target in re.findall(r"\]\(([^)\s]+)", text) if not re.match(r"[a-z]+:", target)]
