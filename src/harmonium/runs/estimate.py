"""An estimate as plain values."""

from __future__ import annotations

from typing import Any

from harmonium.types import Estimate


def as_dict(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as plain values, with the line that prints it."""
    names = ("value", "error", "lower", "upper", "kind", "ess", "trusted", "note")
    return {name: getattr(estimate, name) for name in names} | {"text": str(estimate)}
