"""Whether a machine has a Z at all."""

from __future__ import annotations

from harmonium.models import BoltzmannMachine


def check_proper(model: BoltzmannMachine) -> None:
    """Raise if a layer has no base measure: its energies are good for contrasts only."""
    for name in model.units:
        if not model.layer(name).proper:
            raise ValueError(
                f"log Z needs a base measure for every layer. Layer {name!r} is {model.layer(name)!r}, a smooth "
                "approximation without one. Build it with exact=True, or compare free energies only."
            )
