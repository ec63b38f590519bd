"""Tables with the default command against imputers and densities of scikit-learn: `python -m benchmarks.tables`.

For each table and seed: `harmonium train --data table.csv --seed s`, then imputation of test rows with 10, 30 and 50 %
holes, nats of the numbers of test rows, synthetic rows. Results of each are kept in a folder; what is there is not run
again. `--report` prints the tables of docs/results.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn import datasets
from sklearn.ensemble import RandomForestClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KernelDensity

from harmonium.cli.entry import run as command
from harmonium.data import Column, log_slopes
from harmonium.data.split import THREE_WAYS, split_indices
from harmonium.data.table import encode, read_columns
from harmonium.draws import draw_uniform
from harmonium.evaluation.imputation import draw_imputations
from harmonium.evaluation.row_scores import observed_log_likelihood
from harmonium.evaluation.synthetic import draw_rows
from harmonium.learning.fit_table import table_machine
from harmonium.learning.starts.mixture import start_mixture
from harmonium.runs import Run

FROM_SKLEARN = ("wine", "breast_cancer", "iris", "diabetes")
FROM_FILES = ("penguins", "titanic", "tips", "geyser", "diamonds")
RATES, N_MASKS, N_DRAWS = (0.1, 0.3, 0.5), 5, 200
DIAMONDS = 6000  # of 53,940 rows, drawn with seed 0: nearest neighbors of all take hours


def write_tables(folder: Path, data_dir: Path) -> dict[str, Path]:
    """Write every table as CSV and return the paths by their names."""
    paths = {}
    for name in FROM_SKLEARN:
        paths[name] = folder / f"{name}.csv"
        if not paths[name].exists():
            loaded = getattr(datasets, f"load_{name}")(as_frame=True)
            loaded.data.to_csv(paths[name], index=False)
    for name in FROM_FILES[:-1]:
        paths[name] = data_dir / "tables" / f"{name}.csv"
    paths["diamonds"] = folder / "diamonds.csv"
    if not paths["diamonds"].exists():
        lines = gzip.open(data_dir / "tables" / "diamonds.csv.gz", "rt").read().splitlines()  # noqa: SIM115
        rows = np.random.default_rng(0).permutation(len(lines) - 1)[:DIAMONDS] + 1
        paths["diamonds"].write_text("\n".join([lines[0], *(lines[i] for i in sorted(rows))]) + "\n")
    return paths


def with_own_copies(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return the columns with copies as columns of their own, encoded as their sources are: what others are given."""
    by_name = {column.name: column for column in columns}
    return tuple(replace(c, type=by_name[c.of].type, of="") if c.type == "copy" else c for c in columns)


def without_copies(x: torch.Tensor, columns: tuple[Column, ...]) -> torch.Tensor:
    """Return rows with copies as rows of the model: a source that is missing has what a copy has."""
    wide = [column for column in with_own_copies(columns) if column.width]
    blocks = dict(zip([c.name for c in wide], x.split([c.width for c in wide], -1), strict=True))
    for copy in (column for column in columns if column.type == "copy"):
        blocks[copy.of] = torch.where(blocks[copy.of].isnan(), blocks[copy.name], blocks[copy.of])
    return torch.cat([blocks[column.name] for column in columns if column.width], -1)


def put_back(x: torch.Tensor, columns: tuple[Column, ...]) -> torch.Tensor:
    """Return rows of the model with their copies."""
    kept = [column for column in columns if column.width]
    blocks = dict(zip([c.name for c in kept], x.split([c.width for c in kept], -1), strict=True))
    return torch.cat([blocks[c.of or c.name] for c in columns if c.width or c.type == "copy"], -1)


class Encoded:
    """A table for scikit-learn: numbers standardized on the training rows, levels one-hot, NaN where missing."""

    def __init__(self, x: torch.Tensor, columns: tuple[Column, ...], train: torch.Tensor) -> None:
        self.columns = [column for column in columns if column.width]
        blocks, self.slices, self.moments = [], [], []
        start = width = 0
        for column in self.columns:
            block = x[:, start : start + column.width]
            if column.is_numeric:
                values = column.inverse(block)
                values = torch.where(block.isnan(), math.nan, values)
                known = values[train][~values[train].isnan()]
                self.moments.append((float(known.mean()), float(known.std()) or 1.0))
                block = (values - self.moments[-1][0]) / self.moments[-1][1]
            else:
                self.moments.append((0.0, 1.0))
                block = torch.cat([1 - block, block], 1) if column.type == "binary" else block
            blocks.append(block)
            self.slices.append(slice(width, width + block.shape[1]))
            start, width = start + column.width, width + block.shape[1]
        self.x = torch.cat(blocks, 1).numpy()
        self.numbers = [i for i, column in enumerate(self.columns) if column.is_numeric]


