"""The contracts of the families, for the tests of this package and of those that extend it.

A new unit is held to its contract by `check_unit(MyUnits(3))`, a coupling by `check_coupling`, a sampler by
`check_no_drift(MySampler(), tiny_rbm("Bernoulli", "Spin"))`. Each raises a `ContractError` that says what was promised
and what was found. The `ALL` lists hold makers of every member of a family.
"""

from harmonium.testing.contract import FALSE_ALARM, ContractError
from harmonium.testing.couplings import ALL_COUPLINGS, check_coupling
from harmonium.testing.machines import (
    ALL_MACHINES,
    TINY_UNITS,
    ExactLaw,
    scatter,
    tiny_boltzmann_machine,
    tiny_conditional_rbm,
    tiny_dbm,
    tiny_deep_machine,
    tiny_gated_machine,
    tiny_labeled_rbm,
    tiny_lateral_rbm,
    tiny_rbm,
    tiny_subspace_machine,
)
from harmonium.testing.objectives import ALL_OBJECTIVES, check_exact_gradient, check_objective
from harmonium.testing.samplers import ALL_SAMPLERS, check_no_drift
from harmonium.testing.units import ALL_UNITS, check_unit

__all__ = [
    "ALL_COUPLINGS",
    "ALL_MACHINES",
    "ALL_OBJECTIVES",
    "ALL_SAMPLERS",
    "ALL_UNITS",
    "FALSE_ALARM",
    "TINY_UNITS",
    "ContractError",
    "ExactLaw",
    "check_coupling",
    "check_exact_gradient",
    "check_no_drift",
    "check_objective",
    "check_unit",
    "scatter",
    "tiny_boltzmann_machine",
    "tiny_conditional_rbm",
    "tiny_dbm",
    "tiny_deep_machine",
    "tiny_gated_machine",
    "tiny_labeled_rbm",
    "tiny_lateral_rbm",
    "tiny_rbm",
    "tiny_subspace_machine",
]
