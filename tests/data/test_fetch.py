"""Data sets are fetched by name from the first mirror that sends the known bytes; nothing else is kept."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harmonium.data import MissingDataError, fetch, load
from harmonium.data.checksums import SHA256, sha256
from harmonium.data.fetch import FILES, MIRRORS

pytest.importorskip("pooch")

NAME = "mnist"


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """A folder on a server of this machine with four small files, whose checksums stand for the known ones."""
    folder = tmp_path / "served"
    (folder / "good").mkdir(parents=True)
    (folder / "bad").mkdir()
    for file in FILES[NAME]:
        (folder / "good" / file).write_bytes(f"the bytes of {file}".encode())
        (folder / "bad" / file).write_bytes(b"something else")
        monkeypatch.setitem(SHA256, f"{NAME}/{file}", sha256(folder / "good" / file))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_first_mirror_with_the_known_bytes_wins(served: tuple[Path, str], tmp_path: Path) -> None:
    folder, address = served
    paths = fetch(NAME, tmp_path / "data", mirrors=(f"{address}/none/", f"{address}/bad/", f"{address}/good/"))
    assert [path.name for path in paths] == list(FILES[NAME])
    assert all(path.read_bytes() == (folder / "good" / path.name).read_bytes() for path in paths)
    assert fetch(NAME, tmp_path / "data", mirrors=()) == paths  # what is there stays, without a network


def test_other_bytes_are_not_kept_and_the_error_says_what_to_do(served: tuple[Path, str], tmp_path: Path) -> None:
    _, address = served
    with pytest.raises(ConnectionError, match="could not be fetched(.|\n)*put it at") as caught:
        fetch(NAME, tmp_path / "data", mirrors=(f"{address}/bad/", "http://127.0.0.1:1/"))
    assert SHA256[f"{NAME}/{FILES[NAME][0]}"] in str(caught.value)
    assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file()]


def test_a_damaged_file_is_fetched_anew(served: tuple[Path, str], tmp_path: Path) -> None:
    _, address = served
    damaged = tmp_path / "data" / NAME / FILES[NAME][0]
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"half of it")
    assert sha256(fetch(NAME, tmp_path / "data", mirrors=(f"{address}/good/",))[0]) == SHA256[f"{NAME}/{damaged.name}"]


def test_what_cannot_be_fetched_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARMONIUM_DATA", raising=False)
    with pytest.raises(ValueError, match="cannot be fetched by its name"):
        fetch("celeba", tmp_path)
    with pytest.raises(ValueError, match="Say where mnist is to be kept"):
        fetch(NAME)
    with pytest.raises(MissingDataError, match="harmonium fetch mnist"):
        load(NAME, data_dir=tmp_path)


def test_every_file_has_a_checksum_and_two_mirrors() -> None:
    for name, files in FILES.items():
        assert len(MIRRORS[name]) >= 2 and all(mirror.endswith("/") for mirror in MIRRORS[name])
        assert all(len(SHA256[f"{name}/{file}"]) == 64 for file in files)
