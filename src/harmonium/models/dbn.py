"""Deep belief networks: restricted Boltzmann machines on top of each other."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from harmonium.models.dbn_spec import MakeUnits, stack_of_spec, units_with_levels
from harmonium.models.network_step import NetworkStep, to_network
from harmonium.models.rbm import RBM
from harmonium.models.stored import Stored
from harmonium.types import check_dtype, check_shape
from harmonium.units import Activation, MaxPooled, Units


class DBN(Stored):
    """A stack of RBMs, the hidden layer of each the data of the next (Hinton et al. 2006; Lee et al. 2009).

    `p(v, h₁, …, h_L) = p(v | h₁) ⋯ p(h_{L-2} | h_{L-1}) p(h_{L-1}, h_L)`: the top machine is undirected, those below
    are read downwards. Level 0 is the data and level l the hidden layer of machine l in its own values; what a level
    hands to the machine above is

    - its pooled units, where the layer is max-pooled: `up` returns these, `1 - P(all of the block off)`, and `down`
      gives each block back its one active unit by the softmax of the hidden biases, which is uniform for shared ones;
    - flattened, where the machine above is dense;
    - carried linearly from its range to that of the units above, where both are bounded and differ: 0..255 to 0..1.

    With `recognition`, a machine like each of the lowest ones, the way up goes by those: recognition weights untied
    from the generative ones, as in the up-down algorithm (Hinton et al. 2006, section 5). `untied` makes one.

    >>> dbn = DBN([RBM(Bernoulli(6), Bernoulli(4)), RBM(Bernoulli(4), Bernoulli(2))])
    >>> dbn.up(torch.zeros(3, 6)).shape, sample(dbn, 5, n_steps=3).shape
    (torch.Size([3, 2]), torch.Size([5, 6]))
    """

    def __init__(self, layers: Sequence[RBM], recognition: Sequence[RBM] = ()) -> None:
        super().__init__()
        if not layers or any(not isinstance(rbm, RBM) for rbm in (*layers, *recognition)):
            raise TypeError(f"DBN needs a list of RBMs, the lowest first. Got {layers!r} and {recognition!r}.")
        self.layers = nn.ModuleList(layers)
        self.recognition = nn.ModuleList(recognition)
        self._stack = list(layers)
        self._upward = [*recognition, *layers[len(recognition) :]]
        for i in range(1, len(self._stack)):
            self._check_meeting(i)
        for i, (own, other) in enumerate(zip(recognition, layers, strict=False), 1):
            if repr(own.units) != repr(other.units):
                raise ValueError(f"Recognition machine {i} must have the units of machine {i}. Got {own!r}.")
        if len(recognition) > len(layers):
            raise ValueError(
                f"There are {len(layers)} machines. Got {len(recognition)} of recognition: leave some out."
            )

    @classmethod
    def from_spec(
        cls,
        spec: str,
        *,
        shape: tuple[int, ...],
        levels: int = 1,
        k: float | None = None,
        activation: str | Activation = "sigmoid",
        exact: bool = False,
        visible: Units | None = None,
        generator: torch.Generator | None = None,
    ) -> DBN:
        """Build a network from words, such as `"conv 64 4x4/2, conv 128 4x4/2, dense 1000, dense 100"`.

        A layer is `conv CHANNELS KxK[/STRIDE] [pad P] [pool B]` or `dense UNITS`; without `pad`, `/2` halves the image.
        All units have levels 0..`levels`: Bernoulli for 1, else multinary with this `k` and `activation`. `shape` is
        that of one sample, `visible` other units for the data, such as Gaussian ones.

        >>> DBN.from_spec("conv 8 4x4/2, dense 10", shape=(3, 32, 32), levels=255).shapes
        [(3, 32, 32), (8, 16, 16), (10,)]
        """
        make: MakeUnits = units_with_levels(levels, k=k, activation=activation, exact=exact)
        words = [entry.split() for entry in spec.split(",")]
        if words[0][:1] == ["dense"]:
            shape = (math.prod(shape),)
        if visible is not None and visible.shape != shape:
            raise ValueError(f"`visible` must have the shape of the data, {shape}. Got {visible!r}.")
        return cls(stack_of_spec(spec, make(*shape) if visible is None else visible, make, generator=generator))

    def __len__(self) -> int:
        return len(self._stack)

    def __getitem__(self, index: int) -> RBM:
        return self._stack[index]

    def __iter__(self) -> Iterator[RBM]:
        return iter(self._stack)

    @property
    def data_layer(self) -> str:
        """The name of the layer that holds the data."""
        return self._stack[0].data_layer

    @property
    def visible(self) -> Units:
        """The units of the data."""
        return self._stack[0].visible

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shape of each level, the data first; pooled where the layer is."""
        return [self.visible.shape, *(_level_shape(rbm.hidden) for rbm in self._stack)]

    def up(
        self, x: Tensor, to: int | None = None, sample: bool = False, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return level `to` (the top unless told) of data: the means going up, or a draw at every level."""
        z = self._checked(x, 0, "x")
        for i in range(self._level(to, "to")):
            z = self.pass_up(i, self._hidden(i, self.enter(i, z), sample, generator))
        return z

    def down(
        self,
        h: Tensor,
        from_: int | None = None,
        sample: bool = False,
        *,
        to: int = 0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return what level `from_` (the top unless told) stands for at level `to`: means going down, or draws."""
        level = self._level(from_, "from_")
        z = self._checked(h, level, "h")
        for i in reversed(range(self._level(to, "to"), level)):
            z = self.leave(i, self._visible(i, self.pass_down(i, z, sample, generator=generator), sample, generator))
        return z

    def field_below(self, h: Tensor, from_: int | None = None) -> Tensor:
        """Return the field on the data that level `from_` (the top unless told) stands for, means going down."""
        return self._stack[0].field("visible", {"hidden": self.pass_down(0, self.down(h, from_, to=1))})

    def reconstruct(self, x: Tensor, depth: int | None = None) -> Tensor:
        """Return the data after going up to level `depth` and down again by means: what that level knows of x."""
        level = self._level(depth, "depth")
        return self.down(self.up(x, level), level)

    def untied(self) -> DBN:
        """Return a copy of it in which the way up has weights of its own, equal at first.

        >>> dbn = DBN.from_spec("dense 8, dense 4", shape=(6,))
        >>> sum(p.numel() for p in dbn.untied().parameters()) / sum(p.numel() for p in dbn.parameters())
        2.0
        """
        return DBN(copy.deepcopy(self._stack), copy.deepcopy(self._upward))

    def to_network(self, n_classes: int) -> nn.Sequential:
        """Return the way up as an ordinary network with an output for each class (Hinton and Salakhutdinov 2006).

        >>> DBN.from_spec("dense 8, dense 4", shape=(6,)).to_network(3)(torch.zeros(2, 6)).shape
        torch.Size([2, 3])
        """
        steps = []
        for i, rbm in enumerate(self._upward):
            scale, shift = self._scale(i)
            steps.append(NetworkStep(rbm.visible, rbm.coupling, rbm.hidden_bias, rbm.hidden, scale=scale, shift=shift))
        return to_network(steps, n_classes)

    def pass_up(self, i: int, h: Tensor) -> Tensor:
        """Return level i + 1 from hidden values of machine i (counted from 0): the pooled ones where it is pooled."""
        hidden = self._stack[i].hidden
        return hidden.pool(h) if isinstance(hidden, MaxPooled) else h

    def pass_down(self, i: int, z: Tensor, sample: bool = False, *, generator: torch.Generator | None = None) -> Tensor:
        """Return hidden values of machine i from level i + 1: each block of a pooled layer by its biases' softmax."""
        hidden = self._stack[i].hidden
        if not isinstance(hidden, MaxPooled):
            return z
        field = self._stack[i].bias_field("hidden")
        return hidden.sample_spread(z, field, generator=generator) if sample else hidden.spread(z, field)

    def enter(self, i: int, z: Tensor) -> Tensor:
        """Return the visible values of machine i from level i: in its shape and range."""
        units = self._stack[i].visible
        scale, shift = self._scale(i)
        z = z.reshape(*z.shape[: z.ndim - len(self.shapes[i])], *units.shape)
        return z if scale == 1 and shift == 0 else z * scale + shift

    def leave(self, i: int, v: Tensor) -> Tensor:
        """Return level i from visible values of machine i: the inverse of `enter`."""
        scale, shift = self._scale(i)
        v = v if scale == 1 and shift == 0 else (v - shift) / scale
        return v.reshape(*self._stack[i].visible.batch_shape(v), *self.shapes[i])

    def hidden_mean(self, i: int, v: Tensor) -> Tensor:
        """Return the means of the hidden layer of machine i given its visible values."""
        return self._upward[i].mean("hidden", {"visible": v})

    def draw_hidden(self, i: int, v: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw the hidden layer of machine i given its visible values."""
        return self._upward[i].sample("hidden", {"visible": v}, generator=generator)

    def _hidden(self, i: int, v: Tensor, sample: bool, generator: torch.Generator | None) -> Tensor:
        return self.draw_hidden(i, v, generator=generator) if sample else self.hidden_mean(i, v)

    def _visible(self, i: int, h: Tensor, sample: bool, generator: torch.Generator | None) -> Tensor:
        rbm = self._stack[i]
        return (
            rbm.sample("visible", {"hidden": h}, generator=generator) if sample else rbm.mean("visible", {"hidden": h})
        )

    def _scale(self, i: int) -> tuple[float, float]:
        """Return the scale and shift that carry the range of level i to that of the units above it."""
        if i == 0:
            return 1.0, 0.0
        (low, high), (floor, ceiling) = self._stack[i - 1].hidden.bounds(), self._stack[i].visible.bounds()
        if (low, high) == (floor, ceiling) or not all(map(math.isfinite, (low, high, floor, ceiling))):
            return 1.0, 0.0
        scale = (ceiling - floor) / (high - low)
        return scale, floor - low * scale

    def _check_meeting(self, i: int) -> None:
        below, above = self._stack[i - 1].hidden, self._stack[i].visible
        shape = _level_shape(below)
        if above.shape not in (shape, (math.prod(shape),)):
            raise ValueError(
                f"Machine {i + 1} of the stack must take what machine {i} gives: {shape}, or flattened "
                f"({math.prod(shape)},). Got visible={above!r} above hidden={below!r}. Build it with that shape."
            )
        (low, high), (floor, ceiling) = below.bounds(), above.bounds()
        bounded = math.isfinite(high - low) and math.isfinite(ceiling - floor)
        if not bounded and (low < floor or high > ceiling):
            raise ValueError(
                f"The hidden units {below!r} of machine {i} take values in [{low:g}, {high:g}], which {above!r} of "
                f"machine {i + 1} cannot. Use units of one kind at both, or Gaussian units above."
            )

    def _level(self, level: int | None, name: str) -> int:
        if level is None:
            return len(self)
        if not 0 <= level <= len(self):
            raise ValueError(f"`{name}` must be a level from 0, the data, to {len(self)}, the top. Got {level}.")
        return level

    def _checked(self, z: Tensor, level: int, name: str) -> Tensor:
        owner = self.visible if level == 0 else self._stack[level - 1].hidden
        check_shape(z, self.shapes[level], name=name, layer=f"level {level}", owner=owner)
        check_dtype(z, self._stack[0].weight, name=name)
        return z


def _level_shape(units: Units) -> tuple[int, ...]:
    return units.pooled_shape if isinstance(units, MaxPooled) else units.shape