def imputation_errors(filled: np.ndarray, truth: Encoded, rows: np.ndarray, holes: np.ndarray) -> np.ndarray:
    """Return `(n, 2)`: for each row its mean squared error of numbers and its share of wrong levels, NaN for none."""
    found = np.full((len(rows), 2), np.nan)
    parts: list[list[np.ndarray]] = [[], []]
    for i, column in enumerate(truth.columns):
        right, ours = truth.x[rows][:, truth.slices[i]], filled[:, truth.slices[i]]
        if column.is_numeric:
            error = (ours[:, 0] - right[:, 0]) ** 2
        else:
            error = (ours.argmax(1) != np.nan_to_num(right).argmax(1)).astype(float)
        parts[0 if column.is_numeric else 1].append(np.where(holes[:, i], error, np.nan))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for j, errors in enumerate(parts):
            if errors:
                found[:, j] = np.nanmean(np.stack(errors, 1), 1)
    return found


def ours_filled(
    model: Any, x: torch.Tensor, columns: tuple[Column, ...], truth: Encoded, generator: torch.Generator
) -> np.ndarray:
    """Return the mean of draws in the coordinates of `Encoded`."""
    drawn = put_back(draw_imputations(model, without_copies(x, columns), N_DRAWS, generator=generator), columns)
    blocks, start = [], 0
    for column, (mean, std) in zip(truth.columns, truth.moments, strict=True):
        block = drawn[..., start : start + column.width].double()
        start += column.width
        if column.is_numeric:
            block = (column.inverse(block) - mean) / std
        elif column.type == "binary":
            block = torch.cat([1 - block, block], -1)
        blocks.append(block.mean(0))
    return torch.cat(blocks, 1).numpy()


