"""A shelf of rated items: change what a user gave, and see what is expected of the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from harmonium.models import RatingRBM
from harmonium.runs.plays.base import Move, Play, Seen, Session, count
from harmonium.runs.trained import Trained

N_BEST = 12


class Shelf(Play):
    """The ratings of one user, which can be changed; each is expected from the others, and so are the missing ones.

    A move names a `user` and what differs from the ratings of the data: items by their number, with a level, or null
    for one that is taken away. All laws are exact, given the other ratings of the table.
    """

    name = "shelf"

    def suits(self, trained: Trained) -> bool:
        """Return whether the data are ratings."""
        return isinstance(trained.model, RatingRBM)

    def opening(self, trained: Trained) -> Seen:
        """Return the names of the items, the levels, and how many users there are."""
        names = [column.name for column in trained.data.columns]
        return {"items": names, "levels": list(trained.model.levels), "users": len(trained.data.train)}

    @torch.no_grad()
    def move(self, trained: Trained, session: Session, move: Move) -> Seen:
        """Return the ratings of the user with what was expected of them, and the items expected to be liked best."""
        model, table = trained.model, trained.data.train.clone()
        user = count(move, "user", 0, len(table) - 1, 0)
        table[user] = changed(table[user], move.get("ratings", {}), model.levels)
        items = torch.arange(table.shape[1])
        law = model.law_of(table, torch.full_like(items, user), items)
        expected = law @ torch.tensor(model.levels).to(law)
        given = table[user]
        best = expected.masked_fill(~given.isnan(), -math.inf).topk(min(N_BEST, int(given.isnan().sum()))).indices
        rated = (~given.isnan()).nonzero()[:, 0]
        return {
            "rated": [[i, given[i].item(), expected[i].item()] for i in rated.tolist()],
            "best": [[i, expected[i].item(), law[i].tolist()] for i in best.tolist()],
        }


def changed(ratings: Tensor, changes: Any, levels: tuple[float, ...]) -> Tensor:
    """Return the ratings of a user with changes of a move, or say what is wrong with these."""
    if not isinstance(changes, Mapping) or len(changes) > len(ratings):
        raise ValueError("`ratings` must be a mapping from numbers of items to levels, or null for none.")
    found = ratings.clone()
    for name, level in changes.items():
        if not (str(name).isascii() and str(name).isdigit() and len(str(name)) < 10 and int(name) < len(ratings)):
            raise ValueError(f"Items are numbers from 0 to {len(ratings) - 1}. Got {str(name)[:40]!r}.")
        if level is not None and (isinstance(level, bool) or level not in levels):
            told = ", ".join(f"{one:g}" for one in levels)
            raise ValueError(f"A rating is one of {told}, or null for none. Got {str(level)[:40]!r}.")
        found[int(name)] = math.nan if level is None else level
    return found
