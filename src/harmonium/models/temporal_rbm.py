"""Sequences: an RBM of each frame given those before."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from harmonium.couplings import Bias, Dense
from harmonium.models.graph import Term
from harmonium.models.machine import BoltzmannMachine
from harmonium.types import State, Values, as_state
from harmonium.units import Gaussian, Units
from harmonium.units.base import require_units


class TemporalRBM(BoltzmannMachine):
    """An RBM of frame t whose biases follow the past: the `order` frames before it, and a memory if `recurrent`.

    `E(v_t, h_t | p, r) = -log μ(v_t) - log μ(h_t) - v_tᵀWh_t - (b + Ap)ᵀv_t - (c + Bp + Ur)ᵀh_t`, with p the last
    `order` frames (conditional RBM: Taylor, Hinton and Roweis 2007) and `r_{t-1} = E[h_{t-1} | v_{t-1}, p, r_{t-2}]`,
    0 at the start (recurrent temporal RBM: Sutskever, Hinton and Taylor 2008; there `order` is 0). Then
    `log p(v_1 … v_T) = Σ_t log p(v_t | p, r_{t-1})` over the frames that have a whole past.

    A state with layer `"frame"` alone holds sequences, `(*batch, T, *frame)`: its frames from the first with a whole
    past on are observed, `(*batch, T - order)` of them, the conditions are made from those before. Where the memory is
    among these, the gradient goes back through all of time.

    >>> model = TemporalRBM(Bernoulli(225), Bernoulli(100), order=3)
    >>> model.free_energy(torch.zeros(2, 20, 225)).shape
    torch.Size([2, 17])
    """

    def __init__(
        self,
        frame: Units,
        hidden: Units,
        order: int = 3,
        *,
        recurrent: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        if order < 0 or (order == 0 and not recurrent):
            raise ValueError(
                f"`order` must be at least 1, the number of frames before that are given, or 0 with recurrent=True. "
                f"Got {order}."
            )
        require_units(frame=frame, hidden=hidden)
        terms: list[Term] = [
            (("frame", "hidden"), Dense(frame.shape, hidden.shape, generator=generator)),
            (("frame",), Bias(frame.shape)),
            (("hidden",), Bias(hidden.shape)),
        ]
        units: dict[str, Units] = {"frame": frame, "hidden": hidden}
        if order:
            units["past"] = _values(order, *frame.shape)
            for layer, size in (("frame", frame.shape), ("hidden", hidden.shape)):
                terms.append((("past", layer), Dense((order, *frame.shape), size, generator=generator)))
        if recurrent:
            units["memory"] = _values(*hidden.shape)
            terms.append((("memory", "hidden"), Dense(hidden.shape, hidden.shape, generator=generator)))
        super().__init__(units, terms, given=[name for name in ("past", "memory") if name in units])
        self.order, self.recurrent = order, recurrent

    @property
    def remembers(self) -> bool:
        """Whether the conditions come from the parameters, through the memory."""
        return self.recurrent

    def state(self, x: Values | Mapping[str, Values]) -> State:
        """Return a state, sequences unrolled into frames with their conditions."""
        known = as_state(x, "frame", like=self._some_parameter())
        if "frame" in known and not any(name in known for name in self.given):
            known |= self.unrolled(self._encoded(known["frame"]))
        return super().state(known)

    def unrolled(self, frames: Tensor) -> State:
        """Return the frames of sequences, `(*batch, T, *frame)`, that have a whole past, with their conditions."""
        axis = self._time_axis(frames, self.order + 1)
        n = frames.shape[axis] - self.order
        state = {"frame": frames.narrow(axis, self.order, n)}
        if self.order:
            windows = [frames.narrow(axis, lag, n) for lag in range(self.order)]
            state["past"] = torch.stack(windows, axis + 1)
        if self.recurrent:
            fields = self.field("hidden", {**state, "memory": frames.new_zeros(self.layer("memory").shape)})
            memory, memories = torch.zeros_like(fields.select(axis, 0)), []
            for t in range(n):
                memories.append(memory)
                memory = self.layer("hidden").mean(fields.select(axis, t) + self.recurrence.field(1, memory))
            state["memory"] = torch.stack(memories, axis)
        return state

    @property
    def recurrence(self) -> Dense:
        """The coupling U from the memory to the hidden units."""
        coupling = self.terms[-1][1]
        if not isinstance(coupling, Dense) or not self.recurrent:
            raise TypeError("This machine has no memory. Build it with recurrent=True.")
        return coupling

    def conditions(self, frames: Values) -> State:
        """Return the conditions of the frame that follows sequences, `(*batch, T, *frame)`: their end, and the memory.

        >>> model = TemporalRBM(Bernoulli(4), Bernoulli(3), order=2)
        >>> model.conditions(torch.zeros(5, 7, 4))["past"].shape
        torch.Size([5, 2, 4])
        """
        values = self._encoded(as_state(frames, "frame", like=self._some_parameter())["frame"])
        axis = self._time_axis(values, max(1, self.order))
        found: State = {}
        if self.order:
            found["past"] = values.narrow(axis, values.shape[axis] - self.order, self.order)
        if self.recurrent and values.shape[axis] > self.order:
            state = self.unrolled(values)
            last = {name: value.select(axis, -1) for name, value in state.items()}
            found["memory"] = self.mean("hidden", last)
        elif self.recurrent:
            found["memory"] = values.new_zeros(*values.shape[:axis], *self.layer("hidden").shape)
        return found

    def _encoded(self, frames: Tensor) -> Tensor:
        return self.layer("frame").encoded(frames, like=self._some_parameter())

    def _time_axis(self, frames: Tensor, least: int) -> int:
        """Return the axis of time, or raise if sequences are too short."""
        shape = self.layer("frame").shape
        axis = frames.ndim - len(shape) - 1
        if axis < 0 or tuple(frames.shape[axis + 1 :]) != shape:
            inner = ", ".join(map(str, shape))
            raise ValueError(
                f"Sequences must have shape (*batch, n_frames, {inner}) to match frame={self.layer('frame')!r}. "
                f"Got {tuple(frames.shape)}. Reshape them, or give single frames with their conditions {self.given}."
            )
        if frames.shape[axis] < least:
            raise ValueError(
                f"Sequences must have at least {least} frames for order={self.order}. Got {frames.shape[axis]}. "
                "Use longer sequences, or a smaller order."
            )
        return axis


def _values(*shape: int) -> Gaussian:
    """Return a layer for given values, any real numbers: it has no law, and its σ is not learned."""
    units = Gaussian(*shape)
    units.log_sigma.requires_grad_(False)
    return units
