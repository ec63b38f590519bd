"""A few hundred of the requests of `benchmarks/web_fuzz.py`: no 5xx, nothing from outside of the folder."""

from __future__ import annotations

from pathlib import Path

from benchmarks.web_fuzz import fuzz, secrets_beside
from tests.web.conftest import Client


def test_fuzzed_requests(client: Client, root: Path) -> None:
    secrets_beside(root)
    names = [path.name for path in root.iterdir() if path.is_dir()]
    found = fuzz(client.address, client.token, names, 240, seed=1, n_threads=4)
    assert not found["wrong"], found
    assert found["requests"] == 240 and found["statuses"].get(200, 0) > 10  # some make sense
    assert client.get("runs")[0] == 200
