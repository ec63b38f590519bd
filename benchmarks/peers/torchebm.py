"""torchebm's Langevin sampler."""

from __future__ import annotations

from torch import Tensor, nn

from benchmarks.runner import Contender


def langevin(net: nn.Module, start: Tensor, step_size: float, n_steps: int) -> Contender:
    """Return `n_steps` of `LangevinDynamics.sample` on the energy `net(x)`."""
    from torchebm.core import BaseModel
    from torchebm.samplers import LangevinDynamics

    class Energy(BaseModel):
        """The network as an energy of torchebm."""

        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, x: Tensor) -> Tensor:
            """Return one number a sample."""
            return self.net(x).squeeze(-1)

    sampler = LangevinDynamics(Energy(), step_size=step_size, noise_scale=1.0)

    def run() -> None:
        sampler.sample(x=start, n_steps=n_steps)

    return Contender(
        "torchebm", run, "`LangevinDynamics.sample`, the same step size and noise; does not freeze parameters"
    )
