"""Two hosts in one: a worker in each of two network namespaces, of which one is killed at a random moment.

    python -m benchmarks.scale_hosts --n 5       # as root, with Debian's iproute2

The hosts see each other over a pair of virtual cables and share a folder, no memory: gradients are added up by gloo. An
agent of `torchrun` runs on each. A run ends exactly if the folder holds the bytes of a run of the two never killed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from benchmarks.kill_resume import fingerprint
from benchmarks.scale_faults import KINDS, SOURCE, _workers_of
from benchmarks.tiny_runs import write_cases

NAMES = Path("/etc/netns")
"""Where `ip netns exec` finds files that a namespace has instead of those in /etc."""

HOSTS = {"harmonium-a": "10.77.0.1", "harmonium-b": "10.77.0.2"}
CABLE = "cable0"


def _ip(line: str, *, must: bool = True) -> None:
    subprocess.run(["ip", *line.split()], check=must, stderr=None if must else subprocess.DEVNULL)


@contextmanager
def two_hosts() -> Iterator[None]:
    """Make two network namespaces with a cable between them, for as long as the block lasts."""
    try:
        for name in HOSTS:
            _ip(f"netns add {name}")
            (NAMES / name).mkdir(parents=True)
            lines = [f"{address} {host}\n" for host, address in [*HOSTS.items(), ("localhost", "127.0.0.1")]]
            (NAMES / name / "hosts").write_text("".join(lines))
            (NAMES / name / "resolv.conf").write_text("nameserver 127.0.0.1\n")  # nobody: it says so at once
        first, second = HOSTS
        _ip(f"link add {CABLE} netns {first} type veth peer name {CABLE} netns {second}")
        for name, address in HOSTS.items():
            _ip(f"-n {name} address add {address}/24 dev {CABLE}")
            _ip(f"-n {name} link set {CABLE} up")
            _ip(f"-n {name} link set lo up")
        yield
    finally:
        for name in HOSTS:
            _ip(f"netns delete {name}", must=False)
            shutil.rmtree(NAMES / name, ignore_errors=True)


def agents(config: Path, folder: Path, run: str) -> list[subprocess.Popen[bytes]]:
    """Start a run of one worker on each host."""
    head = next(iter(HOSTS.values()))
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": CABLE}
    environment |= {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    started = []
    for name, address in HOSTS.items():
        line = ["ip", "netns", "exec", name, sys.executable, "-m", "torch.distributed.run", "--nnodes", "2"]
        line += ["--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"{head}:29400"]
        line += ["--rdzv-conf", f"is_host={int(address == head)}", "--rdzv-id", run, "--local-addr", address]
        line += ["--max-restarts", "3", "--monitor-interval", "0.1"]
        line += ["-m", "harmonium", "train", str(config), "--quiet", "--output", str(folder)]
        with folder.with_name(f"{folder.name}-{name}.log").open("wb") as log:
            started.append(subprocess.Popen(line, env=environment, stdout=log, stderr=log))
    return started


def kills(n: int, seed: int) -> None:
    """Kill the worker of one of two hosts at a random moment, n times, and count the exact ends."""
    generator = torch.Generator().manual_seed(seed)
    with tempfile.TemporaryDirectory() as name, two_hosts():
        root = Path(name)
        cases = write_cases(root, every=5)
        wanted: dict[str, tuple[float, object]] = {}
        n_exact = n_hangs = n_kills = 0
        for i in range(3 * n):
            if n_kills == n:
                break
            kind = KINDS[i % len(KINDS)]
            if kind not in wanted:
                began = time.monotonic()
                if any(agent.wait(600) for agent in agents(cases[kind], root / kind, kind)):
                    logs = "\n".join(path.read_text() for path in root.glob(f"{kind}-*.log"))
                    raise RuntimeError(f"The run of {kind} that is never killed failed.\n{logs}")
                wanted[kind] = time.monotonic() - began, fingerprint(root / kind)
            seconds, bytes_wanted = wanted[kind]
            folder = root / f"{kind}-{i}"
            pair = agents(cases[kind], folder, folder.name)
            moment = seconds * (0.2 + 0.8 * torch.rand((), generator=generator).item())
            time.sleep(moment)
            host = int(torch.randint(2, (), generator=generator))
            pids = _workers_of(pair[host])
            if not pids:  # it had ended before, and does not count
                for agent in pair:
                    agent.wait()
                continue
            n_kills += 1
            in_run = (folder / "config.toml").exists()
            os.kill(pids[0], signal.SIGKILL)
            try:
                codes = [agent.wait(10 * seconds + 240) for agent in pair]
            except subprocess.TimeoutExpired:
                n_hangs += 1
                print(f"kill {n_kills}, {kind}, host {host}: HANGS", flush=True)
                for agent in pair:
                    agent.kill()
                continue
            exact = codes == [0, 0] and fingerprint(folder) == bytes_wanted
            n_exact += exact
            print(
                f"kill {n_kills}, {kind}, host {host} after {moment:.1f} s{'' if in_run else ' (before the run)'}: "
                f"{'exact' if exact else f'differs (exits {codes})'}",
                flush=True,
            )
        print(f"two hosts, {n_kills} kills: {n_exact} exact ends, {n_hangs} hangs")


def main() -> None:
    """Make the kills that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=5, help="how many kills")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    kills(arguments.n, arguments.seed)


if __name__ == "__main__":
    main()
