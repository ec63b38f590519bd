"""The command `logz`: how large is Z, by one way or by all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from harmonium.cli.options import Json, Quiet, RunFolder
from harmonium.cli.show import Show
from harmonium.cli.signals import StopSignals
from harmonium.runs import LOG_Z_METHODS, Run, estimate_log_z, write_log_z
from harmonium.types import Estimate

ALL = "all"


def logz_command(
    run: RunFolder,
    method: Annotated[
        str | None,
        typer.Option(
            help=f"How: {', '.join([*LOG_Z_METHODS, ALL])}. Default: as the run says, else exact or sandwich.",
            show_default=False,
        ),
    ] = None,
    n_chains: Annotated[int | None, typer.Option(min=2, help="Annealed chains.", show_default=False)] = None,
    n_betas: Annotated[
        int | None, typer.Option(min=2, help="Temperatures: more give tighter bounds.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")] = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Estimate log Z of a trained model, with guaranteed and statistical bounds, and say whether to trust it.

    The estimates go into log_z.json in the run, the picture of where they lie between the bounds into log_z.png. Data
    of the run are where some of the chains start, and what the annealing starts from is fitted to them.
    """
    if method is not None and method not in (*LOG_Z_METHODS, ALL):
        raise ValueError(f"--method must be one of {', '.join([*LOG_Z_METHODS, ALL])}. Got {method!r}.")
    opened, show = Run.open(run), Show(as_json=as_json, quiet=quiet)
    methods = list(LOG_Z_METHODS) if method == ALL else [method]
    found: dict[str, Estimate] = {}
    with StopSignals().installed(), show.warnings():
        for name in methods:
            with _progress(show, name or "log Z") as on_beta:
                try:
                    estimate = estimate_log_z(
                        opened, name, n_chains=n_chains, n_betas=n_betas, seed=seed, on_beta=on_beta
                    )
                except (ValueError, TypeError) as error:
                    if method != ALL:
                        raise
                    show.line(f"{name}: not for this model. {error}")
                    continue
            found[estimate.kind] = estimate
    if not found:
        raise ValueError("No method gives log Z of this model.")
    write_log_z(opened, found)
    for estimate in found.values():
        show.event("log_z", **_plain(estimate))
    show.table(log_z_table(found))
    for kind, estimate in found.items():
        if estimate.note:
            show.line(f"{kind}: {estimate.note}")
    _draw(opened, found, show)


def log_z_table(found: dict[str, Estimate]) -> Table:
    """Return estimates line by line: value, error, where it lies as chains say, and where it lies for certain."""
    table = Table("method", "log Z", "±", "by chains", "guaranteed", "trusted", box=None, pad_edge=False)
    for column in table.columns:
        column.no_wrap = column.header not in ("by chains", "guaranteed")  # where it is narrow intervals take two lines
    for kind, estimate in found.items():
        inside = _interval(estimate.lower, estimate.upper)
        certain = _interval(estimate.at_least, estimate.at_most)
        error = "–" if not math.isfinite(estimate.error) or kind == "bounds" else f"{estimate.error:.2g}"
        value = "–" if kind == "bounds" and not estimate.trusted else f"{estimate.value:.4f}"
        table.add_row(kind, value, error, inside, certain, "yes" if estimate.trusted else "no")
    return table


def _interval(low: float, high: float) -> str:
    if low == high:
        return f"{low:.3f}"
    return "–" if low == -math.inf and high == math.inf else f"[{low:.3f}, {high:.3f}]".replace("inf", "∞")


def _plain(estimate: Estimate) -> dict[str, object]:
    names = ("kind", "value", "error", "lower", "upper", "at_least", "at_most", "trusted", "note")
    values = {name: getattr(estimate, name) for name in names}
    return {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in values.items()}


@contextmanager
def _progress(show: Show, what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Give what is called with the steps done and their number: a bar on a terminal, nothing elsewhere."""
    if show.style != "terminal":
        yield None
        return
    with Progress(
        TextColumn("{task.description}"), BarColumn(20), TimeRemainingColumn(), console=show.console, transient=True
    ) as bar:
        task = bar.add_task(what, total=1)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _draw(run: Run, found: dict[str, Estimate], show: Show) -> None:
    try:
        from harmonium import plots  # optional: it needs matplotlib
    except ImportError as error:
        show.warn(f'No picture is drawn: {error}. Install what it needs with: pip install "harmonium[plots]"')
        return
    path = run.folder / "log_z.png"
    plots.log_z_between_bounds(found).savefig(path)
    show.event("picture", path=str(path))
    show.line(f"picture: {path}")
