"""The law of one unit: a base measure, known by its log-partition function."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from harmonium.types import check_shape

_FEW = 4


class Units(nn.Module, ABC):
    """A layer of independent units, each with base measure μ and statistic s.

    Under a field θ a unit has the law `p(x) = exp(θ·s(x) - A(θ)) μ(x)` with `A(θ) = log ∫ exp(θ·s(x)) dμ(x)`.
    A new kind of unit needs `log_partition` and `sample`; the rest are hooks whose defaults follow from `A`.
    """

    support: ClassVar[str] = "finite"
    """What values a unit takes: `"finite"` (see `states`), `"integer"` (0, 1, 2, …) or `"real"`."""

    @property
    def proper(self) -> bool:
        """Whether `A` is the log-partition function of a base measure, so that Z and likelihoods mean something."""
        return True

    def __init__(self, *shape: int) -> None:
        super().__init__()
        if not shape or any(not isinstance(size, int) or size < 1 for size in shape):
            raise ValueError(
                f"{type(self).__name__} needs the sizes of its layer as positive integers, such as "
                f"{type(self).__name__}(784) or {type(self).__name__}(1, 28, 28). Got {shape}."
            )
        self.shape = shape

    @classmethod
    def examples(cls) -> list[Self]:
        """Return small layers of this kind, which the contracts are held to."""
        return [cls(3)]

    @property
    def sites(self) -> tuple[int, ...]:
        """The shape of the array of units: `shape`, unless one unit is a whole vector (categorical)."""
        return self.shape

    @abstractmethod
    def log_partition(self, field: Tensor) -> Tensor:
        """Return `A(θ)` of each unit, `(*batch, *sites)`."""

    @abstractmethod
    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw x from the law under `field`."""

    def sample_given_mean(self, field: Tensor, mean: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw x under `field` where the mean is known already: a hook for units that draw from their mean."""
        return self.sample(field, generator=generator)

    def mean(self, field: Tensor) -> Tensor:
        """Return `E[x]`; for units with `s(x) = x` this is `∂A/∂θ`."""
        return _derivative(self.log_partition, field)

    def variance(self, field: Tensor) -> Tensor:
        """Return `Var[x]`; for units with `s(x) = x` this is `∂²A/∂θ²`."""
        return _derivative(self.mean, field)

    @abstractmethod
    def mode(self, field: Tensor) -> Tensor:
        """Return the most probable x: the draw at zero temperature."""

    def statistic(self, x: Tensor) -> Tensor:
        """Return `s(x)`, linear in x: what the couplings see."""
        return x

    def log_base(self, x: Tensor) -> Tensor:
        """Return `log μ(x)` of each unit, `(*batch, *sites)`."""
        return torch.zeros_like(x)

    def partial_weights(self, fields: Tensor, x: Tensor) -> Tensor:
        """Return `log ∫ e^{θ·s(x)} dμ(x)` over what is unknown of x (NaN), the rest at its values, summed over units.

        Of m fields `(m, *shape)` and n rows `(n, *shape)`, each with each: `(m, n)`. A unit adds `A(θ)` where it is not
        known, `θ·s(x) + log μ(x)` where it is: two products.

        >>> Bernoulli(2).partial_weights(torch.zeros(1, 2), torch.tensor([[1.0, torch.nan]])).tolist()
        [[0.6931471824645996]]
        """
        unknown = x.isnan()
        value = x.where(~unknown, 0.0)
        holes = self.split_sites(unknown).reshape(len(x), math.prod(self.sites), -1).any(-1)
        known = self.statistic(value).flatten(1)
        base = self.log_base(value).reshape(len(x), -1).where(~holes, 0.0).sum(1)
        free = self.log_partition(fields).reshape(len(fields), -1)
        return fields.flatten(1) @ known.mT + free @ holes.to(free).mT + base

    def complete(self, field: Tensor, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw what is unknown of x (NaN) under a field, given the rest."""
        return torch.where(x.isnan(), self.sample(field.expand_as(x), generator=generator), x)

    def link(self, mean: Tensor) -> Tensor:
        """Return the field under which the units have this mean, by bisection: the inverse of `mean`."""
        low = torch.full_like(mean, -4096.0)
        high = torch.full_like(mean, 4096.0)
        for _ in range(24 + int(-math.log2(torch.finfo(mean.dtype).eps))):
            middle = (low + high) / 2
            above = self.mean(middle) > mean
            low, high = torch.where(above, low, middle), torch.where(above, middle, high)
        return (low + high) / 2

    @property
    def steepness(self) -> float:
        """How much the field is multiplied before it acts: 1, or the k of multinary units."""
        return 1.0

    def encoded(self, x: Tensor, *, like: Tensor | None = None) -> Tensor:
        """Return values as floats of the dtype of `like`: integers and booleans are turned into them."""
        return x if x.is_floating_point() or like is None else x.to(like.dtype)

    def fit_parameters(self, x: Tensor) -> None:
        """Set the units' own parameters to suit data `(n, *shape)`, NaN left out; most units have none."""

    def states(self) -> Tensor | None:
        """Return all values of one unit, `(n_states, *unit)`, or None if there are infinitely many."""
        return None

    def accumulate_grad(
        self, weight: Tensor | float, work: Tensor | float, x: Tensor, *, summed_out: bool = False
    ) -> None:
        """Add `Σ_batch weight · ∂E/∂parameters` to the gradients, where `work = Σ_batch weight · θ∘s(x)`, `shape`.

        The statistic is linear in x, so that the field θ is needed in this sum only. A layer that is summed out stands
        at its mean. Most units have no parameters and nothing to do.
        """

    def project(self) -> None:
        """Bring the parameters back into their domain after an update; most units have nothing to do."""

    def check_support(self, x: Tensor, name: str) -> None:
        """Raise unless every value of `x` is one that the units can take, or a mean of such values."""
        self.check_shape(x, name)
        if x.numel() == 0 or x.is_meta:
            return
        low, high = self.bounds()
        smallest, largest = x.amin().item(), x.amax().item()
        if not (math.isfinite(smallest) and math.isfinite(largest)):
            raise ValueError(
                f"`{name}` must be finite. It holds NaN or infinity. Drop those rows, or mark unknown values "
                "with NaN where missing values are accepted: `fit`, and `given` of `sample`."
            )
        if smallest < low or largest > high:
            raise ValueError(
                f"`{name}` must lie in [{low:g}, {high:g}] to match {self!r}. Got values from {smallest:g} to "
                f"{largest:g}. Rescale the data, or choose units with another support."
            )

    def in_support(self, x: Tensor) -> Tensor:
        """Return whether each unit has a value that it can take, not a mean of such, `(*batch, *sites)`.

        >>> Bernoulli(3).in_support(torch.tensor([0.0, 0.5, 1.0])).tolist()
        [True, False, True]
        """
        low, high = self.bounds()
        apart, states = self.split_sites(x), self.states()
        if states is None:
            whole = apart == apart.floor() if self.support == "integer" else apart.isfinite()
            return whole & (apart >= low) & (apart <= high)
        if states.ndim == 1 and len(states) <= _FEW:  # `Π_s (x - s) = 0`: floats are ten times as fast as booleans
            first, *others = states.tolist()
            product = apart - first
            for state in others:
                product.mul_(apart - state)
            return product == 0
        if states.ndim == 1:  # each value is compared with the next state above it
            ordered = states.to(x).sort().values
            above = torch.searchsorted(ordered, apart.contiguous()).clamp_max(len(ordered) - 1)
            return ordered[above] == apart
        known = torch.zeros(apart.shape[: apart.ndim - states.ndim + 1], dtype=torch.bool, device=x.device)
        for state in states.to(x):
            known |= (apart == state).flatten(known.ndim).all(-1)
        return known

    def check_values(self, x: Tensor, name: str) -> None:
        """Raise unless every value of `x` is one that the units can take: means of such values have no likelihood."""
        self.check_support(x, name)
        if x.numel() == 0 or x.is_meta or bool((known := self.in_support(x)).all()):
            return
        n, first = int((~known).sum()), self.split_sites(x)[~known][0]
        got = f"{first.item():.6g}" if first.ndim == 0 else str([round(value, 6) for value in first.tolist()])
        raise ValueError(
            f"`{name}` must hold values of {self!r}: {self._said_support()}. Got {got}, and {n} of {known.numel()} "
            "units have no such value. A likelihood is that of values which the units take: binarize or round them, "
            "or choose units that take them (Gaussian for real values, Binomial or an exact Multinary for levels)."
        )

    def _said_support(self) -> str:
        """Return the values of a unit in words."""
        states = self.states()
        if states is None:
            return "0, 1, 2, …" if self.support == "integer" else "real numbers"
        if states.ndim > 1:
            return "0 or 1 in each entry, as in " + " or ".join(str([int(v) for v in s]) for s in states[:2].tolist())
        few = [f"{value:g}" for value in states.tolist()]
        return " and ".join(few) if len(few) < 3 else f"{few[0]}, {few[1]}, …, {few[-1]}"

    def bounds(self) -> tuple[float, float]:
        """Return the smallest and the largest value of a unit."""
        states = self.states()
        if states is not None:
            return states.min().item(), states.max().item()
        return (0.0 if self.support == "integer" else -math.inf), math.inf

    def check_shape(self, x: Tensor, name: str) -> None:
        """Raise unless `x` is a floating tensor `(*batch, *shape)`."""
        check_shape(x, self.shape, name=name, layer=name, owner=self)

    def batch_shape(self, x: Tensor) -> tuple[int, ...]:
        """Return the leading axes of `x`."""
        return tuple(x.shape[: x.ndim - len(self.shape)])

    def split_sites(self, x: Tensor) -> Tensor:
        """Return `(*batch, *shape)` as `(*batch, *sites, *unit)`: the entries of each unit last. Here they are so."""
        return x

    def join_sites(self, x: Tensor) -> Tensor:
        """Return `(*batch, *sites, *unit)` as `(*batch, *shape)`: the inverse of `split_sites`."""
        return x

    def site(self, index: int) -> tuple[Any, ...]:
        """Return the place of one unit in a tensor `(*batch, *shape)`, as an index: sites are numbered row by row."""
        place = [index // math.prod(self.sites[i + 1 :]) % size for i, size in enumerate(self.sites)]
        return (..., *place, *(slice(None),) * (len(self.shape) - len(self.sites)))

    def check_known(self, known: Tensor, name: str) -> None:
        """Raise if the mask `known`, `(*batch, *shape)`, splits a unit that is a whole vector (categorical)."""
        if self.sites == self.shape:
            return
        apart = self.split_sites(known)
        entries = apart.flatten(known.ndim - len(self.shape) + len(self.sites))
        if bool((entries.any(-1) != entries.all(-1)).any()):
            raise ValueError(
                f"`{name}` knows a one-hot vector of {self!r} in part. Give all of its entries, or NaN for all of them."
            )

    def total(self, per_unit: Tensor) -> Tensor:
        """Sum a quantity over the units: `(*batch, *sites)` to `(*batch,)`."""
        return per_unit.sum(tuple(range(-len(self.sites), 0)))

    def inner(self, field: Tensor, x: Tensor) -> Tensor:
        """Return `θ·s(x)` summed over the units, `(*batch,)`, for one field shared by the batch or one for each."""
        statistic = self.statistic(x).flatten(x.ndim - len(self.shape))
        if field.ndim == len(self.shape):
            return statistic @ field.flatten().to(statistic)
        return (statistic * field.flatten(field.ndim - len(self.shape)).to(statistic)).sum(-1)

    def fitted_field(self, x: Tensor) -> Tensor:
        """Return the field under which the mean is that of the samples `x`, NaN left out.

        One sample of the law at zero field is added to the data, so that a unit that never varies gets a finite field.
        """
        rows = x.reshape(-1, *self.shape)
        known = rows.isfinite()
        return self.field_of_sums(rows.where(known, 0.0).sum(0), known.sum(0))

    def field_of_sums(self, total: Tensor, n: Tensor) -> Tensor:
        """Return the field that `fitted_field` finds for n samples with this sum."""
        return self.link((total + self.mean(torch.zeros_like(total))) / (n + 1)).detach()

    def n_configurations(self) -> int | None:
        """Return the number of states of the whole layer, or None if it is infinite."""
        states = self.states()
        return None if states is None else len(states) ** math.prod(self.sites)

    def configurations(self, index: Tensor) -> Tensor:
        """Return the states of the whole layer with these numbers, `(len(index), *shape)`, last site fastest."""
        states = self.states()
        if states is None:
            raise ValueError(f"{self!r} has infinitely many states and cannot be enumerated. Sum it out instead.")
        n_sites, base = math.prod(self.sites), len(states)
        powers = torch.tensor([base**i for i in reversed(range(n_sites))], device=index.device)
        digits = (index[:, None] // powers) % base
        apart = states.to(index.device)[digits].reshape(len(index), *self.sites, *states.shape[1:])
        return self.join_sites(apart)

    def constant_states(self, like: Tensor) -> list[Tensor]:
        """Return the layer with all units in one state, for each of their states, `(*shape)`."""
        states = self.states()
        if states is None:
            raise ValueError(f"{self!r} has infinitely many states, which cannot be gone through.")
        return [self.join_sites(value.expand(*self.sites, *value.shape)) for value in states.to(like)]

    def log_weights(self, field: Tensor) -> Tensor:
        """Return `θ·s(x) + log μ(x)` of each unit in each of its states, `(*batch, *sites, n_states)`.

        >>> Bernoulli(2).log_weights(torch.tensor([0.5, -1.0])).tolist()
        [[0.0, 0.5], [0.0, -1.0]]
        """
        weights = []
        for x in self.constant_states(field):
            work = self.split_sites(field * self.statistic(x))
            n = field.ndim - len(self.shape) + len(self.sites)
            weights.append((work.flatten(n).sum(-1) if work.ndim > n else work) + self.log_base(x))
        return torch.stack(weights, -1)

    def marginals(self, share: Tensor, configurations: Tensor) -> Tensor:
        """Return the share of each state at each unit, `(*batch, *sites, n_states)`, of configurations of the layer.

        `share` is `(n, *batch)`, `configurations` is `(n, …, *shape)` with axes of size 1 in place of the batch.
        """
        apart = self.split_sites(configurations.reshape(len(configurations), *self.shape))
        entries = apart.reshape(*apart.shape[: 1 + len(self.sites)], -1)
        states = self.states()
        if states is None:
            raise ValueError(f"{self!r} has no finite list of states. Ask for its mean instead (infer).")
        table = states.to(entries).reshape(len(states), -1)
        found = (entries.unsqueeze(-2) == table).all(-1).to(share)
        flat = share.reshape(len(share), -1).t() @ found.reshape(len(share), -1)
        return flat.reshape(*share.shape[1:], *found.shape[1:])

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments that were given to the constructor."""
        names = list(inspect.signature(type(self).__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names if name != "shape"}

    def extra_repr(self) -> str:
        """Return the constructor's arguments, for `repr`."""
        defaults = inspect.signature(type(self).__init__).parameters
        parts = [str(size) for size in self.shape] if "shape" in defaults else []
        parts += [f"{name}={value!r}" for name, value in self.arguments().items() if defaults[name].default != value]
        return ", ".join(parts)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.extra_repr()})"


def _derivative(function: Callable[[Tensor], Tensor], field: Tensor) -> Tensor:
    """Return the derivative of an elementwise function, differentiable when `field` is."""
    tracked = torch.is_grad_enabled() and field.requires_grad
    with torch.enable_grad():
        argument = field if field.requires_grad else field.detach().requires_grad_()
        (slope,) = torch.autograd.grad(function(argument).sum(), argument, create_graph=tracked)
    return slope


def require_units(**layers: object) -> None:
    """Raise unless every layer is made of units.

    >>> require_units(visible=Bernoulli(3))
    """
    for name, units in layers.items():
        if not isinstance(units, Units):
            raise TypeError(f"`{name}` must be units, such as Bernoulli(6). Got {units!r}.")
