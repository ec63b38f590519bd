"""Learn the rows of a table: the size chosen, a start, and gradient descent on the likelihood of what is observed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from harmonium.data.column import Column
from harmonium.learning.choose_mixture import choose_mixture
from harmonium.learning.fit import fit
from harmonium.learning.monitors import KeepBest
from harmonium.learning.objectives import ObservedLikelihood
from harmonium.learning.starts.mixture import start_mixture
from harmonium.models import RBM
from harmonium.models.observed import counted_log_z, observed_energy
from harmonium.models.table_units import table_units
from harmonium.types import State
from harmonium.units import Categorical

N_UPDATES, BATCH_SIZE, RATE, N_STARTS = 200, 512, 0.005, 4
"""How many updates follow the start, whatever the number of rows, of how many rows each, at what rate; how many times
the start is tried."""


def table_machine(columns: Sequence[Column], n_components: int) -> RBM:
    """Return an RBM for encoded columns whose hidden layer is one category, in float64.

    Its numbers are one correlated vector: `p(x)` is a mixture of Gaussians with one covariance, its levels independent
    given the component. log Z, likelihoods, conditionals and samples are exact.

    >>> table_machine([Column("age", "real"), Column("height", "real")], 3).hidden
    Categorical(n=1, classes=3)
    """
    return RBM(table_units(columns, correlated=True), Categorical(1, n_components)).double()


def observed_nats(model: nn.Module, x: State) -> float:
    """Return the mean log-likelihood of the observed values of rows, in nats of the encoded values."""
    if not isinstance(model, RBM):
        raise TypeError(f"The likelihood of observed values is that of an RBM. Got {type(model).__name__}.")
    with torch.no_grad():
        return float(-observed_energy(model, x[model.data_layer]).mean() - counted_log_z(model))


def n_epochs(n_rows: int, batch_size: int = BATCH_SIZE, n_updates: int = N_UPDATES) -> int:
    """Return how many epochs make about so many updates.

    >>> n_epochs(150), n_epochs(51_200)
    (200, 2)
    """
    return max(1, round(n_updates / math.ceil(n_rows / batch_size)))


def fit_table(
    columns: Sequence[Column],
    x: Tensor,
    *,
    validation: Tensor | None = None,
    n_components: int | None = None,
    shrinkage: float | None = None,
    n_updates: int = N_UPDATES,
    n_starts: int = N_STARTS,
    generator: torch.Generator | None = None,
) -> RBM:
    """Return an RBM that has learned encoded rows of a table, unknown values (NaN) and all.

    The number of components and the shrinkage of their covariance are chosen on rows left out unless both are given
    (`choose_mixture`); EM gives the start, the best of `n_starts` (`start_mixture`), and `fit` goes on from there by
    `ObservedLikelihood`, for about `n_updates` updates. With `validation` rows the best parameters
    by their likelihood are kept.
    """
    if n_components is None or shrinkage is None:
        found = choose_mixture(lambda n: table_machine(columns, n), x, generator=generator)
        n_components = found.n_components if n_components is None else n_components
        shrinkage = found.shrinkage if shrinkage is None else shrinkage
    rbm = table_machine(columns, n_components)
    start_mixture(rbm, x, shrinkage=shrinkage, n_starts=n_starts, generator=generator)
    epochs, keep = n_epochs(len(x), n_updates=n_updates), KeepBest(observed_nats)
    optimizer = torch.optim.Adam(rbm.parameters(), RATE)
    fit(
        rbm,
        x.double(),
        ObservedLikelihood(),
        optimizer=optimizer,
        schedule=LambdaLR(optimizer, lambda epoch: 1 - epoch / epochs),
        epochs=epochs,
        batch_size=BATCH_SIZE,
        validation=None if validation is None else validation.double(),
        monitors=[keep],
        generator=generator,
    )
    if keep.best:
        rbm.load_state_dict(keep.best)
    return rbm
