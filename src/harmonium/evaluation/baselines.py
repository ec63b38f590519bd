"""Laws without hidden units, to compare a likelihood with: independent units, a single Gaussian, the uniform law."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor

from harmonium.units import Gaussian, Units

_MOST_VALUES = 1024  # up to here a full covariance is fitted

INDEPENDENT, SINGLE_GAUSSIAN, UNIFORM = "independent units", "a single Gaussian", "the uniform law"


def simple_laws(
    x: Tensor,
    train: Tensor,
    *,
    units: Units | None = None,
    box: tuple[float, float] | None = None,
    ridge: float | None = None,
) -> dict[str, Tensor]:
    """Return `log p` of each sample x under each law that needs no hidden units, fitted to training samples, by name.

    `units` are those of the data layer; without them the data are real numbers, in `box` if there is one. `ridge` is
    added to the variances of real values: the square of the units' floor unless given, so that a value which never
    varies does not buy a Gaussian more density than the model may have.

    >>> from harmonium.evaluation.baselines import simple_laws
    >>> laws = simple_laws(torch.ones(1, 1), torch.tensor([[0.0], [1.0]]), units=Bernoulli(1))
    >>> {name: value.exp().item() for name, value in laws.items()}
    {'independent units': 0.5, 'the uniform law': 0.5}
    """
    n_values = math.prod(x.shape[1:])
    if ridge is None:
        ridge = units.floor**2 if isinstance(units, Gaussian) else 1e-6
    laws: dict[str, Tensor] = {}
    if units is not None:
        laws[INDEPENDENT] = independent_log_likelihood(units, x, train)
    if (units is None or isinstance(units, Gaussian)) and n_values <= _MOST_VALUES:
        laws[SINGLE_GAUSSIAN] = gaussian_log_density(x, train, ridge=ridge)
    n_states = None if units is None else units.n_configurations()
    if n_states is not None:
        laws[UNIFORM] = torch.full((len(x),), -math.log(n_states), dtype=torch.float64)
    elif units is None and box is not None:
        laws[UNIFORM] = torch.full((len(x),), -n_values * math.log(box[1] - box[0]), dtype=torch.float64)
    return laws


def gaussian_log_density(x: Tensor, train: Tensor, *, ridge: float = 0.0) -> Tensor:
    """Return `log N(x; m, S + ridge I)` with the mean m and the covariance S of the training samples, in nats."""
    known = train.double().cpu().flatten(1)
    spread = torch.cov(known.T).reshape(known.shape[1], -1) + ridge * torch.eye(known.shape[1], dtype=torch.float64)
    factor = torch.linalg.cholesky(spread)
    distance = torch.linalg.solve_triangular(factor, (x.double().cpu().flatten(1) - known.mean(0)).T, upper=False)
    log_volume = factor.diagonal().log().sum() + known.shape[1] / 2 * math.log(2 * math.pi)
    return -distance.square().sum(0) / 2 - log_volume


@torch.no_grad()
def independent_log_likelihood(units: Units, x: Tensor, train: Tensor) -> Tensor:
    """Return `Σ_i log p_i(x_i)` of units that do not know of each other, each under the field fitted to its samples.

    A binary unit has `p_i = (n_i + ½)/(n + 1)` from n_i ones in n samples, a Gaussian one the variance of its samples.

    >>> from harmonium.evaluation.baselines import independent_log_likelihood
    >>> independent_log_likelihood(Bernoulli(1), torch.ones(1, 1), torch.tensor([[0.0], [1.0]])).exp().item()
    0.5
    """
    own = copy.deepcopy(units).double().cpu()
    x, train = (part.double().cpu().reshape(-1, *units.shape) for part in (x, train))
    own.fit_parameters(train)
    field = own.fitted_field(train)
    return own.inner(field, x) + own.total(own.log_base(x)) - own.total(own.log_partition(field))
