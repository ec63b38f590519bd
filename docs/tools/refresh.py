"""Bring pages up to date: run their blocks, keep the pictures that they save, and put in what they print.

    python -m docs.tools.refresh tour tutorials/teacher gallery

A page `docs/tutorials/teacher.md` that saves `recall.png` gets it as `docs/images/teacher/recall.png`. A block of text
right after one of Python is what that one prints, and is written anew; after commands it is an excerpt, and left to its
author.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch
from PIL import Image, ImageChops

from docs.tools.pages import DOCS, Block, run_page

WIDEST = 1100
"""Pixels: what is wider is made smaller."""


def refresh(name: str) -> None:
    """Run a page, then write its pictures and outputs."""
    page = DOCS / f"{name}.md"
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        ran = list(run_page(page, Path(folder)))
        target = DOCS / "images" / page.stem
        for file in sorted(Path(folder).glob("*.png")):
            target.mkdir(parents=True, exist_ok=True)
            keep(file, target / file.name)
    write_outputs(page, ran)


def keep(file: Path, target: Path) -> None:
    """Write a picture small."""
    with Image.open(file) as picture:
        image = trimmed(picture.convert("RGB"))
    if image.width > WIDEST:
        image = image.resize((WIDEST, round(image.height * WIDEST / image.width)), Image.Resampling.LANCZOS)
    image.quantize(128).save(target, optimize=True)
    print(f"{target.relative_to(DOCS)}: {target.stat().st_size // 1000} kB")


def trimmed(image: Image.Image, margin: int = 12) -> Image.Image:
    """Return a picture without the white around it."""
    box = ImageChops.difference(image, Image.new("RGB", image.size, "white")).getbbox()
    if box is None:
        return image
    left, top, right, bottom = box
    return image.crop(
        (
            max(0, left - margin),
            max(0, top - margin),
            min(image.width, right + margin),
            min(image.height, bottom + margin),
        )
    )


def write_outputs(page: Path, ran: list[tuple[Block, str]]) -> None:
    """Put what Python blocks printed into the blocks of text right after them, from the last to the first."""
    text = page.read_text(encoding="utf-8")
    for (before, printed), (block, _) in reversed(list(zip(ran, ran[1:], strict=False))):
        if block.language == "text" and block.follows and before.language == "python":
            lines = "\n".join(line.rstrip() for line in printed.rstrip().splitlines())
            text = f"{text[: block.start]}```text\n{lines}\n```{text[block.end :]}"
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for chosen in sys.argv[1:]:
        refresh(chosen)
