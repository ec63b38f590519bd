"""The report of a run: one file of HTML that opens anywhere, and its figures as PNG."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from harmonium.plots.page import page, to_png
from harmonium.plots.sections import SECTIONS
from harmonium.plots.subject import Reportable, Subject
from harmonium.plots.verdict import health, verdict

__all__ = ["Reportable", "write_report"]


def write_report(run: Reportable, *, n_steps: int = 1000, generator: torch.Generator | None = None) -> Path:
    """Write `report.html` and `figures/*.png` into the folder of a run and return the path of the page.

    The page shows what applies to the model: curves, samples of chains of `n_steps` steps, density, filters,
    reconstructions, in-painting, free energies, weights. `generator` draws the samples; None stands for a new one with
    seed 0, so that the same run gives the same report.
    """
    if n_steps < 1:
        raise ValueError(f"`n_steps` must be at least 1. Got {n_steps}. 1000 lets most chains forget their start.")
    subject = Subject(run, n_steps, torch.Generator().manual_seed(0) if generator is None else generator)
    records, evaluation = run.metrics(), run.evaluation()
    found = [section for make in SECTIONS if (section := make(subject)) is not None]
    figures = run.folder / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    sections = []
    for section in found:
        images = [to_png(picture) for picture in section.pictures]
        for picture, png in zip(section.pictures, images, strict=True):
            (figures / f"{picture.name}.png").write_bytes(png)
        sections.append((section, images))
    text = page(
        f"Run {run.folder.name}",
        verdict(subject.data.note, evaluation, records, subject.spread()),
        health(evaluation, records),
        run.config.model_dump(),
        sections,
    )
    path = run.folder / "report.html"
    draft = path.with_name(".report.html.part")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, path)
    return path
