"""How many components a mixture should have, and how far its covariance is shrunk: by likelihood of rows left out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from harmonium.data.split import split_indices
from harmonium.learning.starts.mixture import start_mixture
from harmonium.models import RBM
from harmonium.models.observed import counted_log_z, observed_energy

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
SHRINKAGES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0)
"""From independent columns to their covariance within components."""

MAX_ROWS, N_FOLDS, PATIENCE = 10_000, 4, 3
"""The most rows that are looked at, in how many folds (one where there are enough rows), and how many sizes in a row
may be no better before no larger one is tried."""

ODD = 0.01
"""The share of rows that may follow no law but that of independent columns: a few odd rows decide nothing."""

_ENOUGH, _N_STEPS = 4000, 20


class MixtureChoice(NamedTuple):
    """A number of components and a shrinkage, with the nats of rows left out for each that was tried."""

    n_components: int
    shrinkage: float
    nats: dict[tuple[int, float], float]


@torch.no_grad()
def choose_mixture(
    make: Callable[[int], RBM],
    x: Tensor,
    *,
    generator: torch.Generator | None = None,
    on_trial: Callable[[int, float, float], None] | None = None,
) -> MixtureChoice:
    """Return the size and the shrinkage of `start_mixture` with the best mean log-likelihood of rows left out.

    It is that of `(1 - ε) p(x) + ε p₀(x)` with independent columns p₀ and ε = 1 %: a row that breaks the correlations
    of all others costs thousands of nats under p, and would choose for the others. `make(n)` makes an RBM of n
    components. Four folds of the rows x, or one of them where there are thousands. First the shrinkage of a single
    component, then the size, then the shrinkage again. `on_trial(n, shrinkage, nats)` looks on. A single component with
    a shrinkage of 1, independent columns, is among the candidates: no choice is worse on the rows left out.
    """
    x = x[split_indices(len(x), (1.0,), generator=generator)[0][:MAX_ROWS]]
    n_folds = max(2, min(N_FOLDS, len(x)))
    folds = torch.arange(len(x)) % n_folds
    held_out = range(1 if len(x) >= _ENOUGH else n_folds)
    state = None if generator is None else generator.get_state()
    nats: dict[tuple[int, float], float] = {}

    def log_p(n: int, shrinkage: float) -> Tensor:
        """Return the log-likelihood of each row by a mixture of the others."""
        if generator is not None and state is not None:
            generator.set_state(state)  # all candidates start from the same draws
        found = []
        for fold in held_out:
            rbm = make(n)
            rows = x[folds != fold]
            start_mixture(rbm, rows, shrinkage=shrinkage, n_steps=_N_STEPS, n_starts=1, generator=generator)
            free = observed_energy(rbm, x[folds == fold].to(rbm.weight))
            found.append(-free - counted_log_z(rbm))
        return torch.cat(found)

    apart = log_p(1, 1.0)

    def tried(n: int, shrinkage: float) -> float:
        if (n, shrinkage) not in nats:
            own = apart if (n, shrinkage) == (1, 1.0) else log_p(n, shrinkage)
            nats[n, shrinkage] = float(torch.logaddexp(own + math.log1p(-ODD), apart + math.log(ODD)).mean())
            if on_trial is not None:
                on_trial(n, shrinkage, nats[n, shrinkage])
        return nats[n, shrinkage]

    shrinkage = max(SHRINKAGES, key=lambda value: tried(1, value))
    size, since = 1, 0
    for n in SIZES[1:]:
        if n > len(x) // 4 or since == PATIENCE:
            break
        since = 0 if tried(n, shrinkage) > tried(size, shrinkage) else since + 1
        size = n if since == 0 else size
    place = SHRINKAGES.index(shrinkage)
    nearby = SHRINKAGES[max(0, place - 2) : place + 3]
    best = max([*((size, value) for value in nearby), (1, 1.0)], key=lambda pair: tried(*pair))
    return MixtureChoice(*best, nats)
