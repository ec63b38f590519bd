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
    name = request.node.nodeid
    for mark in request.node.iter_markers("xdist_group"):
        name = name.removesuffix(f"@{mark.args[0]}")  # pytest-xdist writes the group behind the name
    return torch.Generator().manual_seed(seed_of(name))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep tests that share what is made once for a file or a folder on one worker: others would make it again."""
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        if isinstance(item, pytest.Function):
            known = item._fixtureinfo.name2fixturedefs
            shared = [d[-1].baseid for d in known.values() if d[-1].scope in ("module", "session")]
            places = [place for place in shared if place not in ("", "tests")]
            if places:
                item.add_marker(pytest.mark.xdist_group(min(places, key=len)))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the public data sets: `HARMONIUM_DATA`, else `../shared/data` beside the checkout."""
    folder = Path(os.environ.get("HARMONIUM_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"the public data sets are not at {folder}: set HARMONIUM_DATA to the folder that holds them")
    return folder
