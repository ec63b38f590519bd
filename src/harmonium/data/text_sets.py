"""Words and ratings of the data directory."""

from __future__ import annotations

import io
import tarfile

import numpy as np
import torch

from harmonium.data.base import Data
from harmonium.data.column import Column
from harmonium.data.directory import DataDirectory
from harmonium.data.extras import require
from harmonium.data.ratings import split_ratings
from harmonium.data.split import THREE_WAYS, split_indices
from harmonium.draws import draw_permutation

MAT = ("scipy.io", "sklearn", "reading .mat files")


def newsgroups(directory: DataDirectory, *, generator: torch.Generator) -> Data:
    """20 newsgroups: which of 100 words are in each of 16,242 posts, with 4 groups as labels (Roweis)."""
    stored = require(*MAT).loadmat(directory.find("20newsgroups/20news_w100.mat"))
    x = torch.from_numpy(np.ascontiguousarray(stored["documents"].T.toarray().astype(np.uint8)))
    labels = torch.from_numpy(stored["newsgroups"].ravel().astype(np.int64)) - 1
    words = [str(word.item()) for word in stored["wordlist"].ravel()]
    parts = split_indices(len(x), THREE_WAYS, labels=labels, generator=generator)
    return Data.of_splits(
        "newsgroups",
        [x[part] for part in parts],
        [labels[part] for part in parts],
        kind="binary",
        levels=1,
        columns=tuple(Column(word, "binary", (0, 1)) for word in words),
        note="presence of 100 words; random split 80/10/10, stratified by group",
    )


def newsgroups_counts(directory: DataDirectory, *, generator: torch.Generator) -> Data:
    """20 newsgroups: counts of 1,000 words in 11,256 + 7,489 posts, with 20 groups as labels (Marlin)."""
    stored = require(*MAT).loadmat(directory.find("20newsgroups/20news_w1000.mat"))
    x, test = (torch.from_numpy(stored[key].toarray().astype(np.int16)) for key in ("trainW", "testW"))
    labels, test_labels = (torch.from_numpy(stored[key].toarray()).argmax(1) for key in ("trainC", "testC"))
    train, valid = split_indices(len(x), (0.9, 0.1), labels=labels, generator=generator)
    return Data.of_splits(
        "newsgroups-counts",
        (x[train], x[valid], test),
        (labels[train], labels[valid], test_labels),
        kind="counts",
        note="counts of 1,000 words; random tenth of train as valid, stratified by group; official test",
    )


def movielens(directory: DataDirectory, *, generator: torch.Generator, valid: float = 0.1) -> Data:
    """MovieLens 100k: the ratings 1..5 that 943 users gave to 1,682 films, in the official split u1 of the ratings.

    `valid` is the share of its 80,000 training ratings that is held out for validation, at random.
    """
    if not 0 <= valid < 1:
        raise ValueError(f"`valid` must be a share in [0, 1). Got {valid}.")
    path = directory.find("movielens-100k/ml-100k.tar.xz")
    with tarfile.open(path, "r:xz") as archive:
        texts = {
            name: file.read()
            for name in ("u1.base", "u1.test", "u.item")
            if (file := archive.extractfile(f"ml-100k/{name}"))
        }
    base, test = (np.loadtxt(io.BytesIO(texts[name]), dtype=np.int64, ndmin=2) for name in ("u1.base", "u1.test"))
    titles = [line.split("|")[1] for line in texts["u.item"].decode("latin-1").splitlines()]
    users, items, ratings, _ = torch.from_numpy(np.concatenate([base, test])).T
    order = draw_permutation(len(base), generator=generator)
    held_out = order[: round(valid * len(base))]
    parts = (order[len(held_out) :], held_out, torch.arange(len(base), len(ratings)))
    note = "ratings 1..5 of 1,682 films by 943 users; official split u1" + (
        f", {valid:.0%} of its training ratings held out at random as valid" if valid else ""
    )
    return split_ratings("movielens", users - 1, items - 1, ratings, titles, 943, parts, note)
