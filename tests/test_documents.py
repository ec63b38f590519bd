"""The pages do what they say: code runs and prints what is shown, commands exist, links lead somewhere."""

from __future__ import annotations

import dataclasses
import re
import tomllib
import typing
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

import conftest
import harmonium
from docs.tools.pages import DOCS, ROOT, blocks, headings, links, pages, run_page
from harmonium import data, draws, runs, testing, types
from harmonium.cli.commands import COMMANDS, load_command
from harmonium.learning.objectives import base
from harmonium.runs import panels

PLAIN = [page for page in pages() if page.parent != ROOT and any(b.language == "python" for b in blocks(page))]
"""The pages whose Python blocks need nothing but themselves."""

QUICK = {
    "gallery": (r"epochs=\d+", "epochs=1"),
    "how-to/objectives": (r"epochs = \d+", "epochs = 5"),
    "tutorials/practitioner": (
        r"(harmonium train .*)",
        r"\1 --components 6 --set table.shrinkage=0.1 --epochs 5 --no-report",
    ),
}
"""What is made smaller so that a page runs in seconds: a pattern, and what takes its place."""


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).with_suffix("").as_posix() if page.is_relative_to(DOCS) else page.name


# --- code ------------------------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("page", PLAIN, ids=name_of)
def test_code_runs_and_prints_what_is_shown(page: Path, tmp_path: Path) -> None:
    pattern, smaller = QUICK.get(name_of(page), ("$^", ""))
    torch.manual_seed(0)  # a reader gives no generator
    printed = ""
    for block, output in run_page(page, tmp_path, change=lambda text: re.sub(pattern, smaller, text)):
        if block.language == "text" and block.follows:
            missing = not_printed(block.text, printed)
            assert not missing, f"{name_of(page)}, {block.heading}: shown, but not printed: {missing}\n{printed}"
        printed = output


def not_printed(shown: str, printed: str) -> list[str]:
    """Return the lines of a page that are not printed: words must be the same, numbers near."""
    lines = [pieces(line) for line in printed.splitlines()]
    return [line for line in shown.splitlines() if not any(alike(pieces(line), other) for other in lines)]


def pieces(line: str) -> tuple[list[str], list[float]]:
    """Return the words of a line and its numbers."""
    numbers = re.findall(r"[-−+]?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?", line)
    words = re.sub(r"[-−+]?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?", "#", line).split()
    return words, [float(number.replace("−", "-").replace(",", "")) for number in numbers]


def alike(shown: tuple[list[str], list[float]], printed: tuple[list[str], list[float]]) -> bool:
    """Say whether two lines differ by no more than another machine's random numbers would make them."""
    near = (abs(a - b) <= 0.5 + 0.25 * max(abs(a), abs(b)) for a, b in zip(shown[1], printed[1], strict=False))
    return shown[0] == printed[0] and len(shown[1]) == len(printed[1]) and all(near)


def test_what_is_not_printed_is_found() -> None:
    printed = "accuracy 0.91 over 355 samples\nanother line\n"
    assert not_printed("accuracy 0.92 over 355 samples", printed) == []
    assert not_printed("accuracy 5.92 over 355 samples", printed) == ["accuracy 5.92 over 355 samples"]
    assert not_printed("precision 0.92 over 355 samples", printed) == ["precision 0.92 over 355 samples"]
    assert not_printed("accuracy 0.92", printed) == ["accuracy 0.92"]


def in_readme() -> list[tuple[str, str]]:
    return [(block.heading, block.text) for block in blocks(ROOT / "README.md") if block.language == "python"]


@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
@pytest.mark.parametrize(("heading", "code"), in_readme())
def test_readme(heading: str, code: str) -> None:
    namespace: dict[str, Any] = {}
    torch.manual_seed(0)
    exec(compile(code, f"README.md, {heading}", "exec"), namespace)  # noqa: S102  (our own documents)
    if "accuracy" in namespace:  # ten classes: chance is 0.1
        assert namespace["accuracy"] > 0.8 and namespace["sevens"].shape == (16, 64)
    else:
        assert namespace["v"].shape == (64, 64)


def names() -> dict[str, Any]:
    """Return what the blocks of CONTRIBUTING may use without importing it: what the files beside the new one import."""
    known: dict[str, Any] = {"torch": torch, "Tensor": Tensor, "nn": nn, "logsigmoid": logsigmoid, "Field": Field}
    known |= {"dataclass": dataclasses.dataclass, "Mapping": Mapping, "Self": typing.Self, "ClassVar": typing.ClassVar}
    rooms: tuple[ModuleType, ...] = (*conftest.ROOMS, data, runs, panels, base, draws, types, testing)
    for room in rooms:
        known |= {n: value for n, value in vars(room).items() if n[0] != "_" and not isinstance(value, ModuleType)}
    return known


