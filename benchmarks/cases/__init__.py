"""All cases, in the order of the table."""

from __future__ import annotations

from benchmarks.cases import ais, contrastive, convolution, deep, gibbs, imports, langevin, memory
from benchmarks.runner import Case

ALL: list[Case] = [
    *contrastive.CASES,
    *gibbs.CASES,
    *ais.CASES,
    *convolution.CASES,
    *deep.CASES,
    *langevin.CASES,
    *imports.CASES,
    *memory.CASES,
]
