"""Workers that die or fall silent: do the others end as they should, and how soon?

Kills: one of two workers under `torchrun --max-restarts` gets a SIGKILL at a random moment; it ends exactly if the
folder holds the bytes of a run of two workers never killed. Silence: a worker is killed, or stopped (SIGSTOP), between
two collectives of which the other waits in the second; told is how long that one waits and what it says.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.kill_resume import fingerprint
from benchmarks.tiny_runs import write_cases

SOURCE = Path(__file__).resolve().parent.parent / "src"
KINDS = ("pcd", "gaussian", "jem", "tempered", "missing")


def torchrun(config: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Start a run of two workers."""
    line = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    line += ["--max-restarts", "3", "--monitor-interval", "0.1", "-m", "harmonium", "train", str(config)]
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([*line, "--quiet", "--output", str(folder)], env=environment, **quiet)


def _workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []


def kills(n: int, seed: int) -> None:
    """Kill a worker at a random moment, n times, over several kinds of models, and count the exact ends."""
    generator = torch.Generator().manual_seed(seed)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        cases = {kind: path for kind, path in write_cases(root, every=5).items() if kind in KINDS}
        lengths: dict[str, float] = {}
        wanted: dict[str, object] = {}
        n_exact = n_hangs = n_kills = n_tries = 0
        while n_kills < n and n_tries < 3 * n:
            kind = KINDS[(seed + n_tries) % len(KINDS)]
            if kind not in wanted:
                started = time.monotonic()
                if torchrun(cases[kind], root / kind).wait() != 0:
                    raise RuntimeError(f"The run of {kind} that is never killed failed.")
                lengths[kind], wanted[kind] = time.monotonic() - started, fingerprint(root / kind)
            folder = root / f"{kind}-{n_tries}"
            n_tries += 1
            process = torchrun(cases[kind], folder)
            moment = lengths[kind] * (0.2 + 0.8 * torch.rand((), generator=generator).item())
            time.sleep(moment)
            pids = _workers_of(process)
            if not pids:  # it had ended before, and does not count
                process.wait()
                continue
            n_kills += 1
            began = (folder / "config.toml").exists()
            os.kill(pids[int(torch.randint(len(pids), (), generator=generator))], signal.SIGKILL)
            try:
                code = process.wait(10 * max(lengths.values()) + 120)
            except subprocess.TimeoutExpired:
                n_hangs += 1
                print(f"kill {n_kills}, {kind}: HANGS", flush=True)
                process.kill()
                continue
            exact = code == 0 and fingerprint(folder) == wanted[kind]
            n_exact += exact
            end = "exact" if exact else f"differs (exit {code})"
            print(
                f"kill {n_kills}, {kind} after {moment:.1f} s{'' if began else ' (before the run)'}: {end}", flush=True
            )
        print(f"{n_kills} kills: {n_exact} exact ends, {n_hangs} hangs")


_PARTNER = """
import os, signal, sys, time, torch
from harmonium import workers
from harmonium.shared_sum import SharedSum
how, through = sys.argv[1:]
with workers.joined():
    x = torch.ones(100_000)
    shared = SharedSum.of(len(x), [x])
    add_up = workers.add_up if through == "gloo" else lambda x: shared([x])
    add_up(x)
    if workers.rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL if how == "killed" else signal.SIGSTOP)
    began = time.monotonic()
    try:
        add_up(x)
    except workers.WorkersApartError as error:
        print(f"{time.monotonic() - began:.1f}|{error}", flush=True)
    os._exit(0)
"""


def silence(seconds: float = 5.0) -> None:
    """Print how long a worker waits for one that was killed, and for one that was stopped, with a limit of seconds."""
    for how, through in itertools.product(("killed", "stopped"), ("gloo", "shared memory")):
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "partner.py"
            script.write_text(_PARTNER)
            common = os.environ | {"PYTHONPATH": str(SOURCE), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
            common |= {"MASTER_PORT": "29533", "HARMONIUM_WORKER_SECONDS": str(seconds), "OMP_NUM_THREADS": "1"}
            pair = [
                subprocess.Popen(
                    [sys.executable, str(script), how, through],
                    env=common | {"RANK": str(rank)},
                    stdout=subprocess.PIPE,
                    text=True,
                )
                for rank in range(2)
            ]
            said, _ = pair[0].communicate(timeout=120)
            pair[1].kill()
            pair[1].communicate()
            waited, _, text = said.partition("|")
            print(
                f"a worker that is {how} within a sum by {through}: the other waits {waited} s of {seconds:g}: "
                f"{text.strip()}"
            )