CONTRIBUTING = [(block.heading, block.text) for block in blocks(ROOT / "CONTRIBUTING.md") if block.language == "python"]


@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
@pytest.mark.parametrize(("heading", "code"), CONTRIBUTING, ids=[f"{i} {h}" for i, (h, _) in enumerate(CONTRIBUTING)])
def test_contributing(heading: str, code: str) -> None:
    namespace = names()
    torch.manual_seed(0)
    exec(compile(code, f"CONTRIBUTING.md, {heading}", "exec"), namespace)  # noqa: S102  (our own documents)
    if "bound" in namespace and isinstance(namespace["bound"], harmonium.Estimate):
        assert namespace["bound"].value > -10 and "bound" in namespace["bound"].kind  # fair coins have -11.09
    if isinstance(namespace.get("following"), Tensor):
        assert namespace["nats"].value > -2 and namespace["following"].mean(0).argmax() == 1


def test_each_family_has_its_recipe() -> None:
    found = {heading.lower() for heading, _ in CONTRIBUTING}
    for family in ("unit", "coupling", "sampler", "objective", "model", "kind of model"):
        assert any(family in heading for heading in found), family


# --- commands and settings -------------------------------------------------------------------------------------------
def flags_of(command: Any) -> set[str]:
    return {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}


def unknown_words(words: list[str]) -> list[str]:
    """Return the command or the flags of a call that do not exist."""
    if words[0].startswith("-"):
        return []
    if words[0] not in COMMANDS:
        return [words[0]]
    command = load_command(words[0])
    inner = getattr(command, "commands", {})
    while inner and len(words) > 1 and words[1] in inner:
        command, words = inner[words[1]], words[1:]
        inner = getattr(command, "commands", {})
    known = flags_of(command)
    return [word for word in words[1:] if word.startswith("-") and word.split("=")[0] not in known]


def test_commands_and_flags_exist() -> None:
    wrong = [
        f"{name_of(page)}: {' '.join(words)}: {unknown}"
        for page in pages()
        for block in blocks(page)
        for words in (block.commands if block.language in ("", "sh") else [])
        if (unknown := unknown_words(words))
    ]
    assert not wrong, "\n".join(wrong)
    assert unknown_words(["train", "--data", "digits", "--no-such-flag"]) == ["--no-such-flag"]
    assert unknown_words(["no-such-command"]) == ["no-such-command"]


def test_settings_are_read() -> None:
    for page in pages():
        for block in blocks(page):
            if block.language == "toml":
                settings = tomllib.loads(block.text)
                settings.pop("sweep", None)
                assert runs.resolve(settings).model.kind


# --- links -----------------------------------------------------------------------------------------------------------
def broken(page: Path) -> list[str]:
    """Return the links of a page to files and headings that are not there."""
    found = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        named = not anchor or target.parent.name == "api"  # anchors of the reference are made from docstrings
        if not target.exists() or not (named or anchor in headings(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links(page: Path) -> None:
    assert not broken(page), broken(page)


def test_broken_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n[a](none.md) [b](#nowhere) [c](#title) `[d](none.md)`\n", encoding="utf-8")
    assert broken(page) == ["none.md", "#nowhere"]


def without_source(body: str, sources: str) -> list[str]:
    """Return what is cited as "Name … year" in a text and stands with neither in a list of sources."""
    name = r"[A-Z][a-zà-ÿ][\w-]*"
    cited = re.findall(
        rf"({name}(?:, {name})*(?: and {name})?)(?: et al\.|'s)? \(?((?:19|20)\d\d)", " ".join(body.split())
    )
    entries = re.split(r"\n(?=- )", sources)
    return [
        f"{who} {when}"
        for who, when in cited
        if not any(when in entry and all(n in entry for n in re.findall(name, who)) for entry in entries)
    ]


def test_every_citation_has_its_source() -> None:
    body, sources = (DOCS / "mathematics.md").read_text().split("## Sources")
    assert without_source(body, sources) == []
    assert without_source("AIS (Neal 2001) and Bennett's (1976) ratio", "- Neal, 1999.\n- Bennett, 1976.") == [
        "Neal 2001"
    ]


def test_pages_have_one_title_and_the_site_shows_them_all() -> None:
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        assert f" {page.relative_to(DOCS).as_posix()}\n" in menu, f"{page.name} is not in the menu of mkdocs.yml"


def test_notebooks_are_those_of_their_pages() -> None:
    pytest.importorskip("nbformat")
    from docs.tools.notebooks import outdated

    assert not outdated(), "make notebooks"


def test_pictures_are_used_and_small() -> None:
    used = {(page.parent / link).resolve() for page in pages() for link in links(page)}
    for picture in (DOCS / "images").rglob("*.png"):
        assert picture.stat().st_size < 400_000, f"{picture.name} is larger than 400 kB"
        assert picture.resolve() in used, f"{picture.relative_to(DOCS)} is on no page"
