"""How probable is data given conditions, with an annealing for each condition."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import torch

from harmonium.evaluation.likelihood import log_likelihood
from harmonium.models import BoltzmannMachine, Conditioned
from harmonium.partition import log_z
from harmonium.types import Estimate, Values


@torch.no_grad()
def conditional_log_likelihood(
    machine: BoltzmannMachine,
    x: Values | Mapping[str, Values],
    *,
    n_rows: int = 16,
    n_chains: int = 64,
    n_betas: int = 300,
    generator: torch.Generator | None = None,
) -> Estimate:
    """Return the mean `log p(x | given)` over `n_rows` rows spread over a state, each with a log Z of its own.

    The error is that of the mean of the log Z, which are independent; `spread` is that over the rows. It is trusted if
    each of them is.
    """
    state = machine.state(x)
    batch = machine.batch_shape(state)
    rows = {
        name: value.expand(*batch, *machine.layer(name).shape).reshape(-1, *machine.layer(name).shape)
        for name, value in state.items()
    }
    n = math.prod(batch)
    index = torch.linspace(0, n - 1, min(n, n_rows)).round().long()
    found = []
    for i in index.tolist():
        law = Conditioned(machine, {name: rows[name][i] for name in machine.given})
        seen = {name: value[i : i + 1] for name, value in rows.items() if name in law.layers}
        z = log_z(law, n_chains=n_chains, n_betas=n_betas, generator=generator)
        found.append(log_likelihood(law, seen, log_z=z).mean())
    values = torch.tensor([part.value for part in found], dtype=torch.float64)
    mean = {key: sum(getattr(part, key) for part in found) / len(found) for key in ("value", "lower", "upper")}
    error = math.sqrt(sum(part.error**2 for part in found)) / len(found)
    spread = (values.std() / math.sqrt(len(values))).item() if len(values) > 1 else 0.0
    notes = sorted({part.note for part in found if part.note})
    trusted = all(part.trusted for part in found)
    return replace(
        found[0], **mean, error=error, ess=None, trusted=trusted, note="; ".join(notes[:1]), spread=spread,
        n_samples=len(found), at_least=-math.inf, at_most=math.inf,
    )  # fmt: skip
