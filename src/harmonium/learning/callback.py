"""What looks on while a model learns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harmonium.learning.history import Record

if TYPE_CHECKING:
    from harmonium.learning.training import Training


class Callback:
    """Something that looks on: override what you need, and give it to `fit(..., callbacks=[…])`.

    `training` is all that a run carries: `training.model`, `.optimizer`, `.history`, `.epoch`, `.update`, `.batch`.
    Setting `training.stop = True` ends it: after the update at hand, or, in `on_epoch`, before the next epoch. What
    must survive a stop belongs into a `Monitor`, whose state is checkpointed.

    >>> class Print(Callback):
    ...     def on_epoch(self, training, record):
    ...         print(record["epoch"], record["update"])
    >>> rbm = RBM(Bernoulli(4), Bernoulli(2))
    >>> history = fit(rbm, torch.eye(4), epochs=2, callbacks=[Print()], monitors=[])
    1 1
    2 2
    """

    def on_start(self, training: Training) -> None:
        """Be called before the first update."""

    def on_update(self, training: Training) -> None:
        """Be called after each update."""

    def on_epoch(self, training: Training, record: Record) -> None:
        """Be called after each epoch with its metrics."""

    def on_end(self, training: Training) -> None:
        """Be called once when training has ended, or was stopped."""
