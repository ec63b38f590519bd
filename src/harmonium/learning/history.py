"""What happened during training."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

from harmonium.display import svg_curve

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

    def _repr_html_(self) -> str:
        """Return a curve of each metric, for notebooks."""
        names = dict.fromkeys(name for record in self.records for name in record if name not in ("epoch", "update"))
        curves = [
            svg_curve([record.get(name) for record in self.records], name) for name in names if self._is_curve(name)
        ]
        said = "".join(f"<li>{escape(text)}</li>" for text in self.messages)
        return f"<div><p>{len(self)} epochs</p>{''.join(curves)}{f'<ul>{said}</ul>' if said else ''}</div>"

    def _is_curve(self, metric: str) -> bool:
        return all(isinstance(value, int | float) for value in self[metric])

    @property
    def last(self) -> Record:
        """The newest record."""
        return self.records[-1] if self.records else {}
