"""The line of progress: the likelihood first and whole, in a terminal of 80 columns too."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from harmonium.cli.show import Show

RECORD: dict[str, Any] = {
    "epoch": 101,
    "update": 1010,
    "reconstruction": 0.1234,
    "free_energy_gap": 0.5,
    "pseudo_likelihood": -25.31,
    "validation_log_likelihood": -103.254,
    "log_z_error": 0.0039,
    "validation_log_likelihood_spread": 0.334,
    "r_hat": 1.02,
}
NATS = "valid -103.25 ± 0.0039 (log Z) ± 0.33 (samples)"


def shown(width: int) -> str:
    """Return what a terminal of this width shows after an epoch."""
    show = Show()
    show.style, show.console = "terminal", Console(width=width, force_terminal=True, file=io.StringIO())
    with show.progress(200) as callback:
        callback.on_epoch(SimpleNamespace(epoch=101, epochs=200), RECORD)  # type: ignore[arg-type]
    found = show.console.file.getvalue()  # type: ignore[attr-defined]
    return str(found)


def test_the_likelihood_is_whole_at_80_columns() -> None:
    assert NATS in shown(80) and "R-hat" not in shown(80)
    assert NATS in shown(160) and "R-hat 1.02" in shown(160)
    assert NATS not in shown(60)  # the control: there it does not fit
