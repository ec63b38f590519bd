"""Words and ratings of the data directory."""

from __future__ import annotations

import io
import math
import tarfile

import numpy as np
import torch

from harmonium.data.base import Column, Data
from harmonium.data.directory import DataDirectory
from harmonium.data.extras import require
from harmonium.data.split import THREE_WAYS, split, split_indices

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


def movielens(directory: DataDirectory, *, generator: torch.Generator) -> Data:
    """MovieLens 100k: the ratings 1..5 that 943 users gave to 1,682 films, NaN where there is none."""
    path = directory.find("movielens-100k/ml-100k.tar.xz")
    with tarfile.open(path, "r:xz") as archive:
        file = archive.extractfile("ml-100k/u.data")
        text = b"" if file is None else file.read()
    users, items, ratings, _ = np.loadtxt(io.BytesIO(text), dtype=np.int64, ndmin=2).T
    x = torch.full((int(users.max()), int(items.max())), math.nan)
    x[torch.from_numpy(users) - 1, torch.from_numpy(items) - 1] = torch.from_numpy(ratings).float()
    return Data.of_splits(
        "movielens",
        split(x, THREE_WAYS, generator=generator),
        kind="levels",
        levels=5,
        note="ratings 1..5, NaN where there is none; users split 80/10/10 at random",
    )
