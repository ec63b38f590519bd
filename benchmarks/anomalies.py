"""Anomalies with the default command against detectors of scikit-learn, ECOD and a Gaussian.

`python -m benchmarks.anomalies --data-dir …`: for each set of ADBench and seed the rows are written as CSV without
their labels, `harmonium train --data rows.csv --seed s` learns from four fifths of them, and so do the others;
all rows are scored. Results are kept in a folder; what is there is not run again. `--report` prints the tables,
`--sets` measures some sets only.

"Level" is within two standard errors of the best of the others: those of the difference, averaged over the seeds, over
200 bootstrap draws of the rows.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from harmonium.cli.entry import run as command
from harmonium.data.split import THREE_WAYS, split_indices
from harmonium.data.table import encode, read_columns
from harmonium.evaluation.crowd import Crowd
from harmonium.runs import Run

METHODS = ("harmonium", "isolation forest", "LOF", "one-class SVM", "ECOD", "Gaussian")
SEEN = ("breastw", "Pima", "cardio", "vowels")
"""The sets that the score was chosen on, labels in sight."""

N_BOOTSTRAPS = 200


def ecod(train: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the scores of Li et al. (2022), the largest of three sums over columns.

    Of `-log` of the tail probabilities of the empirical distribution: left, right, or where the skewness points.
    """
    n = len(train)
    ordered = np.sort(train, 0)
    left = np.stack([np.searchsorted(ordered[:, j], x[:, j], side="right") for j in range(x.shape[1])], 1)
    right = n - np.stack([np.searchsorted(ordered[:, j], x[:, j], side="left") for j in range(x.shape[1])], 1)
    low, high = (-np.log(np.maximum(count, 1) / n) for count in (left, right))
    centered = train - train.mean(0)
    skew = (centered**3).mean(0) / np.maximum((centered**2).mean(0), 1e-12) ** 1.5
    chosen = np.where(skew < 0, low, high)
    return np.stack([low.sum(1), high.sum(1), chosen.sum(1)]).max(0)


def gaussian(train: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return Mahalanobis distances, with a ridge of 1e-3 variances."""
    spread = np.cov(train.T).reshape(train.shape[1], -1) + 1e-3 * np.eye(train.shape[1])
    rest = x - train.mean(0)
    return (rest * np.linalg.solve(spread, rest.T).T).sum(1)


def measure(path: Path, seed: int, folder: Path) -> dict[str, Any]:
    """Return the scores of all rows of one set by each method, and the labels."""
    stored = np.load(path, allow_pickle=False)
    x, y = stored["X"].astype(float), stored["y"]
    table = folder / f"{path.stem}.csv"
    if not table.exists():
        header = ",".join(f"x{i}" for i in range(x.shape[1]))
        np.savetxt(table, x, delimiter=",", fmt="%.10g", header=header, comments="")
    run_folder = folder / "runs" / f"{path.stem}-{seed}"
    started = time.process_time()
    code = command(["train", "--data", str(table), "--seed", str(seed), "--set", f"data.seed={seed}", "-q",
                    "--no-report", "-o", str(run_folder), "--overwrite"])  # fmt: skip
    if code:
        raise SystemExit(code)
    seconds = time.process_time() - started
    run = Run.open(run_folder)
    model: Any = run.model()
    columns = run.outline.data.columns
    encoded = encode(read_columns(table), columns)
    train = split_indices(len(x), THREE_WAYS, generator=torch.Generator().manual_seed(seed))[0].numpy()
    z = StandardScaler().fit(x[train]).transform(x)
    generator = torch.Generator().manual_seed(seed)
    scores = {
        "harmonium": Crowd(model, columns, generator=generator).oddness(encoded)[0].numpy(),
        "isolation forest": -IsolationForest(random_state=seed).fit(z[train]).score_samples(z),
        "LOF": -LocalOutlierFactor(novelty=True).fit(z[train]).score_samples(z),
        "one-class SVM": -OneClassSVM().fit(z[train]).score_samples(z),
        "ECOD": ecod(z[train], z),
        "Gaussian": gaussian(z[train], z),
    }
    return {
        "seconds": seconds,
        "size": model.hidden.classes,
        "labels": y.tolist(),
        "scores": {name: values.tolist() for name, values in scores.items()},
    }


def main() -> None:
    """Measure what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=Path("runs/anomalies"))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[dict[str, Any]]] = {}
    paths = sorted((arguments.data_dir / "adbench").glob("*.npz"), key=lambda path: path.stat().st_size)
    for seed in arguments.seeds:
        for path in paths:
            name = path.stem.partition("_")[2]
            if arguments.sets is not None and name not in arguments.sets:
                continue
            file = arguments.output / f"{path.stem}-{seed}.json"
            if not file.exists() and not arguments.report:
                file.write_text(json.dumps(measure(path, seed, arguments.output)))
                print(f"{path.stem}, seed {seed}: done", flush=True)
            if file.exists():
                found.setdefault(name, []).append(json.loads(file.read_text()))
    for title, chosen in (("chosen on", True), ("untouched", False)):
        report(title, {name: runs for name, runs in found.items() if (name in SEEN) == chosen})


