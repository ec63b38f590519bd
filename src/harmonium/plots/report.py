"""The report of a run: one file of HTML that opens anywhere, and its figures as PNG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

from harmonium.plots.page import Section, page, to_png
from harmonium.plots.panels import draw_panel
from harmonium.plots.sections import SECTIONS, learning_curves, shown_limits
from harmonium.plots.verdict import health, verdict
from harmonium.runs.atomic import write_atomic
from harmonium.runs.folder import FIGURES, REPORT
from harmonium.runs.kinds import AnyKind, PanelMaker
from harmonium.runs.panels import Panel
from harmonium.runs.subject import Subject
from harmonium.runs.trained import Trained

__all__ = ["Reportable", "write_page", "write_panels", "write_report"]


class Reportable(Protocol):
    """What a report needs of a run; `harmonium.runs.Run` has it."""

    @property
    def folder(self) -> Path:
        """Where the report and the figures go."""
        ...

    @property
    def config(self) -> Any:
        """The resolved configuration, with `model_dump()`."""
        ...

    @property
    def kind(self) -> AnyKind:
        """The kind of model, which names the sections."""
        ...

    def trained(self) -> Trained:
        """The trained model beside its data."""
        ...


def write_report(run: Reportable, *, n_steps: int = 1000, generator: torch.Generator | None = None) -> Path:
    """Write `report.html` and `figures/*.png` into the folder of a run and return the path of the page.

    The page shows what the kind of model names and what applies: curves, samples of chains of `n_steps` steps, density,
    filters, reconstructions, in-painting, free energies, weights, and panels of its own. `generator` draws the samples;
    None stands for a new one with seed 0, so that the same run gives the same report.
    """
    if n_steps < 1:
        raise ValueError(f"`n_steps` must be at least 1. Got {n_steps}. 1000 lets most chains forget their start.")
    trained = run.trained()
    subject = Subject(trained, n_steps, torch.Generator().manual_seed(0) if generator is None else generator)
    made = [section for name in run.kind.sections() if (section := make_section(name, subject)) is not None]
    own = [] if trained.scores is None else run.kind.verdict(trained.scores)
    said = verdict(trained.data.note, trained.scores, trained.records, own)
    return write_page(run.folder, said, health(trained.scores, trained.records), run.config.model_dump(), made)


def write_page(
    folder: Path,
    verdict: Sequence[str],
    messages: Sequence[str],
    settings: Mapping[str, Mapping[str, Any]],
    sections: Iterable[Section],
) -> Path:
    """Write the page and the figures of some sections into a folder."""
    figures, drawn = folder / FIGURES, []
    figures.mkdir(parents=True, exist_ok=True)
    for section in sections:
        images = [to_png(picture) for picture in section.pictures]
        for picture, png in zip(section.pictures, images, strict=True):
            (figures / f"{picture.name}.png").write_bytes(png)
        drawn.append((section, images))
    text = page(f"Run {folder.name}", verdict, messages, settings, drawn)
    write_atomic(folder / REPORT, text.encode())
    return folder / REPORT


def write_panels(
    folder: Path,
    sentences: Sequence[str],
    settings: Mapping[str, Mapping[str, Any]],
    records: Sequence[Mapping[str, Any]],
    panels: Iterable[Panel],
) -> Path:
    """Write the report of what is no run of one model: its sentences, its panels, and the curves of its metrics."""
    learned = learning_curves(records)
    sections = [*([] if learned is None else [learned]), *(draw_panel(panel) for panel in panels)]
    return write_page(folder, sentences, health(None, records), settings, sections)


def make_section(section: str | PanelMaker, subject: Subject) -> Section | None:
    """Return a section of the report by its name, or drawn from a panel, or None where it does not apply."""
    if isinstance(section, str):
        if section not in SECTIONS:
            raise ValueError(f"There is no section {section!r} of a report. There are: {', '.join(SECTIONS)}.")
        return SECTIONS[section](subject)
    panel = section(subject)
    return None if panel is None else draw_panel(panel, shown_limits(subject) if subject.image else None)