def impute_all(model: Any, x: torch.Tensor, columns: tuple[Column, ...], truth: Encoded, parts: Any) -> dict[str, Any]:
    """Return errors by rate and method: of numbers (squared, in variances) and of levels; x has copies."""
    train, _, test = parts
    generator = torch.Generator().manual_seed(7)
    imputers: dict[str, Any] = {
        "iterative": IterativeImputer(random_state=0),
        "nearest neighbors": KNNImputer(),
        "means": SimpleImputer(),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for imputer in imputers.values():
            imputer.set_params(keep_empty_features=True)
            imputer.fit(truth.x[train.numpy()])
    result: dict[str, Any] = {}
    widths = torch.tensor([column.width for column in truth.columns])
    for rate in RATES:
        errors: dict[str, list[np.ndarray]] = {}
        for _ in range(N_MASKS):
            rows = x[test]
            known = torch.stack([~b.isnan().any(1) for b in rows.split(widths.tolist(), 1)], 1)
            holes = (draw_uniform(torch.empty(known.shape), generator=generator) < rate) & known
            masked = rows.masked_fill(holes.repeat_interleave(widths, 1), math.nan)
            theirs = truth.x[test.numpy()].copy()
            for i, part in enumerate(truth.slices):
                theirs[holes[:, i].numpy(), part] = np.nan
            filled = {"harmonium": ours_filled(model, masked, columns, truth, generator)}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                filled |= {name: imputer.transform(theirs) for name, imputer in imputers.items()}
            for name, values in filled.items():
                errors.setdefault(name, []).append(imputation_errors(values, truth, test.numpy(), holes.numpy()))
        result[f"{rate:g}"] = {name: np.concatenate(parts).tolist() for name, parts in errors.items()}
    return result


def nats(model: Any, x: torch.Tensor, columns: tuple[Column, ...], truth: Encoded, parts: Any) -> dict[str, Any]:
    """Return the log density of the numbers of each complete test row, in the units of the table, by method."""
    train, valid, test = parts
    n = len(truth.numbers)
    if not n:
        return {}
    numbers = truth.x[:, : truth.slices[n - 1].stop]
    whole = ~np.isnan(numbers).any(1)
    fit, choose, rows = (numbers[i][whole[i]] for i in (part.numpy() for part in (train, valid, test)))
    log_unit = sum(math.log(truth.moments[i][1]) for i in truth.numbers)
    mixtures = [GaussianMixture(m, n_init=2, random_state=0).fit(fit) for m in range(1, 13) if m <= len(fit) // 5]
    kernels = [KernelDensity(bandwidth=h).fit(fit) for h in np.geomspace(0.03, 1.5, 20)]
    chosen = {name: max(group, key=lambda m: m.score(choose)) for name, group in
              (("Gaussian mixture", mixtures), ("kernel density", kernels))}  # fmt: skip
    found = {name: (m.score_samples(rows) - log_unit).tolist() for name, m in chosen.items()}
    found["single Gaussian"] = (mixtures[0].score_samples(rows) - log_unit).tolist()
    mean, std = fit.mean(0), fit.std(0)
    z = (rows - mean) / std
    found["independent Gaussians"] = (-(z**2 / 2 + np.log(std) + math.log(2 * math.pi) / 2).sum(1) - log_unit).tolist()
    alone = x[test][whole[test.numpy()]].clone()
    alone[:, sum(column.width for column in truth.columns[:n]) :] = math.nan
    slope = log_slopes(alone, columns).sum(1)
    found["harmonium"] = (observed_log_likelihood(model, alone).value + slope).tolist()
    apart = table_machine(columns, 1)
    start_mixture(apart, x[train], shrinkage=1.0)
    found["independent columns"] = (observed_log_likelihood(apart, alone).value + slope).tolist()
    return found


def synthetic(model: Any, x: torch.Tensor, truth: Encoded, columns: tuple[Column, ...], train: Any) -> dict[str, Any]:
    """Return the accuracy of a random forest that tells synthetic rows from rows of the table, and their moments.

    Both have all columns of the table, copies (x has them) and all.
    """
    generator = torch.Generator().manual_seed(11)
    wide = with_own_copies(columns)
    apart = table_machine(wide, 1)
    start_mixture(apart, x[train], shrinkage=1.0)
    result: dict[str, Any] = {}
    for name in ("harmonium", "independent columns"):
        ours = name == "harmonium"
        drawn = draw_rows(model if ours else apart, columns if ours else wide, len(x), generator=generator)
        fake = Encoded(put_back(drawn, columns) if ours else drawn, wide, train)
        for i, (mean, std) in enumerate(truth.moments):  # on the scale of the table's rows
            own_mean, own_std = fake.moments[i]
            fake.x[:, fake.slices[i]] = (fake.x[:, fake.slices[i]] * own_std + own_mean - mean) / std
        pattern = np.isnan(truth.x)[np.random.default_rng(0).permutation(len(truth.x))]
        both = np.concatenate([truth.x, np.where(pattern, np.nan, fake.x)])
        label = np.repeat([0, 1], len(truth.x))
        forest = RandomForestClassifier(200, random_state=0, min_samples_leaf=2)
        folds = StratifiedKFold(5, shuffle=True, random_state=0)  # rows of a table are often sorted
        accuracy = cross_val_score(forest, np.nan_to_num(both, nan=-9.0), label, cv=folds)
        numbers = [truth.slices[i].start for i in truth.numbers]
        real, made = truth.x[train.numpy()][:, numbers], fake.x[:, numbers]
        spread = np.nanstd(made, 0) / np.nanstd(real, 0)
        result[name] = {
            "told": float(accuracy.mean()),
            "mean": float(np.abs(np.nanmean(made, 0) - np.nanmean(real, 0)).max()) if numbers else 0.0,
            "spread": float(np.maximum(spread, 1 / spread).max()) if numbers else 1.0,
        }
    return result


def measure(name: str, path: Path, seed: int, folder: Path) -> dict[str, Any]:
    """Run the default command on a table and compare."""
    run_folder = folder / "runs" / f"{name}-{seed}"
    started = time.process_time()
    # Columns of scikit-learn's tables are measurements, nothing to be told; the split has the seed of the run.
    code = command(["train", "--data", str(path), "--seed", str(seed), "--set", f"data.seed={seed}", "-q",
                    "--no-report", "-o", str(run_folder), "--overwrite"])  # fmt: skip
    if code:
        raise SystemExit(code)
    seconds = time.process_time() - started
    run = Run.open(run_folder)
    model: Any = run.model()
    columns = run.data().columns
    table = read_columns(path)
    x, whole = encode(table, columns), encode(table, with_own_copies(columns))
    parts = split_indices(len(x), THREE_WAYS, generator=torch.Generator().manual_seed(seed))
    truth = Encoded(whole, with_own_copies(columns), parts[0])
    return {
        "seconds": seconds,
        "size": model.hidden.classes,
        "scores": run.evaluation(),
        "imputation": impute_all(model, whole, columns, truth, parts),
        "nats": nats(model, x, columns, truth, parts),
        "synthetic": synthetic(model, whole, truth, columns, parts[0]),
    }


def main() -> None:
    """Measure what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=Path("runs/tables"))
    parser.add_argument("--tables", nargs="*", default=[*FROM_SKLEARN, *FROM_FILES])
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    paths = write_tables(arguments.output, arguments.data_dir)
    found: dict[str, list[dict[str, Any]]] = {}
    for seed in arguments.seeds:
        for name in arguments.tables:
            file = arguments.output / f"{name}-{seed}.json"
            if not file.exists() and not arguments.report:
                file.write_text(json.dumps(measure(name, paths[name], seed, arguments.output)))
                print(f"{name}, seed {seed}: done", flush=True)
            if file.exists():
                found.setdefault(name, []).append(json.loads(file.read_text()))
    report(found)


def report(found: dict[str, list[dict[str, Any]]]) -> None:
    """Print the tables in Markdown, and in how many cells harmonium is first, or level with the first.

    Level is within two standard errors of the paired difference over the test rows of all seeds.
    """
    counts = {"imputation": [0, 0], "nats": [0, 0]}
    for j, what in enumerate(("numbers, root mean square in standard deviations", "levels, share wrong")):
        methods = ("harmonium", "iterative", "nearest neighbors", "means")
        print(f"\n| imputation: {what} | holes | {' | '.join(methods)} | |\n|---|---|{'---|' * (len(methods) + 1)}")
        for name, runs in found.items():
            for rate in RATES:
                rows = {m: np.concatenate([np.array(r["imputation"][f"{rate:g}"][m])[:, j] for r in runs])
                        for m in methods}  # fmt: skip
                if np.isnan(rows["harmonium"]).all():
                    continue
                means = {m: np.nanmean(v) for m, v in rows.items()}
                shown = [f"{means[m] ** 0.5 if j == 0 else means[m]:.3f}" for m in methods]
                place = standing(rows, means, least=True, n_repeats=N_MASKS)
                counts["imputation"][0] += not place.startswith("behind")
                counts["imputation"][1] += 1
                print(f"| {name} | {rate:.0%} | {' | '.join(shown)} | {place} |")
    methods = ("harmonium", "Gaussian mixture", "kernel density", "single Gaussian", "independent Gaussians",
               "independent columns")  # fmt: skip
    print(f"\n| nats of the numbers | components | {' | '.join(methods)} | |\n|---|---|{'---|' * (len(methods) + 1)}")
    for name, runs in found.items():
        if all(r["nats"] for r in runs):
            rows = {m: np.concatenate([np.array(r["nats"][m]) for r in runs]) for m in methods}
            each = {m: [np.mean(r["nats"][m]) for r in runs] for m in methods}
            means = {m: v.mean() for m, v in rows.items()}
            place = standing({m: rows[m] for m in methods[:4]}, means, least=False)
            counts["nats"][0] += not place.startswith("behind")
            counts["nats"][1] += 1
            shown = [f"{np.mean(v):.2f} ± {np.std(v):.2f}" for v in each.values()]
            print(f"| {name} | {', '.join(str(r['size']) for r in runs)} | {' | '.join(shown)} | {place} |")
    print(
        "\n| synthetic rows | told apart | of independent columns | means within | spreads within a factor | seconds |"
    )
    print("|---|---|---|---|---|---|")
    for name, runs in found.items():
        ours, apart = ([r["synthetic"][m] for r in runs] for m in ("harmonium", "independent columns"))
        told = [f"{np.mean(x):.3f} ± {np.std(x):.3f}" for x in ([r["told"] for r in group] for group in (ours, apart))]
        worst = [f"{max(r[key] for r in ours):.2f}" for key in ("mean", "spread")]
        print(f"| {name} | {' | '.join([*told, *worst])} | {np.mean([r['seconds'] for r in runs]):.0f} |")
    print("\n| log-likelihood of the observed values of test rows, all columns | harmonium | independent columns |")
    print("|---|---|---|")
    for name, runs in found.items():
        ours = [r["scores"]["test"]["value"] for r in runs]
        alone = [r["scores"]["baseline"]["value"] for r in runs]
        print(f"| {name} | {np.mean(ours):.2f} ± {np.std(ours):.2f} | {np.mean(alone):.2f} ± {np.std(alone):.2f} |")
    for what, (won, cells) in counts.items():
        print(f"\n{what}: first or level with the first in {won} of {cells} cells")


def standing(rows: dict[str, np.ndarray], means: dict[str, float], *, least: bool, n_repeats: int = 1) -> str:
    """Return "first", "level" (within two standard errors) or "behind", and the paired difference with its error.

    The difference is ours less the best of the others, averaged over test rows.
    """
    sign = 1 if least else -1
    best = min((m for m in rows if m != "harmonium"), key=lambda m: sign * means[m])
    gap = rows["harmonium"] - rows[best]
    gap = gap[~np.isnan(gap)]
    mean, error = float(gap.mean()), float(gap.std() / (len(gap) / n_repeats) ** 0.5)
    place = "first" if sign * mean <= 0 else "level" if sign * mean <= 2 * error else "behind"
    return f"{place} ({mean:+.3f} ± {error:.3f})".replace("-", "−")


if __name__ == "__main__":
    main()
