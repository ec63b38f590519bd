"""What a monitor is: metrics at the end of each epoch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from harmonium.learning.history import Record
from harmonium.types import State

if TYPE_CHECKING:
    from harmonium.learning.training import Training


class Monitor(ABC):
    """Metrics at the end of each epoch; `on_update` may gather something on the way. Draws no random numbers."""

    def on_start(self, training: Training) -> None:  # noqa: B027  (a hook)
        """Be called before the first update."""

    def on_update(self, training: Training) -> None:  # noqa: B027  (a hook)
        """Look at an update."""

    def recover(self, training: Training, trouble: str) -> bool:
        """Bring a training that diverged back, and return True; most monitors only look on."""
        return False

    @abstractmethod
    def __call__(self, training: Training) -> Record:
        """Return the metrics of this epoch."""

    def state_dict(self) -> State:
        """Return what must survive between epochs."""
        return {}

    def load_state_dict(self, state: State) -> None:  # noqa: B027  (a hook)
        """Take it up again."""
