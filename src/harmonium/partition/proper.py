"""Whether a machine has a Z at all."""

from __future__ import annotations

from harmonium.models import BoltzmannMachine, Conditioned


def check_proper(model: BoltzmannMachine) -> None:
    """Raise if a condition has no value, or a layer no base measure: its energies are good for contrasts only."""
    if model.given:
        raise ValueError(
            f"Layer {model.given[0]!r} is a condition: log Z needs a value for it. Ask for the log Z of "
            f"Conditioned(machine, {{{model.given[0]!r}: …}})."
        )
    if isinstance(model, Conditioned) and model.is_batched:
        raise ValueError(
            "Each row has conditions of its own, and so a log Z of its own. Ask for the log Z of one condition, "
            "Conditioned(machine, {name: one value}), or score rows with log_likelihood(machine, {…})."
        )
    for name in model.layers:
        if not model.layer(name).proper:
            raise ValueError(
                f"log Z needs a base measure for every layer. Layer {name!r} is {model.layer(name)!r}, a smooth "
                "approximation without one. Build it with exact=True, or compare free energies only."
            )