def report(title: str, found: dict[str, list[dict[str, Any]]]) -> None:
    """Print the tables in Markdown, and in how many cells harmonium is first, or level with the first."""
    won = cells = 0
    for what, measured in (("AUROC", roc_auc_score), ("average precision", average_precision_score)):
        print(f"\n| {what}, {title} | components | {' | '.join(METHODS)} | |\n|---|---|{'---|' * (len(METHODS) + 1)}")
        totals: dict[str, list[float]] = {m: [] for m in METHODS}
        for name, runs in found.items():
            y = np.array(runs[0]["labels"])
            each = {m: [float(measured(y, r["scores"][m])) for r in runs] for m in METHODS}
            means = {m: float(np.mean(values)) for m, values in each.items()}
            best = max((m for m in METHODS if m != "harmonium"), key=lambda m: means[m])
            gap, error = means["harmonium"] - means[best], difference_error(measured, y, runs, best)
            place = "first" if gap >= 0 else "level" if gap >= -2 * error else "behind"
            won, cells = won + (place != "behind"), cells + 1
            for m, value in means.items():
                totals[m].append(value)
            shown = [f"{means[m]:.3f}" + (f" ± {np.std(each[m]):.3f}" if m == "harmonium" else "") for m in METHODS]
            sizes = ", ".join(str(r["size"]) for r in runs)
            print(f"| {name} | {sizes} | {' | '.join(shown)} | {place} ({gap:+.3f} ± {error:.3f}) |")
        shown = [f"{np.mean(values):.3f}" if values else "" for values in totals.values()]
        print(f"| mean | | {' | '.join(shown)} | |")
    seconds = [r["seconds"] for runs in found.values() for r in runs]
    print(f"\n{title}: first or level in {won} of {cells} cells; {np.mean(seconds or [math.nan]):.0f} s a run")


def difference_error(measured: Any, y: np.ndarray, runs: list[dict[str, Any]], best: str) -> float:
    """Return the standard error of the mean over seeds of our figure less that of another method.

    Of draws of the rows with replacement, the same for both and for all seeds.
    """
    generator, gaps = np.random.default_rng(0), []
    pairs = [(np.array(r["scores"]["harmonium"]), np.array(r["scores"][best])) for r in runs]
    for _ in range(N_BOOTSTRAPS):
        rows = generator.integers(len(y), size=len(y))
        if 0 < y[rows].sum() < len(y):
            gaps.append(np.mean([measured(y[rows], a[rows]) - measured(y[rows], b[rows]) for a, b in pairs]))
    return float(np.std(gaps))


if __name__ == "__main__":
    main()
