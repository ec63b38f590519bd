"""The command that compares: `compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from harmonium.cli.options import DataDir, Json, Quiet
from harmonium.cli.show import Show
from harmonium.cli.signals import StopSignals
from harmonium.runs import Compared, Run, compare, differing_settings, draw

_N_DRAWN, _N_POINTS = 36, 512


def compare_command(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN RUN …", help="The folders of runs.", show_default=False)
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The page to write. Default: compare.html here.", show_default=False),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Steps of the chains that draw samples.")] = 1000,
    data_dir: DataDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare runs: the settings that differ, likelihoods with paired differences, curves and samples on one page.

    Differences are to the first run, on the same test samples: the first error is that of the two log Z, the second
    that over the samples, of the differences. Runs that are not evaluated yet are scored first.
    """
    show = Show(as_json=as_json, quiet=quiet)
    with StopSignals().installed(), show.warnings():
        show_comparison([Run.open(folder, data_dir=data_dir) for folder in folders], output, show, steps)


def show_comparison(runs: list[Run], output: Path | None, show: Show, steps: int = 1000) -> None:
    """Print how runs compare and write the page."""
    compared = compare(runs)
    settings = differing_settings(runs)
    for i, one in enumerate(compared):
        differs = {name: values[i] for name, values in settings.items()}
        found = one.difference
        told: dict[str, Any] = {} if found is None else {"difference": vars(found)}
        show.event("compared", folder=str(one.run.folder), settings=differs, test=one.scores.get("test"), **told)
    show.table(settings_table(compared, settings))
    show.line()
    show.table(scores_table(compared))
    for line in sentences(compared):
        show.line(line)
    path = write_page(compared, settings, output or Path("compare.html"), steps, show)
    if path is not None:
        show.event("page", path=str(path))
        show.line(f"page: {path}")


def shown(value: Any) -> str:
    """Return a setting in a few characters.

    >>> shown(0.08428303845098734), shown("pcd")
    ('0.08428', 'pcd')
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def settings_table(compared: list[Compared], settings: dict[str, list[Any]]) -> Table:
    """Return the settings that differ, a column a run."""
    table = Table("setting", *(one.name for one in compared), box=None, pad_edge=False)
    for name, values in settings.items():
        table.add_row(name, *("–" if value is None else shown(value) for value in values))
    if not settings:
        table.add_row("none differs", *[""] * len(compared))
    return table


def scores_table(compared: list[Compared]) -> Table:
    """Return the score of each run and its difference to the first."""
    table = Table("run", "score", f"less {compared[0].name}", box=None, pad_edge=False)
    for one in compared:
        table.add_row(one.name, one.headline or "–", "" if one.difference is None else str(one.difference))
    return table


def sentences(compared: list[Compared]) -> list[str]:
    """Return in words which run is better than the first, or why that cannot be said."""
    first = compared[0].name
    lines = []
    for one in compared[1:]:
        found = one.difference
        if found is None:
            lines.append(f"{one.name} and {first} cannot be compared: {one.why_not}.")
            continue
        better = f"{'better' if found.value > 0 else 'worse'} than {first} by {abs(found.value):.2f} nats a sample"
        errors = f"± {found.error:.2g} from log Z, ± {found.spread:.2g} over {found.n_samples:,} test samples"
        sure = "" if found.clear else "; within three standard errors, so it may be chance"
        lines.append(f"{one.name} is {better} ({errors}{sure}).")
    return lines


def write_page(
    compared: list[Compared], settings: dict[str, list[Any]], path: Path, steps: int, show: Show
) -> Path | None:
    """Write the page, if what draws it is installed."""
    try:
        from harmonium.plots import write_comparison  # optional: it needs matplotlib
    except ImportError as error:
        show.warn(f'No page is written: {error}. Install what it needs with: pip install "harmonium[plots]"')
        return None
    told = {
        one.name: {name: values[i] for name, values in settings.items()} | {"score": one.headline}
        for i, one in enumerate(compared)
    }
    drawn = {}
    for one in compared:
        data = one.run.data()
        if len(data.shape) > 1 or tuple(data.shape) == (2,):
            n = _N_DRAWN if len(data.shape) > 1 else _N_POINTS
            drawn[one.name] = (one.run.restored(data.train[:n].float()), draw(one.run, n, n_steps=steps))
    records = {one.name: one.run.metrics() for one in compared}
    return write_comparison(path, sentences(compared), told, records, drawn)
