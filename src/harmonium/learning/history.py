"""What happened during training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Record = dict[str, Any]
"""The metrics of one epoch: numbers, and `epoch`, `update` and `seconds`."""


@dataclass
class History:
    """The records of the epochs, in order, and the messages about the health of the training.

    >>> history = History([{"epoch": 1, "reconstruction": 0.2}])
    >>> history["reconstruction"]
    [0.2]
    """

    records: list[Record] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def __getitem__(self, metric: str) -> list[float]:
        """Return a metric over the epochs that have it."""
        return [record[metric] for record in self.records if metric in record]

    def __len__(self) -> int:
        return len(self.records)

    @property
    def last(self) -> Record:
        """The newest record."""
        return self.records[-1] if self.records else {}
