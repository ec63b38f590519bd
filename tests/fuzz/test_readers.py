"""Every reader answers every file: data, or a message that says what is wrong. More by `make fuzz`."""

from __future__ import annotations

import contextlib
import random
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.hostile.attack import mutated
from benchmarks.hostile.files import good
from harmonium.data import load
from harmonium.runs.config import ConfigError, read_toml

FILES = good()
N = 12  # of each format; `make fuzz` throws thousands


def answered(path: Path) -> str:
    """Load a path; return what was said, or nothing where it was taken."""
    said = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            load(path)
        except (ValueError, TypeError, OSError) as error:
            said = str(error)
    assert said is None or said.strip()
    return said or ""


def place(folder: Path, name: str, content: bytes) -> Path:
    """Write a file; a picture is read by its folder."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path.parent if "pictures" in name else path


@pytest.mark.parametrize("name", FILES)
def test_a_good_file_is_taken(name: str, tmp_path: Path) -> None:
    assert answered(place(tmp_path, name, FILES[name])) == ""


@pytest.mark.parametrize("name", FILES)
def test_mutations_get_an_answer(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("fuzz")

    @settings(max_examples=N)
    @given(seed=st.integers(0, 2**32))
    def attempt(seed: int) -> None:
        answered(place(folder, name, mutated(FILES[name], random.Random(seed))))

    attempt()


@pytest.mark.parametrize("name", FILES)
def test_any_bytes_get_an_answer(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("fuzz")

    @settings(max_examples=N)
    @given(content=st.binary(max_size=200))
    def attempt(content: bytes) -> None:
        answered(place(folder, name, content))

    attempt()


@settings(max_examples=100)
@given(text=st.text(alphabet='[]{}=.,"#\n ab1-_:', max_size=200))
def test_any_settings_get_an_answer(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("toml") / "config.toml"
    path.write_text(text)
    with contextlib.suppress(ConfigError):
        read_toml(path)


def test_the_fuzzer_sees_a_reader_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The negative control: an error that is no answer gets through."""
    monkeypatch.setattr("harmonium.data.from_path.read_array", lambda path: {}[path])
    with pytest.raises(KeyError):
        answered(place(tmp_path, "bits.npy", FILES["bits.npy"]))
