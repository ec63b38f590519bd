"""Chains and rows shared out among workers: the samples, estimates and likelihoods of one process."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.groups import run_group
from tests.partition import divided


def test_workers_carry_chains_as_one_process_does(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = divided.numbers()
    for worker in run_group(2, divided.numbers, tmp_path):
        assert worker.keys() == alone.keys()
        for name, value in alone.items():
            np.testing.assert_allclose(worker[name], value, rtol=0, atol=1e-9, err_msg=name)
    with pytest.raises(AssertionError):  # the control: other chains are seen
        np.testing.assert_allclose(alone["given"], alone["Gibbs"], rtol=0, atol=1e-9)


def test_a_bad_row_is_told_to_all(tmp_path: Path) -> None:
    for text in run_group(2, divided.refused, tmp_path):
        assert "0.5" in text
