"""The commands that apply a run on a table to a file of one's own: `impute`, `score`, `transform`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from harmonium.cli.options import Json, Quiet, RunFolder, UseSeed
from harmonium.cli.show import Show
from harmonium.cli.signals import StopSignals
from harmonium.data import decode, encode, read_columns
from harmonium.data.column import Column
from harmonium.data.csv_file import Table
from harmonium.evaluation.imputation import completed, draw_imputations, impute, with_followers
from harmonium.evaluation.row_scores import score_rows
from harmonium.models import RBM
from harmonium.models.observed import observed_hidden_mean
from harmonium.runs import Run, write_cells

File = Annotated[Path, typer.Argument(metavar="FILE", help="A table: .csv, .tsv or .parquet.", show_default=False)]
TableOutput = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="The .csv file to write. Default: beside FILE.", show_default=False),
]


def impute_command(
    run: RunFolder,
    file: File,
    output: TableOutput = None,
    draws: Annotated[int, typer.Option(min=2, help="Draws behind each value and its uncertainty.")] = 200,
    multiple: Annotated[
        int,
        typer.Option(min=0, help="Write so many completed tables instead, one below the other: multiple imputation."),
    ] = 0,
    seed: UseSeed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fill in the missing cells of a table, given the others of their rows.

    A number becomes its expected value, a level the most probable one; a second file, …-uncertainty.csv, says how sure
    each is: the standard deviation and a 90 % interval, or the probability. Known cells stay as they are. With
    --multiple 5 the output has five completed tables, numbered in the column `imputation`, each drawn at random: what
    is computed from each and averaged then knows what is not known.
    """
    show = Show(as_json=as_json, quiet=quiet)
    with StopSignals().installed(), show.warnings():
        rbm, columns, table, x = opened(run, file, show.warn)
        generator = torch.Generator().manual_seed(seed)
        path = target(output, file, "imputed")
        modeled = [column.name for column in columns if column.width or column.type == "copy"]
        n_holes = sum(cell is None for name in modeled if name in table for cell in table[name])
        if multiple:
            drawn = draw_imputations(rbm, x, multiple, generator=generator)
            tables = [filled_table(table, decode(rows, columns)) for rows in drawn]
            numbers = [i + 1 for i in range(multiple) for _ in x]
            write_cells({"imputation": numbers} | {name: [c for t in tables for c in t[name]] for name in table}, path)
        else:
            filled = with_followers(table, impute(rbm, x, columns, n_draws=draws, generator=generator), columns)
            write_cells(completed(table, filled), path)
            sure = path.with_name(f"{path.stem}-uncertainty.csv")
            cells = [asdict(cell) | {"row": cell.row + 1, "std": _short(cell.std)} for cell in filled]
            names = ("row", "column", "value", "std", "low", "high", "probability")
            write_cells({name: [cell[name] for cell in cells] for name in names}, sure)
            show.line(f"uncertainty of each: {sure}")
    show.event("imputed", path=str(path), n_cells=n_holes, n_rows=len(x))
    show.line(f"{n_holes:,} missing cells of {len(x):,} rows filled in: {path}")


