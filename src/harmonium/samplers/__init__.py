"""Samplers: one kernel a file, one verb to run them, and how well they mix. A line here is all that a new one needs."""

from harmonium.samplers.base import Sampler as Sampler
from harmonium.samplers.diagnostics import autocorrelation as autocorrelation
from harmonium.samplers.diagnostics import autocorrelation_time as autocorrelation_time
from harmonium.samplers.diagnostics import effective_sample_size as effective_sample_size
from harmonium.samplers.diagnostics import split_r_hat as split_r_hat
from harmonium.samplers.gibbs import Gibbs as Gibbs
from harmonium.samplers.langevin import Langevin as Langevin
from harmonium.samplers.mala import MALA as MALA
from harmonium.samplers.metropolis import Metropolis as Metropolis
from harmonium.samplers.sample import sample as sample
from harmonium.samplers.tempering import ParallelTempering as ParallelTempering
