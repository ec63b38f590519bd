"""Every objective under the contract, and objectives and laws that are wrong on purpose, which must fail it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import harmonium.learning.objectives
from harmonium.learning.objectives import CD, PCD, Objective, SlicedScoreMatching
from harmonium.learning.objectives.base import Case
from harmonium.learning.objectives.contrastive import draw_exactly
from harmonium.testing import ALL_OBJECTIVES, ContractError, check_objective
from harmonium.testing.contract import members
from harmonium.types import State

NO_LAW = {"MeanFieldCD", "Reconstruction"}
"""Objectives that rest nowhere: their negatives are no samples of the model."""


@pytest.mark.parametrize("name", ALL_OBJECTIVES)
def test_objective(name: str, generator: torch.Generator) -> None:
    check_objective(ALL_OBJECTIVES[name], n_rounds=100, generator=generator)


def test_every_objective_has_a_case() -> None:
    kinds = {kind.__name__ for kind in members(harmonium.learning.objectives, Objective)}
    assert {name.split()[0] for name in ALL_OBJECTIVES} == kinds - NO_LAW
    folder = Path(harmonium.learning.objectives.__file__).parent
    not_kinds = {"__init__", "base", "contrastive", "dense_pair", "sparse_pair", "gaussian_energy", "replay_buffer"}
    not_kinds |= {"conv_pair", "rounded_pair", "unit_by_unit"}
    files = {path.stem.replace("_", "") for path in folder.glob("*.py")} - {stem.replace("_", "") for stem in not_kinds}
    flat = {kind.lower() for kind in kinds}
    assert all(any(stem in kind for kind in flat) for stem in files)


# --- negative controls ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ALL_OBJECTIVES)
def test_a_model_off_the_truth_fails(name: str, generator: torch.Generator) -> None:
    """The same objective, data and chains with parameters that are not those of the data's law."""
    case = ALL_OBJECTIVES[name]
    wrong = copy.deepcopy(case.model)
    with torch.no_grad():
        for parameter in wrong.parameters():
            parameter.add_(0.5)
    with pytest.raises(ContractError, match="standard errors from zero"):
        check_objective(Case(case.objective, wrong, case.draw), n_rounds=100, generator=generator)


class Forgets(PCD):
    """Keeps its chains to itself."""

    def state_dict(self) -> State:
        return {}


class Doubled(CD):
    """Learns twice as much from the data as from the samples."""

    def accumulate_grad(self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], **rest: object) -> None:  # type: ignore[override]
        super().accumulate_grad(model, batch, **rest)  # type: ignore[arg-type]
        model.accumulate_grad(batch, 1 / 128)  # type: ignore[operator]


class Deaf(SlicedScoreMatching):
    """Has a loss that no parameter enters."""

    def loss(
        self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> Tensor:
        return super().loss(model, batch, generator=generator).detach().requires_grad_()


def test_objectives_that_break_the_contract() -> None:
    machine = ALL_OBJECTIVES["PCD 0"].model

    def chains(*, generator: torch.Generator | None = None) -> Forgets:
        made = Forgets(n_chains=64)
        made.chains = draw_exactly(machine, 64, generator=generator)  # type: ignore[arg-type]
        return made

    draw = ALL_OBJECTIVES["PCD 0"].draw
    with pytest.raises(ContractError, match="something that survives is not in it"):
        check_objective(Case(chains, machine, draw))
    with pytest.raises(ContractError, match="standard errors from zero"):
        check_objective(Case(lambda *, generator: Doubled(), machine, draw))
    case = ALL_OBJECTIVES["SlicedScoreMatching 0"]
    with pytest.raises(ContractError, match="no gradient in the loss"):
        check_objective(Case(lambda *, generator: Deaf(), case.model, case.draw))
