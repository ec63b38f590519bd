"""What nobody may do to a run: two writers, links out of it, damage that goes unseen, a disk that is full."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from safetensors.torch import save as tensors_to_bytes

from harmonium.runs import Config, Run, resolve, train
from harmonium.runs.atomic import sha256, write_atomic
from harmonium.runs.checkpoints import MANIFEST, TENSORS, VALUES, read_checkpoint
from harmonium.runs.plain import check_plain


def config(name: str = "bars-and-stripes", n_hidden: int = 3) -> Config:
    return resolve(
        {
            "data": {"name": name},
            "model": {"n_hidden": n_hidden},
            "training": {"epochs": 2, "n_chains": 8},
            "run": {"threads": 1, "checkpoint_updates": 1},
        }
    )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = Run.create(tmp_path / "run", config())
    train(made)
    return made


def in_thread(work: Callable[[], object]) -> list[str]:
    """Do something as another writer would, and return what it was told."""
    told: list[str] = []

    def attempt() -> None:
        try:
            work()
        except ValueError as error:
            told.append(str(error))

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return told


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- one writer ------------------------------------------------------------------------------------------------------
def test_a_run_that_is_being_written_is_not_overwritten(run: Run) -> None:
    before = files(run.folder)
    with run.writing():
        told = in_thread(lambda: Run.create(run.folder, config("ising"), overwrite=True))
        assert "being trained by another process" in told[0]
        assert in_thread(lambda: train(Run.open(run.folder)))
        assert files(run.folder) == before
    assert not in_thread(lambda: Run.create(run.folder, config("ising"), overwrite=True))  # nobody holds it any more


def test_who_holds_a_run_may_take_it_again(run: Run) -> None:
    with run.writing(), Run.open(run.folder).writing():
        assert in_thread(lambda: train(Run.open(run.folder)))
    assert not in_thread(lambda: train(Run.open(run.folder)))


def test_a_run_that_became_another_is_not_trained_with_the_old_settings(tmp_path: Path) -> None:
    mine = Run.create(tmp_path / "run", config(n_hidden=3))
    Run.create(tmp_path / "run", config(n_hidden=5), overwrite=True)
    with pytest.raises(ValueError, match="another run by now"):
        train(mine)


def test_processes_that_race_for_a_folder_leave_one_whole_run(tmp_path: Path) -> None:
    text = (
        "import sys; from harmonium.cli.entry import run; sys.exit(run(['train', '--data', 'bars-and-stripes', "
        "'--n-hidden', sys.argv[2], '--epochs', '1', '--output', sys.argv[1], '--overwrite', '--quiet', "
        "'--set', 'run.report=false', '--set', 'run.evaluate=false']))"
    )
    folder = tmp_path / "run"
    racers = [
        subprocess.Popen([sys.executable, "-c", text, str(folder), size], stderr=subprocess.PIPE) for size in ("3", "5")
    ]
    codes = [racer.wait() for racer in racers]
    for racer in racers:
        if racer.stderr is not None:
            racer.stderr.close()
    assert set(codes) <= {0, 2} and 0 in codes
    left = Run.open(folder)
    assert left.parameters()["couplings.0.weight"].shape[1] == left.config.model.n_hidden  # type: ignore[attr-defined]


# --- plain files -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [".lock", "timing.jsonl", "model.safetensors", "checkpoints", "figures/curve.png"])
def test_links_in_a_run_are_refused_and_followed_by_nobody(run: Run, name: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    if name == "checkpoints":
        (run.folder / name).rename(outside)
    else:
        outside.write_bytes(b"mine")
        (run.folder / name).parent.mkdir(exist_ok=True)
        (run.folder / name).unlink(missing_ok=True)
    (run.folder / name).symlink_to(outside)
    before = files(outside) if outside.is_dir() else {"": outside.read_bytes()}
    for work in (
        lambda: Run.open(run.folder),
        lambda: train(run),
        lambda: Run.create(run.folder, config("ising"), overwrite=True),
    ):
        with pytest.raises(ValueError, match="symbolic link"):
            work()
    assert (files(outside) if outside.is_dir() else {"": outside.read_bytes()}) == before


def test_a_pipe_is_refused_and_not_waited_for(run: Run) -> None:
    (run.folder / "metrics.jsonl").unlink()
    os.mkfifo(run.folder / "metrics.jsonl")
    with pytest.raises(ValueError, match="is a pipe"):
        Run.open(run.folder)


def test_a_run_itself_may_be_reached_through_a_link(run: Run, tmp_path: Path) -> None:
    (tmp_path / "short").symlink_to(run.folder)
    assert Run.open(tmp_path / "short").config == run.config
    check_plain(tmp_path / "short")


# --- damage ----------------------------------------------------------------------------------------------------------
def test_a_flipped_bit_in_the_model_is_seen(run: Run) -> None:
    path = run.folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-2] ^= 64
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="damaged"):
        run.model()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused_on_the_way_in_and_out(run: Run, value: float) -> None:
    parameters = run.parameters()
    parameters["couplings.0.weight"][0, 0] = value
    with pytest.raises(ValueError, match="NaN or infinite"):
        run.write_model(parameters)
    save_file(parameters, run.folder / "model.safetensors")  # by somebody else, without a checksum
    with pytest.raises(ValueError, match="no checksum"):
        run.model()


def forge(path: Path, tensors: dict[str, torch.Tensor] | None = None, values: bytes | None = None) -> None:
    """Change a checkpoint and make its manifest agree."""
    if tensors is not None:
        (path / TENSORS).write_bytes(tensors_to_bytes(tensors))
    if values is not None:
        (path / VALUES).write_bytes(values)
    sums = {name: sha256((path / name).read_bytes()) for name in (TENSORS, VALUES)}
    (path / MANIFEST).write_text(json.dumps({"update": 0, "sha256": sums}))


TENSOR_ATTACKS: dict[str, Callable[[dict[str, torch.Tensor]], object]] = {
    "two-dimensional order": lambda t: t.update(order=torch.zeros(7, 3, dtype=torch.int64)),
    "rows twice": lambda t: t.update(order=torch.zeros(16, dtype=torch.int64)),
    "rows beyond the data": lambda t: t.update(order=torch.arange(16) + 10**12),
    "another weight": lambda t: t.update({"learned.model.couplings.0.weight": torch.zeros(1, 1)}),
    "another type": lambda t: t.update({"learned.model.couplings.0.weight": torch.zeros(9, 3, dtype=torch.int64)}),
    "NaN": lambda t: t["learned.model.couplings.0.weight"].fill_(float("nan")),
    "chains of other units": lambda t: t.update({"learned.objective.visible": torch.zeros(8, 2)}),
    "a random state cut short": lambda t: t.update(generator=t["generator"][:5].clone()),
    "a parameter less": lambda t: t.pop("learned.model.couplings.0.weight"),
}


@pytest.mark.parametrize("attack", TENSOR_ATTACKS)
def test_a_forged_state_falls_back_to_the_one_before(run: Run, attack: str) -> None:
    before, newest = run.checkpoints.paths()[-2:]
    tensors = load_file(newest / TENSORS)
    TENSOR_ATTACKS[attack](tensors)
    forge(newest, tensors)
    end = (run.folder / "model.safetensors").read_bytes()
    said: list[str] = []
    train(Run.open(run.folder), on_message=said.append)
    assert len(said) == 1 and newest.name in said[0] and before.name not in said[0]
    assert (run.folder / "model.safetensors").read_bytes() == end


@pytest.mark.parametrize(
    "values", [b"[" * 100_000, b'{"update": ' + b"9" * 6000 + b"}", b'{"epoch": -1}', b"null", b"\xff\xfe"]
)
def test_values_of_any_kind_fall_back(run: Run, values: bytes) -> None:
    forge(run.checkpoints.paths()[-1], values=values)
    said: list[str] = []
    train(Run.open(run.folder), on_message=said.append)
    assert len(said) == 1 and "Going back" in said[0]


def test_an_honest_state_passes(run: Run) -> None:
    """The control of the forgeries: rewriting the same content changes nothing."""
    newest = run.checkpoints.paths()[-1]
    forge(newest, load_file(newest / TENSORS))
    said: list[str] = []
    train(Run.open(run.folder), on_message=said.append)
    assert said == [] and read_checkpoint(newest)


# --- a full disk -----------------------------------------------------------------------------------------------------
@contextmanager
def files_no_larger_than(n_bytes: int) -> Iterator[None]:
    """Let the system refuse larger files, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_finds_no_room_leaves_the_old_one_and_no_litter(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"old")
    with files_no_larger_than(1000), pytest.raises(OSError, match=r"file could not be written.*harmonium resume"):
        write_atomic(path, b"x" * 5000)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_checkpoint_that_finds_no_room_leaves_the_others_and_no_litter(run: Run) -> None:
    paths = run.checkpoints.paths()
    with files_no_larger_than(1000), pytest.raises(OSError, match="could not be written"):
        run.checkpoints.save({"x": torch.zeros(5000)}, {"update": 999})
    assert sorted((run.folder / "checkpoints").iterdir()) == paths
