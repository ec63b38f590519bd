"""Tiny runs of every kind of model, from files written here: for kills, races, and runs without their data."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

COMMON = """
[run]
threads = 1
evaluate = false
report = false
checkpoint_updates = {every}
"""

CASES = {
    "pcd": """
[data]
name = "bars-and-stripes"
[model]
n_hidden = 12
[training]
objective = "pcd"
n_chains = 16
n_steps = 2
epochs = 15
batch_size = 10
momentum = 0.5
weight_decay = 0.001
centering = true
sparsity_rate = 0.01
norm_limit = 5.0
average = 0.9
schedule = "cosine"
""",
    "gaussian": """
[data]
name = "moons"
options = { n_samples = 400 }
[model]
kind = "gaussian-rbm"
n_hidden = 6
[training]
n_chains = 32
epochs = 10
batch_size = 64
optimizer = "adam"
schedule = "linear"
clip = 5.0
track_likelihood = true
""",
    "tempered": """
[data]
name = "bars-and-stripes"
options = { size = 3 }
[model]
n_hidden = 8
hidden = "spin"
[training]
objective = "tempered-pcd"
n_chains = 8
betas = [0.0, 0.5, 1.0]
epochs = 15
batch_size = 4
""",
    "resample": """
[data]
name = "digits"
binarize = "resample"
[model]
n_hidden = 16
[training]
objective = "cd"
epochs = 2
batch_size = 128
average = 0.99
""",
    "missing": """
[data]
name = "{folder}/table.csv"
[model]
kind = "rbm"
n_hidden = 6
[training]
n_chains = 16
epochs = 10
batch_size = 32
optimizer = "adam"
learning_rate = 0.01
""",
    "jem": """
[data]
name = "moons"
options = { n_samples = 400 }
[model]
kind = "jem"
options = { hidden = [16] }
[training]
n_steps = 3
n_chains = 100
epochs = 8
batch_size = 64
optimizer = "sgd"
learning_rate = 20.0
momentum = 0.5
average = 0.9
[jem]
class_chains = true
renewal = 0.1
n_tries = 30
""",
    "class-rbm": """
[data]
name = "{folder}/bits.npz"
[model]
kind = "class-rbm"
n_hidden = 6
[training]
objective = "cd"
epochs = 5
batch_size = 16
momentum = 0.5
average = 0.9
""",
    "dbm": """
[data]
name = "{folder}/bits.npz"
[model]
kind = "dbm"
[dbm]
layers = "6, 4"
pair_epochs = 5
[training]
n_chains = 8
epochs = 12
batch_size = 16
""",
    "dbn": """
[data]
name = "{folder}/bits.npz"
[model]
kind = "dbn"
[dbn]
spec = "dense 6, dense 4"
[training]
n_chains = 8
epochs = 6
batch_size = 16
""",
    "boltzmann": """
[data]
name = "{folder}/bits.npz"
[model]
kind = "boltzmann"
[boltzmann]
units = 3
tied = true
[training]
objective = "pcd"
n_chains = 8
epochs = 4
batch_size = 16
""",
    "hopfield": """
[data]
name = "{folder}/bits.npz"
[model]
kind = "hopfield"
[hopfield]
n_patterns = 3
[training]
objective = "cd"
epochs = 15
batch_size = 2
learning_rate = 0.01
""",
    "network": """
[data]
name = "{folder}/bits.npz"
[model]
kind = "network"
[network]
widths = "6"
dropout = 0.2
[training]
epochs = 5
batch_size = 16
""",
    "subspace-rbm": """
[data]
name = "{folder}/bits.npz"
[model]
kind = "subspace-rbm"
n_hidden = 4
[subspace-rbm]
width = 2
[training]
n_chains = 8
epochs = 5
batch_size = 16
""",
    "spike-slab-rbm": """
[data]
name = "{folder}/reals.npy"
[model]
kind = "spike-slab-rbm"
n_hidden = 4
[training]
n_chains = 8
epochs = 5
batch_size = 16
""",
    "scale-mixture": """
[data]
name = "{folder}/reals.npy"
[model]
kind = "scale-mixture"
n_hidden = 1
[scale-mixture]
scales = 4
[training]
n_chains = 8
epochs = 5
batch_size = 16
""",
    "counts": """
[data]
name = "{folder}/counts.npy"
[model]
n_hidden = 4
[training]
objective = "cd"
learning_rate = 0.001
epochs = 5
batch_size = 16
""",
    "gated-rbm": """
[data]
name = "{folder}/pairs.npy"
[model]
kind = "gated-rbm"
n_hidden = 4
[gated-rbm]
factors = 5
[training]
epochs = 5
batch_size = 16
""",
    "temporal-rbm": """
[data]
name = "{folder}/films.npy"
[model]
kind = "temporal-rbm"
n_hidden = 4
[temporal-rbm]
order = 2
recurrent = true
[training]
epochs = 4
batch_size = 16
""",
    "ratings": """
[data]
name = "{folder}/ratings.csv"
[model]
kind = "ratings"
n_hidden = 3
[training]
epochs = 5
batch_size = 4
""",
    "table": """
[data]
name = "{folder}/table.csv"
[model]
kind = "table"
[table]
components = 2
shrinkage = 0.2
[training]
epochs = 5
""",
}
"""Tiny runs of every kind that together carry everything a run can carry."""


def write_data(folder: Path) -> None:
    """Write the files that the cases learn from: arrays, a table with holes, ratings."""
    i = np.arange(120)[:, None, None, None]
    y, x = np.arange(4)[None, None, :, None], np.arange(4)[None, None, None, :]
    bits = ((i % 3 * y + i % 5 * x + i) % 2).astype(np.uint8)
    np.savez(folder / "bits.npz", x=bits, labels=(i[:, 0, 0, 0] % 3))
    np.save(folder / "reals.npy", np.sin(i * (1 + y) * 0.37 + x).reshape(120, 16).astype(np.float32))
    np.save(folder / "counts.npy", (i * (1 + y) % 7).astype(np.int16)[:, 0, :, 0])
    np.save(folder / "pairs.npy", np.concatenate([bits, bits[..., ::-1]], 1))
    np.save(folder / "films.npy", np.stack([np.roll(bits[:60, 0], t, axis=2) for t in range(5)], 1))
    with (folder / "ratings.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["user", "item", "rating"])
        writer.writerows([u, f"film {k}", 1 + (u * k + u) % 5] for u in range(15) for k in range(8) if (u + k) % 3)
    with (folder / "table.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["switch", "color", "size"])
        for k in range(160):
            row = [k % 2, ("red", "green", "blue")[k % 3], f"{(k * 37 % 100) / 10 + 0.05:.2f}"]
            row[k % 3] = "" if k % 5 == 0 else row[k % 3]
            writer.writerow(row)


def write_cases(folder: Path, every: int) -> dict[str, Path]:
    """Write the data and the configurations of the cases."""
    write_data(folder)
    paths = {}
    for name, text in CASES.items():
        paths[name] = folder / f"{name}.toml"
        whole = text.replace("{folder}", str(folder)) + COMMON.replace("{every}", str(every))
        paths[name].write_text(whole, encoding="utf-8")
    return paths
