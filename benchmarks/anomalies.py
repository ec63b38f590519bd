"""Anomalies with the default command against detectors of scikit-learn, ECOD and a Gaussian.

`python -m benchmarks.anomalies --data-dir …`: for each set of ADBench and seed the rows are written as CSV without
their labels, `harmonium train --data rows.csv --seed s` learns from four fifths of them, and so do the others;
all rows are scored. Results are kept in a folder; what is there is not run again.
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
from harmonium.evaluation.row_scores import anomaly_scores
from harmonium.runs import Run

METHODS = ("harmonium", "isolation forest", "LOF", "one-class SVM", "ECOD", "Gaussian")
LEVEL = 0.01
"""A difference of AUROC or average precision that counts as level."""


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
    """Return AUROC and average precision of each method on one set."""
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
        "harmonium": anomaly_scores(model, encoded, columns, generator=generator).numpy(),
        "isolation forest": -IsolationForest(random_state=seed).fit(z[train]).score_samples(z),
        "LOF": -LocalOutlierFactor(novelty=True).fit(z[train]).score_samples(z),
        "one-class SVM": -OneClassSVM().fit(z[train]).score_samples(z),
        "ECOD": ecod(z[train], z),
        "Gaussian": gaussian(z[train], z),
    }
    result = {name: (float(roc_auc_score(y, s)), float(average_precision_score(y, s))) for name, s in scores.items()}
    return {"seconds": seconds, "size": model.hidden.classes, "shape": x.shape, "share": float(y.mean()), **result}


def main() -> None:
    """Measure what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=Path("runs/anomalies"))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[dict[str, Any]]] = {}
    paths = sorted((arguments.data_dir / "adbench").glob("*.npz"), key=lambda path: path.stat().st_size)
    for seed in arguments.seeds:
        for path in paths:
            file = arguments.output / f"{path.stem}-{seed}.json"
            if not file.exists() and not arguments.report:
                file.write_text(json.dumps(measure(path, seed, arguments.output)))
                print(f"{path.stem}, seed {seed}: done", flush=True)
            if file.exists():
                found.setdefault(path.stem.partition("_")[2], []).append(json.loads(file.read_text()))
    report(found)


def report(found: dict[str, list[dict[str, Any]]]) -> None:
    """Print the tables in Markdown, and in how many cells harmonium is first, or level with the first."""
    won = cells = 0
    for j, what in enumerate(("AUROC", "average precision")):
        print(f"\n| {what} | components | {' | '.join(METHODS)} | |\n|---|---|{'---|' * (len(METHODS) + 1)}")
        totals: dict[str, list[float]] = {m: [] for m in METHODS}
        for name, runs in found.items():
            means = {m: float(np.mean([r[m][j] for r in runs])) for m in METHODS}
            best = max(value for m, value in means.items() if m != "harmonium")
            place = (
                "first" if means["harmonium"] >= best else "level" if means["harmonium"] > best - LEVEL else "behind"
            )
            won, cells = won + (place != "behind"), cells + 1
            for m, value in means.items():
                totals[m].append(value)
            shown = [f"{means[m]:.3f}" + (f" ± {np.std([r[m][j] for r in runs]):.3f}" if m == "harmonium" else "")
                     for m in METHODS]  # fmt: skip
            print(f"| {name} | {', '.join(str(r['size']) for r in runs)} | {' | '.join(shown)} | {place} |")
        shown = [f"{np.mean(values):.3f}" if values else "" for values in totals.values()]
        print(f"| mean | | {' | '.join(shown)} | |")
    seconds = [r["seconds"] for runs in found.values() for r in runs]
    print(f"\nfirst or level in {won} of {cells} cells; {np.mean(seconds) if seconds else math.nan:.0f} s a run")


if __name__ == "__main__":
    main()
