"""Scores of outliers."""

from __future__ import annotations

import torch

import harmonium as hm
from harmonium.evaluation.ood import auroc
from harmonium.evaluation.outlier_scores import outlier_scores
from tests.neural.quadrature import Quadratic


def test_scores_are_their_formulas(generator: torch.Generator) -> None:
    x = torch.randn(50, 2, generator=generator, dtype=torch.float64)
    scores = outlier_scores(hm.NeuralEBM(Quadratic(2.0)), x, n_rows=7)
    assert set(scores) == {"free_energy", "slope"}
    torch.testing.assert_close(scores["free_energy"], -x.square().sum(1) / 8)
    torch.testing.assert_close(scores["slope"], -x.norm(dim=1) / 4)
    assert not scores["free_energy"].requires_grad
    assert auroc(scores["free_energy"], outlier_scores(hm.NeuralEBM(Quadratic(2.0)), x + 20)["free_energy"]) == 1.0


def test_confidence_is_the_largest_probability(generator: torch.Generator) -> None:
    jem = hm.JEM(hm.MLP(2, 3, generator=generator))
    x = torch.randn(9, 2, generator=generator)
    scores = outlier_scores(jem, x, n_rows=4)
    torch.testing.assert_close(scores["confidence"], jem.predict_proba(x).max(-1).values)
    torch.testing.assert_close(scores["free_energy"], -jem.free_energy(x).detach())
    assert jem.training
