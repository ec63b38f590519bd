"""What settings can name: hidden units and objectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harmonium.learning.objectives import CD, PCD, Contrastive, TemperedPCD
from harmonium.units import Bernoulli, Binomial, Categorical, Gaussian, NReLU, Spin, Units

HIDDEN: dict[str, Callable[[int, Mapping[str, Any]], Units]] = {
    "bernoulli": lambda n, _options: Bernoulli(n),
    "spin": lambda n, _options: Spin(n),
    "nrelu": lambda n, _options: NReLU(n),
    "gaussian": lambda n, _options: Gaussian(n),
    "binomial": lambda n, options: Binomial(n, levels=int(options.get("levels", 10))),
    "categorical": lambda n, options: Categorical(n, int(options.get("classes", 10))),
}
"""Hidden units by their name, `(n_hidden, options) -> units`."""

OBJECTIVES: dict[str, Callable[[int, int, Sequence[float]], Contrastive]] = {
    "cd": lambda n_steps, _n_chains, _betas: CD(n_steps=n_steps),
    "pcd": lambda n_steps, n_chains, _betas: PCD(n_chains=n_chains, n_steps=n_steps),
    "tempered-pcd": lambda n_steps, n_chains, betas: TemperedPCD(
        n_chains=n_chains, n_steps=n_steps, betas=tuple(betas)
    ),
}
"""Objectives by their name, `(n_steps, n_chains, betas) -> objective`."""


def known(value: str, table: Mapping[str, Any]) -> str:
    """Return the value if the table has it.

    >>> known("cd", OBJECTIVES)
    'cd'
    """
    if value not in table:
        raise ValueError(f"must be one of {', '.join(table)}")
    return value
