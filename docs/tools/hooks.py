"""What MkDocs does beyond reading pages: formulas as MathML, rooms and commands, pages from the root."""

from __future__ import annotations

import ast
import html
import re
import sys
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
FROM_ROOT = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
"""Pages of the site that are files beside the folder of documents."""

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
ROOM = re.compile(r"^::: room (harmonium[\w.]*)$", re.MULTILINE)
COMMANDS = "::: commands"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are files of the root, with links as they are seen from the documents."""
    for page, name in FROM_ROOT.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=re.sub(r"\]\(docs/", "](", text)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Make links to files of the root those of their pages, and write out rooms and commands."""
    for page, name in FROM_ROOT.items():
        markdown = re.sub(rf"\]\(\.\./((?:\.\./)*){name}", rf"](\g<1>{page}", markdown)
    markdown = ROOM.sub(lambda found: "\n\n".join(f"::: {found[1]}.{name}" for name in names_of(found[1])), markdown)
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, commands())
    return markdown


def on_page_content(content: str, **_: Any) -> str:
    """Write formulas as MathML, which browsers draw without a script."""
    return FORMULA.sub(lambda found: mathml(found[2], block=found[1] == "div"), content)


def mathml(formula: str, *, block: bool) -> str:
    """Return a formula in TeX as MathML."""
    return convert(html.unescape(formula).strip(), display="block" if block else "inline")


def names_of(room: str) -> list[str]:
    """Return the public names of a room: those that its `__init__` imports or defines."""
    path = ROOT.joinpath("src", *room.split("."))
    tree = ast.parse((path / "__init__.py").read_text(encoding="utf-8"))
    names = [item.asname or item.name for node in tree.body if isinstance(node, ast.ImportFrom) for item in node.names]
    names += [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return sorted((name for name in names if name[0] != "_"), key=lambda name: (name[0].islower(), name.lower()))


def commands() -> str:
    """Return every command with its help, its arguments and its flags."""
    sys.path.insert(0, str(ROOT / "src"))
    from harmonium.cli.commands import COMMANDS as TABLE  # takes seconds: only where it is asked for
    from harmonium.cli.commands import load_command

    return "\n\n".join(command(f"harmonium {name}", load_command(name)) for name in TABLE)


def command(title: str, found: Any) -> str:
    """Return one command, or a group of them, as Markdown."""
    parts = [f"## `{title}`", found.help or ""]
    rows = [row for parameter in found.params if (row := option(parameter))]
    if rows:
        parts.append("\n".join(["| | |", "|---|---|", *rows]))
    for name, inner in getattr(found, "commands", {}).items():
        parts.append(command(f"{title} {name}", inner).replace("## ", "### ", 1))
    return "\n\n".join(parts)


def option(parameter: Any) -> str:
    """Return an argument or a flag as a row of a table."""
    if "--help" in parameter.opts:
        return ""
    is_flag = parameter.param_type_name == "option"
    names = ", ".join([*parameter.opts, *parameter.secondary_opts]) if is_flag else parameter.metavar or parameter.name
    text = (getattr(parameter, "help", "") or "").replace("|", "\\|")
    return f"| `{names}` | {text} |"
