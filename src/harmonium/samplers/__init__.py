"""Samplers: one kernel a file, one verb to run them, and how well they mix."""

from harmonium.samplers.base import Sampler
from harmonium.samplers.diagnostics import (
    autocorrelation,
    autocorrelation_time,
    effective_sample_size,
    split_r_hat,
)
from harmonium.samplers.gibbs import Gibbs
from harmonium.samplers.langevin import Langevin
from harmonium.samplers.mala import MALA
from harmonium.samplers.metropolis import Metropolis
from harmonium.samplers.sample import sample
from harmonium.samplers.tempering import ParallelTempering

__all__ = [
    "MALA",
    "Gibbs",
    "Langevin",
    "Metropolis",
    "ParallelTempering",
    "Sampler",
    "autocorrelation",
    "autocorrelation_time",
    "effective_sample_size",
    "sample",
    "split_r_hat",
]
