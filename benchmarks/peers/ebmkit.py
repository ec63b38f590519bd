"""ebmkit's Langevin sampler."""

from __future__ import annotations

from torch import Tensor, nn

from benchmarks.runner import Contender


def langevin(net: nn.Module, start: Tensor, step_size: float, n_steps: int) -> Contender:
    """Return `n_steps` of `LangevinDynamics.sample` on the energy `net(x)`."""
    import ebm

    energy, sampler = ebm.EnergyModel(net), ebm.LangevinDynamics(step_size=step_size)

    def run() -> None:
        sampler.sample(energy, start, steps=n_steps)

    return Contender(
        "ebmkit", run, "`LangevinDynamics.sample`, the same step size and noise; freezes parameters, as ours"
    )