def score_command(
    run: RunFolder,
    file: File,
    output: TableOutput = None,
    seed: UseSeed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score each row of a table: its log-likelihood, how odd it is, and which columns make it so.

    `log_likelihood` is that of the observed values, in nats, in the units of the table; `anomaly` is higher for odder
    rows; `p_value` is the share of rows of the model itself that are as odd. `because` names the columns that are
    surprising given the rest of the row, with the nats that each adds.
    """
    show = Show(as_json=as_json, quiet=quiet)
    with StopSignals().installed(), show.warnings():
        rbm, columns, _, x = opened(run, file, show.warn)
        scores = score_rows(rbm, x, columns, generator=torch.Generator().manual_seed(seed))
        path = target(output, file, "scores")
        because = ["; ".join(f"{name} +{nats:.1f}" for name, nats in scores.because(i)) for i in range(len(x))]
        write_cells(
            {
                "row": list(range(1, len(x) + 1)),
                "log_likelihood": [round(value, 4) for value in scores.log_likelihood.tolist()],
                "anomaly": [round(value, 4) for value in scores.anomaly.tolist()],
                "p_value": [round(value, 4) for value in scores.p_value.tolist()],
                "because": because,
            },
            path,
        )
    mean = scores.log_likelihood.mean().item()
    show.event("scores", path=str(path), n_rows=len(x), mean_log_likelihood=mean)
    show.line(f"{len(x):,} rows, mean log-likelihood {mean:.3f} nats: {path}")
    for i in scores.anomaly.argsort(descending=True)[:5].tolist():
        told = f" because of {because[i]}" if because[i] else ""
        show.line(f"  row {i + 1}: anomaly {scores.anomaly[i]:.2f}, p = {scores.p_value[i]:.3f}{told}")


def transform_command(
    run: RunFolder, file: File, output: TableOutput = None, as_json: Json = False, quiet: Quiet = False
) -> None:
    """Write features of each row of a table: the means of the hidden units.

    For a model of kind `table` they are the probabilities of its components.
    """
    show = Show(as_json=as_json, quiet=quiet)
    with StopSignals().installed(), show.warnings():
        rbm, _, _, x = opened(run, file, show.warn)
        features = observed_hidden_mean(rbm, x).flatten(1)
        path = target(output, file, "features")
        write_cells(
            {f"h{j + 1}": [round(v, 6) for v in features[:, j].tolist()] for j in range(features.shape[1])}, path
        )
    show.event("features", path=str(path), n_rows=len(x), n_features=features.shape[1])
    show.line(f"{features.shape[1]} features of {len(x):,} rows: {path}")


def opened(folder: Path, file: Path, warn: Callable[[str], None]) -> tuple[RBM, tuple[Column, ...], Table, Tensor]:
    """Return the model of a run on a table, its columns, the cells of a file, and its encoded rows.

    A column that the file does not have, in other words neither, is missing in all rows, a level that was never seen in
    its row.
    """
    run = Run.open(folder)
    data = run.outline.data
    if data.kind != "table":
        raise ValueError(f"{folder} was trained on {data.name}, which is not a table: this command is for tables.")
    model: Any = run.model()
    if not file.is_file():
        raise ValueError(f"There is no file {file}.")
    table = read_columns(file)
    n = len(next(iter(table.values())))
    told = {copy.of for copy in data.columns if copy.type == "copy" and copy.name in table}
    wanted = [column.name for column in data.columns if column.width or column.type == "copy"]
    if not any(name in table for name in wanted):
        raise ValueError(
            f"{file} has none of the columns that {folder} has learned: {', '.join(map(repr, wanted[:6]))}"
            f"{' …' if len(wanted) > 6 else ''}. Its own are {', '.join(map(repr, list(table)[:6]))}"
            f"{' …' if len(table) > 6 else ''}. Is it the right file?"
        )
    for column in data.columns:
        if column.width and column.name not in table:
            if column.name not in told:
                warn(f"{file} has no column {column.name!r}: taken as missing in all rows.")
            table[column.name] = [None] * n
    return model, data.columns, table, encode(table, data.columns, on_unseen=warn).to(model.weight)


def _short(number: float | None) -> float | None:
    """Return a number with four digits, which is more than draws can tell."""
    return None if number is None else float(f"{number:.4g}")


def filled_table(table: Table, drawn: Table) -> Table:
    """Return a table with its missing cells from another."""
    return {
        name: [new if old is None else old for old, new in zip(cells, drawn.get(name, cells), strict=True)]
        for name, cells in table.items()
    }


def target(output: Path | None, file: Path, word: str) -> Path:
    """Return the file to write: as told, or beside the table."""
    path = file.with_name(f"{file.name.partition('.')[0]}-{word}.csv") if output is None else output
    if path.suffix != ".csv":
        raise ValueError(f"{path} must end in .csv.")
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent} to write {path.name} into. Make it first.")
    return path
