"""Events: every epoch once, in order, whatever happens to the line, the file or the folder."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harmonium.runs import Run
from harmonium.runs.atomic import write_atomic
from harmonium.runs.lock import is_locked
from harmonium.web.control import Control
from harmonium.web.folder import Folder
from harmonium.web.serve import Settings
from harmonium.web.watch import Log
from tests.web.conftest import Client, served
from tests.web.wait import until


def epochs(lines: range, note: str = "") -> bytes:
    return b"".join(json.dumps({"epoch": i, "note": note}).encode() + b"\n" for i in lines)


def heard(log: Log, place: int = 0) -> list[int]:
    found = []
    while place < len(log.lines.records):
        event, place = log.lines.event(place)
        found += [record["epoch"] for record in json.loads(event.split(b"data: ")[1])]
    return found


def mark(log: Log, n: int) -> str:
    return "-".join(map(str, log.lines.ends[n]))


def test_a_log_gives_whole_lines_once(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log = Log(path)
    log.poll()
    assert heard(log) == []
    path.write_bytes(epochs(range(3)) + b'{"epoch": 3')
    log.poll()
    assert heard(log) == [0, 1, 2]
    with path.open("ab") as file:
        file.write(b"}\n")
    log.poll()
    assert heard(log, 3) == [3]
    assert heard(log) == [0, 1, 2, 3]


def test_a_place_is_found_again_by_another_server(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(epochs(range(1200)))
    first, second = Log(path), Log(path)
    first.poll()
    place = mark(first, 700)
    write_atomic(path, epochs(range(1300)))  # the same beginning in another file
    second.poll()
    found = second.lines.place(place)
    assert found == 700 and heard(second, found) == list(range(700, 1300))
    assert (
        second.lines.place("700-1") is None and second.lines.place("") is None and second.lines.place("9" * 40) is None
    )


def test_another_file_is_told_anew(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(epochs(range(9)))
    log = Log(path)
    log.poll()
    place, before = mark(log, 5), log.lines
    write_atomic(path, epochs(range(4)))  # back to a checkpoint: a shorter file
    log.poll()
    assert log.lines is not before and heard(log) == [0, 1, 2, 3] and log.lines.place(place) is None
    write_atomic(path, epochs(range(9), "other"))
    log.poll()
    assert heard(log) == list(range(9)) and log.lines.place(place) is None
    path.unlink()
    log.poll()
    assert heard(log) == []


def test_damaged_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(
        epochs(range(1)) + b"\xff\xfe\n[[[\n" + b"[" * 5000 + b"\n" + b'{"epoch": NaN}\n' + epochs(range(1, 2))
    )
    log = Log(path)
    log.poll()
    assert [json.loads(record) for record in log.lines.records] == [
        {"epoch": 0, "note": ""}, None, None, None, {"epoch": None}, {"epoch": 1, "note": ""}]  # fmt: skip


def test_no_event_is_lost_over_reconnects(client: Client, root: Path) -> None:
    folder = root / "growing"
    shutil.copytree(root / "bars", folder)
    path = folder / "metrics.jsonl"
    path.write_bytes(epochs(range(3)))
    known: list[int] = []
    last = ""
    for turn in range(4):
        events = client.events(last, run="growing")
        with path.open("ab") as file:  # while the line is open, and while it was down
            file.write(epochs(range(3 + 2 * turn, 4 + 2 * turn)))
        for name, place, data in events:
            assert name in ("epochs", "state")
            if name == "epochs":
                known += [record["epoch"] for record in data]
                last = place
            if known and known[-1] == 3 + 2 * turn:
                break
        events.close()
        with path.open("ab") as file:
            file.write(epochs(range(4 + 2 * turn, 5 + 2 * turn)))
    assert known == list(range(10))
    events = client.events("12-12", run="growing")  # a place of another file
    assert next(events)[0] == "reset"
    events.close()


def test_streams_end_with_the_server(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with contextlib.contextmanager(served)(Settings(root, port=0)) as client:
        streams = [client.events(), client.events(run="bars")]
        assert [next(events)[0] for events in streams] == ["runs", "epochs"]
        client.serving.server.should_exit = True
        rest = [name for events in streams for name, _, _ in events]  # they end, where they were broken off before
    assert set(rest) <= {"state", "changes"} and "Traceback" not in capfd.readouterr().err


def test_a_run_that_is_deleted_says_so(client: Client, root: Path) -> None:
    shutil.copytree(root / "bars", root / "gone")
    events = client.events(run="gone")
    assert next(events)[0] == "epochs" and next(events)[0] == "state"
    shutil.rmtree(root / "gone")
    assert next(events)[0] == "gone"
    events.close()
    assert client.get("run", run="gone")[0] == 404


def test_the_table_tells_what_changes(client: Client, root: Path) -> None:
    events = client.events()
    name, _, rows = next(events)
    found = {row["name"]: row for row in rows}
    assert name == "runs" and found["bars"]["status"] == "finished" and found["bars"]["n_epochs"] == 4
    assert found["table"]["data"] == "table.csv"  # a name, no path of this computer
    shutil.copytree(root / "bars", root / "late")
    changes = next(data for kind, _, data in events if kind == "changes")
    assert [row["name"] for row in changes["rows"]] == ["late"] and not changes["gone"]
    (root / "late" / "config.toml").write_text("no settings [")
    changes = next(data for kind, _, data in events if kind == "changes")
    assert changes["rows"][0]["status"] == "broken" and changes["rows"][0]["error"]
    shutil.rmtree(root / "late")
    assert next(data for kind, _, data in events if kind == "changes")["gone"] == ["late"]
    events.close()


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.toml", b""),
        ("config.toml", b"\xff\xfe"),
        ("config.toml", b'[data]\nname = "bars-and-stripes"\n[model]\nkind = "nothing"\n'),
        ("config.toml", b'[experiment]\nname = "nothing"\n'),
        ("evaluation.json", b"{"),
        ("evaluation.json", b'{"log_z": 1, "test": 3}'),
        ("data.json", b"[1"),
        ("model.safetensors", b"\x00" * 30),
        ("metrics.jsonl", b"\xff\n{\n"),
    ],
)
def test_a_broken_run_has_words(client: Client, root: Path, file: str, content: bytes) -> None:
    folder = root / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root / "bars", folder)
    (folder / file).write_bytes(content)
    rows = {row["name"]: row for row in client.get("runs")[1]["runs"]}
    assert rows["damaged"]["name"] == "damaged" and rows["bars"]["status"] == "finished"
    for what in ("run", "plays"):
        status, seen = client.get(what, run="damaged")
        assert status in (200, 409, 422) and (status == 200 or seen["error"])
    shutil.rmtree(folder)


def test_who_trains_is_seen_without_writing(root: Path) -> None:
    folder, run = Folder(root), Run.open(root / "bars")
    run.config = run.config.model_copy(update={"training": run.config.training.model_copy(update={"epochs": 9})})
    write_atomic(root / "bars" / "config.toml", run.config.to_toml().encode())
    assert folder.row("bars")["status"] == "stopped"
    with run.writing():
        assert folder.row("bars")["status"] == "training"
        run.ask_to_stop()
        with run.writing():  # the same writer: what was asked of it still holds
            assert folder.row("bars")["status"] == "stopping"
    with run.writing():  # another one
        assert not run.asked_to_stop
    assert folder.row("bars")["status"] == "stopped"
    with ThreadPoolExecutor(8) as threads:  # those who look do not take each other for a writer
        assert not any(threads.map(lambda _: is_locked(root / "bars"), range(400)))


def test_a_run_that_validation_ended_is_finished(root: Path) -> None:
    shutil.copytree(root / "bars", root / "patient")
    run = Run.open(root / "patient")
    training = run.config.training.model_copy(update={"epochs": 9, "patience": 3})
    config = run.config.model_copy(update={"training": training})
    write_atomic(root / "patient" / "config.toml", config.to_toml().encode())
    for best, status in ((1, "finished"), (2, "stopped")):  # after four epochs
        lines = [json.dumps({"epoch": i, "best_epoch": min(i, best)}) for i in range(1, 5)]
        write_atomic(root / "patient" / "metrics.jsonl", "".join(f"{line}\n" for line in lines).encode())
        assert Folder(root).row("patient")["status"] == status
    shutil.rmtree(root / "patient")


def test_two_hundred_runs_are_read_once(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(200):
        shutil.copytree(root / "moons", tmp_path / f"run-{i}", ignore=shutil.ignore_patterns("checkpoints"))
    folder = Folder(tmp_path)
    assert len(folder.rows()) == 200
    opened = itertools.count()
    monkeypatch.setattr("harmonium.web.folder.Run.open", lambda *_, **__: next(opened))
    assert len(folder.rows()) == 200 and next(opened) == 0  # what has not changed is not read again


def test_stop_and_resume(client: Client, root: Path) -> None:
    folder = root / "stopped"
    shutil.copytree(root / "bars", folder)
    run = Run.open(folder)
    assert client.post("stop", run="stopped") == (
        409,
        {"error": "Nobody trains this run now: there is nothing to stop."},
    )
    epochs = run.n_epochs + 20_000
    run.extend(epochs)
    assert client.post("resume", run="stopped")[0] == 200
    until(lambda: client.get("run", run="stopped")[1]["row"]["status"] == "training", 300)
    assert not client.get("run", run="stopped")[1]["failure"]
    assert client.post("resume", run="stopped")[0] == 409
    until(lambda: run.n_epochs > 10, 300)
    assert client.post("stop", run="stopped")[0] == 200
    until(lambda: client.get("run", run="stopped")[1]["row"]["status"] == "stopped", 300)
    seen = client.get("run", run="stopped")[1]
    assert 10 < seen["row"]["n_epochs"] < epochs and not seen["failure"]


def test_a_resume_that_fails_has_words(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(root / "bars", tmp_path / "runs" / "bars")
    Run.open(tmp_path / "runs" / "bars").extend(99)
    fails = tmp_path / "python"
    fails.write_text("#!/bin/sh\necho 'harmonium: None of the 3 checkpoints is whole.' >&2\nexit 2\n")
    fails.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(fails))
    control = Control(Folder(tmp_path / "runs"))
    control.resume("bars")
    assert "None of the 3 checkpoints" in until(lambda: control.failures.get("bars"))
