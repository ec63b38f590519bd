"""Ratings that users gave to items, most of them missing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from harmonium.couplings import Bias, Dense, Masked
from harmonium.models.machine import BoltzmannMachine
from harmonium.types import State, Values, as_tensor, without_gradient
from harmonium.units import Bernoulli, Categorical, Gaussian, Units

_PAIRS = 4096  # that are looked at together
_PRIOR = 10.0  # ratings of the average column that each column starts with


class RatingRBM(BoltzmannMachine):
    """The ratings of one item by the users who rated it, r_i = 1, each `v_i` one-hot over `levels`, and hidden units h:

    `E(v, h | r) = -log μ(h) - Σ_i r_i b_i·v_i - Σ_i k_i (s·v_i) (w_i·h) - Σ_i k_i d_i·h - c·h`, `k_i = r_i |r|^-share`

    with the centered levels s; `rows="users"` makes it the ratings of one user over items, as in Salakhutdinov, Mnih
    and Hinton (2007), whose condition "which were rated" speaks of itself here, too (d). A rating that is not there
    feels no field and puts none on others: it costs nothing in F, and summed out it is a constant. Two things are not
    theirs: one weight for all levels, and the shares k, which keep the field of a row of 500 ratings as large as that
    of a row of 20. With Gaussian hidden units the ratings of a row meet in pairs.

    Tables of ratings are users × items, NaN where there is none. A machine with items as rows knows its users; one
    with users as rows predicts for any user.

    >>> model = RatingRBM(2, 3, levels=(1, 2, 3, 4, 5), hidden=Gaussian(2))
    >>> x = torch.tensor([[5.0, float("nan"), 1.0], [4.0, 2.0, float("nan")]])
    >>> model.predict(x).shape, model.recommend(x, 1).tolist()
    (torch.Size([2, 3]), [[1], [2]])
    """

    def __init__(
        self,
        n_users: int,
        n_items: int,
        levels: Sequence[float] = (1, 2, 3, 4, 5),
        hidden: Units | None = None,
        *,
        rows: str = "items",
        share: float = 0.35,
        generator: torch.Generator | None = None,
    ) -> None:
        hidden = Gaussian(50) if hidden is None else hidden
        ordered = tuple(float(level) for level in levels)
        if len(ordered) < 2 or list(ordered) != sorted(set(ordered)) or not 0 <= share <= 1:
            raise ValueError(
                f"`levels` must be at least two rising numbers and `share` lie in [0, 1]. Got {ordered} and {share}."
            )
        if rows not in ("items", "users"):
            raise ValueError(f'`rows` must be "items" or "users". Got {rows!r}.')
        n = n_users if rows == "items" else n_items
        middle, reach = (ordered[0] + ordered[-1]) / 2, (ordered[-1] - ordered[0]) / 2
        scores = torch.tensor([[(level - middle) / reach] for level in ordered])
        super().__init__(
            {
                "ratings": Categorical(n, len(ordered)),
                "rated": Bernoulli(n),
                "shares": Bernoulli(n),
                "hidden": hidden,
            },
            [
                (("shares", "ratings", "hidden"), Masked(Dense((n, 1), hidden.shape, generator=generator), scores)),
                (("rated", "ratings"), Masked(Bias((n, len(ordered))))),
                (("shares", "hidden"), Dense(n, hidden.shape, generator=generator)),
                (("hidden",), Bias(hidden.shape)),
            ],
            given=["rated", "shares"],
        )
        if isinstance(hidden, Gaussian):
            hidden.log_sigma.requires_grad_(False)  # the weights have a scale of their own
        self.n_users, self.n_items, self.levels, self.rows, self.share = n_users, n_items, ordered, rows, share

    @property
    def weight(self) -> Tensor:
        """w, one row for each column of a row of ratings."""
        return self.couplings[0].inner.weight  # type: ignore[union-attr, return-value]

    @property
    def bias(self) -> Tensor:
        """b, columns × levels."""
        return self.couplings[1].inner.bias  # type: ignore[union-attr, return-value]

    @property
    def _implicit(self) -> Tensor:
        return self.couplings[2].weight  # type: ignore[return-value]

    @property
    def _hidden_bias(self) -> Tensor:
        return self.couplings[3].bias  # type: ignore[return-value]

    @property
    def _scores(self) -> Tensor:
        return self.couplings[0].scores  # type: ignore[return-value]

    def state(self, x: Values | Mapping[str, Values]) -> State:
        """Return a state; ratings alone are a table, users × items, that `observed` looks at."""
        known = x if isinstance(x, Mapping) else {"ratings": x}
        return super().state(self.observed(known["ratings"]) if set(known) == {"ratings"} else known)

    def observed(self, x: Values) -> State:
        """Return a table of ratings, users × items, as a state: numbers of levels, which were rated, and shares."""
        table = as_tensor(x)
        table = table if table.is_floating_point() else table.to(self.weight)
        n_users = self.n_users if self.rows == "items" else "n"
        if table.ndim != 2 or table.shape[1] != self.n_items or (self.rows == "items" and len(table) != self.n_users):
            raise ValueError(
                f"A table of ratings must have shape ({n_users}, {self.n_items}), users by items. Got "
                f"{tuple(table.shape)}. Give NaN where a user did not rate an item."
            )
        rated = ~table.isnan()
        if not bool(rated.any()):
            raise ValueError("The table holds no rating: every value is NaN. Give at least one.")
        known, levels = table[rated], torch.tensor(self.levels).to(table)
        at = torch.searchsorted(levels, known).clamp_max(len(levels) - 1)
        wrong = known[levels[at] != known]
        if len(wrong):
            raise ValueError(
                f"Ratings must be one of {', '.join(f'{level:g}' for level in self.levels)}, or NaN where there is "
                f"none. {len(wrong)} are outside the scale, such as {wrong[0].item():g}. Name the scale with levels=…, "
                "or drop those ratings."
            )
        classes = torch.zeros(table.shape, dtype=torch.int64).masked_scatter(rated, at)
        mask = rated.to(self.weight)
        if self.rows == "items":
            classes, mask = classes.t().contiguous(), mask.t().contiguous()
        count = mask.sum(-1, keepdim=True).clamp_min(1)
        return {"ratings": classes, "rated": mask, "shares": mask * count**-self.share}

    @torch.no_grad()
    def start(self, x: Values, scale: float = 0.05, *, generator: torch.Generator | None = None) -> None:
        """Set the biases to the shares of the levels in each column, with ten ratings of the average column added.

        The weights are made `scale` large; the first hidden unit starts as what a row adds to all of its ratings.
        """
        state = self.state(x)
        counts = torch.einsum("ni,nil->il", state["rated"], state["ratings"])
        average = (counts.sum(0) + 1) / (counts.sum() + len(self.levels))
        self.bias.copy_(((counts + _PRIOR * average) / (counts.sum(1, keepdim=True) + _PRIOR)).log())
        self.weight.mul_(scale / self.weight.std().clamp_min(1e-6))
        self.weight[:, 0] = 0.3
        self._implicit.zero_()

    def log_weights(self, state: State, rows: Tensor, columns: Tensor) -> Tensor:
        """Return `log p(v_i = level | the other ratings)` up to a constant for pairs of a row and a column, exactly.

        `b_i + Σ_j A_j(θ_j + k_i (s w_ij + d_ij))`, `(pairs, levels)`, with θ the field on h without rating i. One that
        is not there is asked for as one more: the shares k of the row are then those of a longer row.
        """
        n_rated, rated = state["rated"].sum(-1)[rows], state["rated"][rows, columns]
        count = n_rated + 1 - rated  # with the rating that is asked for
        share = (count**-self.share)[:, None]
        w, d, c = self.weight[columns], self._implicit[columns], self._hidden_bias.flatten()
        own = state["shares"][rows, columns][:, None] * (state["ratings"][rows, columns] @ self._scores * w + d)
        longer = ((count / n_rated.clamp_min(1)) ** -self.share)[:, None]
        field = (self.field("hidden", state).flatten(1)[rows] - c - own) * longer + c
        fields = field[:, None] + share[..., None] * (self._scores * w[:, None] + d[:, None])
        hidden = self.layer("hidden")
        return self.bias[columns] + hidden.total(hidden.log_partition(fields.unflatten(-1, hidden.shape)))

    @without_gradient
    def law_of(self, x: Values, users: Values | None = None, items: Values | None = None) -> Tensor:
        """Return the probability of each level, `(n_users, n_items, levels)`, given all other ratings of a table.

        With `users` and `items`, rows and columns of the table, only of these pairs, `(pairs, levels)`.
        """
        table = as_tensor(x)
        if users is None or items is None:
            if users is not None or items is not None:
                raise ValueError("Give both `users` and `items`, numbers of rows and of columns, or neither.")
            every = torch.arange(table.numel())
            found = self.law_of(x, every // table.shape[1], every % table.shape[1])
            return found.reshape(*table.shape, len(self.levels))
        state = self.state(table)
        users, items = _numbers(users, "users", table.shape[0]), _numbers(items, "items", table.shape[1])
        if users.shape != items.shape:
            raise ValueError(
                f"`users` and `items` must be pairs. Got {len(users)} users and {len(items)} items. Repeat them until "
                "each user stands beside an item."
            )
        rows, columns = (items, users) if self.rows == "items" else (users, items)
        parts = [
            self.log_weights({name: value[some] for name, value in state.items()}, at, column).softmax(-1)
            for row, column in zip(rows.split(_PAIRS), columns.split(_PAIRS), strict=True)
            for some, at in (row.unique(return_inverse=True),)
        ]
        return torch.cat(parts)

    def predict(self, x: Values, users: Values | None = None, items: Values | None = None) -> Tensor:
        """Return the expected rating, `(n_users, n_items)`, given all other ratings of a table, or of some pairs."""
        law = self.law_of(x, users, items)
        return law @ torch.tensor(self.levels).to(law)

    def recommend(self, x: Values, n: int = 10, users: Values | None = None) -> Tensor:
        """Return the numbers of the `n` items with the largest expected rating among those not rated, best first.

        Of every user, `(n_users, n)`, or of the `users` named, rows of the table.

        >>> model = RatingRBM(2, 3, levels=(1, 2, 3, 4, 5), hidden=Gaussian(2))
        >>> model.recommend([[5.0, float("nan"), 1.0], [4.0, 2.0, 3.0]], 1, users=[0]).tolist()
        [[1]]
        """
        table = as_tensor(x)
        chosen = torch.arange(len(table)) if users is None else _numbers(users, "users", len(table))
        rated = ~table[chosen].isnan()
        left = (~rated).sum(-1)
        if n < 1 or bool((left < n).any()):
            fewest = int(left.argmin()) if len(left) else 0
            raise ValueError(
                f"`n` must be at least 1 and at most the number of items that a user has not rated. Got {n}"
                + (f"; user {int(chosen[fewest])} has {int(left[fewest])} left. " if len(left) else ". ")
                + "Ask for fewer items, or name the users that have as many: users=…."
            )
        items = torch.arange(table.shape[1])
        expected = self.predict(table, chosen.repeat_interleave(len(items)), items.repeat(len(chosen)))
        return expected.reshape(rated.shape).masked_fill(rated, -math.inf).topk(n, -1).indices


def _numbers(given: Values, name: str, n: int) -> Tensor:
    """Return numbers of rows or columns of a table that has `n` of them, checked."""
    numbers = as_tensor(given).flatten()
    if numbers.is_floating_point() or numbers.dtype == torch.bool:
        raise TypeError(f"`{name}` must be whole numbers from 0 to {n - 1}. Got {numbers.dtype}. Use .long().")
    if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < n:
        raise ValueError(
            f"`{name}` must be whole numbers from 0 to {n - 1}: the table has {n}. Got {int(numbers.min())} to "
            f"{int(numbers.max())}."
        )
    return numbers.long()
