"""Fixtures shared by all tests: a generator of random numbers for each test, and the public data sets."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import hypothesis
import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent

hypothesis.settings.register_profile("harmonium", deadline=None, derandomize=True)
hypothesis.settings.load_profile("harmonium")

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)


def seed_of(name: str) -> int:
    """Return 63 bits of the SHA-256 of `name`: the same in every run and on every machine."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1


@pytest.fixture
def generator(request: pytest.FixtureRequest) -> torch.Generator:
    """A generator seeded from the name of the test: stable, and different for each test and parameter."""
    return torch.Generator().manual_seed(seed_of(request.node.nodeid))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the public data sets: `HARMONIUM_DATA`, else `../shared/data` beside the checkout."""
    folder = Path(os.environ.get("HARMONIUM_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"the public data sets are not at {folder}: set HARMONIUM_DATA to the folder that holds them")
    return folder
