"""`RBMTransformer` beside `BernoulliRBM`, both at the defaults of the latter: seconds, accuracy of a reader, nats.

Run `python benchmarks/sklearn_defaults.py`; with HARMONIUM_DATA also on 10,000 images of MNIST. Both estimators are
trained in turn on the same rows with the same seeds, on one thread. The nats of BernoulliRBM are those of its own
parameters, put into the same machine: its `score_samples` are a pseudo-likelihood and cannot be compared.
"""

from __future__ import annotations

import os
import time
import warnings

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import BernoulliRBM
from threadpoolctl import threadpool_limits

import harmonium as hm
from harmonium.data import load
from harmonium.sklearn import RBMTransformer

SEEDS = (0, 1, 2)


def nats(estimator: BernoulliRBM | RBMTransformer, x: np.ndarray) -> tuple[float, float]:
    """Return the mean log-likelihood of 0/1 rows, and the error of log Z."""
    rbm = hm.RBM(hm.Bernoulli(x.shape[1]), hm.Bernoulli(len(estimator.components_))).double()
    with torch.no_grad():
        rbm.weight.copy_(torch.from_numpy(np.array(estimator.components_.T)))
        rbm.visible_bias.copy_(torch.from_numpy(np.array(estimator.intercept_visible_)))
        rbm.hidden_bias.copy_(torch.from_numpy(np.array(estimator.intercept_hidden_)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        z = hm.log_z(rbm, n_chains=100, n_betas=500, generator=torch.Generator().manual_seed(0))
    found = hm.log_likelihood(rbm, torch.from_numpy(x), log_z=z).mean()
    return float(found.value), float(z.error)


def rows(name: str, n: int) -> tuple[np.ndarray, ...]:
    """Return 0/1 rows for training and for testing, with their classes."""
    data = load(name, binarize="threshold", data_dir=os.environ.get("HARMONIUM_DATA"))
    parts = (
        data.train[:n].flatten(1).double(),
        data.train_labels[:n],
        data.test[:2000].flatten(1).double(),
        data.test_labels[:2000],
    )
    return tuple(part.numpy() for part in parts)


def main() -> None:
    torch.set_num_threads(1)
    threadpool_limits(1)  # NumPy too
    cases = [("digits", 10_000)] + ([("mnist", 10_000)] if os.environ.get("HARMONIUM_DATA") else [])
    RBMTransformer(4, n_iter=1).fit(np.eye(8))  # what PyTorch does at its first update
    print("| data | estimator | seconds | accuracy | test nats (error of log Z) |\n|---|---|---|---|---|", flush=True)
    for name, n in cases:
        x, y, test, labels = rows(name, n)
        found: dict[str, list[tuple[float, float, float, float]]] = {}
        for seed in SEEDS:
            for kind in (BernoulliRBM, RBMTransformer):
                began = time.process_time()
                estimator = kind(random_state=seed).fit(x)
                seconds = time.process_time() - began
                reader = LogisticRegression(C=100.0, max_iter=200)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # it need not converge to be compared
                    accuracy = reader.fit(estimator.transform(x), y).score(estimator.transform(test), labels)
                found.setdefault(kind.__name__, []).append((seconds, accuracy, *nats(estimator, test)))
        for kind_name, lines in found.items():
            t, a, value, error = np.array(lines).T
            cells = [
                f"{name}, {len(x):,} × {x.shape[1]}",
                kind_name,
                f"{np.median(t):.2f} ({t.min():.2f} to {t.max():.2f})",
                f"{a.mean():.2%} ± {a.std(ddof=1):.2%}",
                f"{value.mean():.2f} ± {value.std(ddof=1):.2f} ({error.max():.2g})",
            ]
            print(f"| {' | '.join(cells)} |", flush=True)
        ratio = [b[0] / o[0] for b, o in zip(found["BernoulliRBM"], found["RBMTransformer"], strict=True)]
        told = f"{np.median(ratio):.2f} ({min(ratio):.2f} to {max(ratio):.2f})"
        print(f"| | BernoulliRBM / RBMTransformer | {told} | | |", flush=True)


if __name__ == "__main__":
    main()
