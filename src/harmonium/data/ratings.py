"""Ratings: tables of user, item and rating, made into users × items with NaN where there is none."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from harmonium.data.base import Data
from harmonium.data.column import Column, Value
from harmonium.data.gate import check_file
from harmonium.data.split import THREE_WAYS, split_indices
from harmonium.data.table import read_columns
from harmonium.memory import check_room

NAMES = {"user": ("user", "userid", "user_id"), "item": ("item", "itemid", "item_id", "movieid", "movie_id")}
"""What the columns of users and of items may be called; that of ratings is `rating`."""

_MAX_HEADER = 10_000


def is_ratings(path: Path) -> bool:
    """Say whether a CSV file is a table of user, item and rating, by its first line."""
    check_file(path)
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        line = file.readline(_MAX_HEADER)
    try:
        return _columns(next(csv.reader([line]), [])) is not None
    except csv.Error:
        return False


def _columns(header: Sequence[str]) -> tuple[str, str, str] | None:
    """Return the names of the columns of users, items and ratings, if there are all three."""
    known = {name.strip().lower(): name.strip() for name in header}
    found = [next((known[name] for name in names if name in known), None) for names in NAMES.values()]
    user, item, rating = *found, known.get("rating")
    return None if user is None or item is None or rating is None else (user, item, rating)


def ratings_table(users: Tensor, items: Tensor, ratings: Tensor, shape: tuple[int, int]) -> Tensor:
    """Return ratings as a table users × items of floats, NaN where there is none.

    >>> import torch
    >>> from harmonium.data.ratings import ratings_table
    >>> ratings_table(torch.tensor([0, 1]), torch.tensor([1, 0]), torch.tensor([5, 3]), (2, 2)).tolist()
    [[nan, 5.0], [3.0, nan]]
    """
    table = torch.full(shape, math.nan)
    table[users, items] = ratings.float()
    return table


def split_ratings(
    name: str,
    users: Tensor,
    items: Tensor,
    ratings: Tensor,
    titles: Sequence[str],
    n_users: int,
    parts: Sequence[Tensor],
    note: str,
) -> Data:
    """Return ratings as data: the same users and items in each split, the ratings with these numbers in it."""
    scale: tuple[Value, ...] = tuple(sorted(set(ratings.tolist())))
    if len(scale) > 100:
        raise ValueError(f"{name} has {len(scale)} different ratings, which is no scale. Round them first.")
    if len((users * len(titles) + items).unique()) < len(users):
        raise ValueError(f"In {name} a user rated an item more than once. Keep one rating of each pair.")
    shape = (n_users, len(titles))
    return Data.of_splits(
        name,
        [ratings_table(users[part], items[part], ratings[part], shape) if len(part) else None for part in parts],
        kind="ratings",
        columns=tuple(Column(title, "categorical", scale) for title in titles),
        note=note,
    )


def load_ratings(path: Path, *, generator: torch.Generator) -> Data:
    """Read a CSV file with a row for each rating, columns user, item and rating; a tenth each is valid and test."""
    table = read_columns(path)
    names = _columns(list(table))
    if names is None:
        raise ValueError(f"{path} must have columns user, item and rating. Got {', '.join(table)}.")
    for name in names:
        if any(cell is None for cell in table[name]):
            raise ValueError(f"{path}: column {name} has empty cells. Drop those rows: an absent rating has no row.")
    ratings = [cell for cell in table[names[2]] if isinstance(cell, int | float)]
    if len(ratings) < len(table[names[2]]):
        raise ValueError(f"{path}: column {names[2]} must hold numbers.")
    numbers, found = [], []
    for name in names[:2]:
        keys = sorted(set(table[name]), key=lambda cell: (isinstance(cell, str), cell))
        index = {key: i for i, key in enumerate(keys)}
        numbers.append(torch.tensor([index[cell] for cell in table[name]]))
        found.append([str(key) for key in keys])
    n_users, n_items = map(len, found)
    check_room(12 * n_users * n_items, f"{path}, a table of {n_users:,} users x {n_items:,} items,")
    parts = split_indices(len(ratings), THREE_WAYS, generator=generator)
    note = f"ratings of {len(found[1]):,} items by {len(found[0]):,} users; ratings split 80/10/10 at random"
    return split_ratings(path.stem, numbers[0], numbers[1], torch.tensor(ratings), found[1], len(found[0]), parts, note)
