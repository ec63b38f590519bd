"""Several workers against one: the same numbers, the speed, kills of workers, and data larger than memory.

    python -m benchmarks.scale                     # all parts
    python -m benchmarks.scale same speed --repeats 3
    python -m benchmarks.scale kills --n 20

Workers have one thread each. One worker and two take turns; times are medians. Two threads are measured in a process of
their own, since those that wait for work take some from others. Beside the wall clock stands the time of the processor
that the busier of two took, and how many seconds of it anybody else had while two were at work: about 0 on an idle
machine. Kills and silence: `scale_faults`; memory, likelihoods and precision: `scale_limits`.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed.nn  # before there is a group, which its default arguments would keep to the end
from torch import distributed, multiprocessing

import harmonium as hm
from benchmarks.scale_faults import kills, silence
from benchmarks.scale_limits import likelihoods, memory, precision
from harmonium import workers
from harmonium.learning.objectives import Objective
from harmonium.networks import SmallConv
from harmonium.samplers import Langevin
from harmonium.shared_sum import SharedSum

PARTS = ("same", "speed", "likelihood", "kills", "silence", "memory", "precision", "model")


def rbm_784() -> hm.RBM:
    """Return an RBM of 784×500 units, the same in every process."""
    return hm.RBM(hm.Bernoulli(784), hm.Bernoulli(500), generator=torch.Generator().manual_seed(0))


@functools.cache
def binary_rows(n: int) -> torch.Tensor:
    """Return n rows of 784 random bytes 0 and 1, made once: making them is not what is timed."""
    return (torch.arange(n * 784).mul_(2654435761).bitwise_right_shift_(13) % 4 == 0).to(torch.uint8).view(n, 784)


def contrastive(objective: Objective, n_updates: int, batch_size: int) -> dict[str, torch.Tensor]:
    """Train the RBM for some updates and return its parameters."""
    rbm = rbm_784()
    optimizer = torch.optim.SGD(rbm.parameters(), 0.05)
    generator = torch.Generator().manual_seed(1)
    x = binary_rows(n_updates * batch_size)
    hm.fit(rbm, x, objective, optimizer=optimizer, epochs=1, batch_size=batch_size, monitors=[], generator=generator)
    return {name: p.detach() for name, p in rbm.named_parameters()}


def annealed(n_chains: int) -> hm.Estimate:
    """Anneal chains of the RBM over 200 temperatures."""
    betas = torch.linspace(0, 1, 200).tolist()
    return hm.ais(rbm_784(), n_chains=n_chains, betas=betas, generator=torch.Generator().manual_seed(1))


SPEED: dict[str, Callable[[], object]] = {
    "an epoch of CD-1, 784×500, 60,000 rows, batch 512": lambda: contrastive(hm.CD(), 117, 512),
    "the same, batch 2048": lambda: contrastive(hm.CD(), 29, 2048),
    "AIS, 784×500, 512 chains": lambda: annealed(512),
    "AIS, 784×500, 2,048 chains": lambda: annealed(2048),
    "Langevin, convolutional energy, 256 chains": lambda: hm.sample(
        hm.NeuralEBM(SmallConv((1, 28, 28), generator=torch.Generator().manual_seed(0)), (1, 28, 28)),
        256,
        n_steps=40,
        sampler=Langevin(step_size=0.01),
        generator=torch.Generator().manual_seed(1),
    ),
}


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the wall clock and the processor time of some work."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def _worker(rank: int, world: int, meeting: str, part: str, repeats: int) -> None:
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world)}
    if world > 1:
        limit = timedelta(seconds=300)
        distributed.init_process_group("gloo", f"file://{meeting}", timeout=limit, rank=rank, world_size=world)
    found: dict[str, list[float]]
    if part == "same":
        rules = {"CD-1": hm.CD(), "PCD-1": hm.PCD(n_chains=100), "tempered PCD-1": hm.TemperedPCD(n_chains=100)}
        states = {name: contrastive(rule, 1, 512) for name, rule in rules.items()}
        found = {f"{r}.{n}": p.flatten().tolist() for r, state in states.items() for n, p in state.items()}
    elif part == "sums":
        found = {str(n): sums(n) for n in (1, 784 * 500 + 784 + 500)}
    elif part == "threads":
        torch.set_num_threads(2)
        found = {name: [statistics.median(timed(work)[0] for _ in range(repeats + 1))] for name, work in SPEED.items()}
    else:
        found = {name: in_turn(work, repeats) for name, work in SPEED.items()}
    if rank == 0:
        Path(f"{meeting}.json").write_text(json.dumps(found))
    if world > 1:
        workers.meet()
        distributed.destroy_process_group()


def in_turn(work: Callable[[], object], repeats: int) -> list[float]:
    """Return the median seconds of one worker and of two; processor time of one, of the busier of two, of others."""
    rounds = []
    for _ in range(repeats + 1):  # the first warms up
        one = 0.0, 0.0
        if workers.is_first():
            with workers.alone():
                one = timed(work)
        workers.meet()
        before = _busy()
        wall, cpu = timed(work)
        workers.meet()
        cpus = workers.gather(torch.tensor([cpu], dtype=torch.float64), lengths=[1, 1])
        rounds.append([one[0], wall, one[1], float(cpus.max()), _busy() - before - float(cpus.sum())])
    return [statistics.median(column) for column in zip(*rounds[1:], strict=True)]


def _busy() -> float:
    """Return the seconds that the processors of this machine have worked, for anybody; Linux tells."""
    numbers = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(numbers) - numbers[3] - numbers[4]) / os.sysconf("SC_CLK_TCK")


def sums(n: int, repeats: int = 200) -> list[float]:
    """Return the seconds to add up n numbers of all workers: by shared memory, and by the group."""
    x = torch.ones(n)
    shared = SharedSum.of(n, [x])
    times = []
    for add_up in ([lambda: shared([x])] if shared else []) + [lambda: workers.add_up(x)]:
        for _ in range(repeats // 10):
            add_up()
        times.append(timed(lambda work=add_up: [work() for _ in range(repeats)])[0] / repeats)
    return times


def in_group(world: int, part: str, *, repeats: int = 1) -> dict[str, list[float]]:
    """Let so many workers do a part and return what the first found."""
    with tempfile.TemporaryDirectory() as folder:
        meeting = f"{folder}/meeting"
        multiprocessing.spawn(_worker, (world, meeting, part, repeats), world)
        return json.loads(Path(f"{meeting}.json").read_text())


def same() -> None:
    """Print how far the parameters after one update differ from those of one worker."""
    alone = in_group(1, "same")
    for world in (2, 3, 4):
        found = in_group(world, "same")
        worst = {}
        for name, values in alone.items():
            rule = name.split(".")[0]
            gap = np.abs(np.array(found[name]) - np.array(values)).max().item()
            worst[rule] = max(worst.get(rule, 0.0), gap)
        print(f"one update on {world} workers: " + ", ".join(f"{rule} {gap:.1e}" for rule, gap in worst.items()))


def speed(repeats: int) -> None:
    """Print the times of two workers beside one, and beside two threads in one process."""
    found, threads = in_group(2, "speed", repeats=repeats), in_group(1, "threads", repeats=repeats)
    for name, (one, two, cpu, busier, others) in found.items():
        print(
            f"{name}: one worker {one:.3f} s; two {two:.3f} s, {one / two:.2f} times as fast (by processor time "
            f"{cpu / busier:.2f}; others {others:.2f} s); two threads {one / threads[name][0]:.2f}"
        )
    (latency, _), (shared, group) = in_group(2, "sums").values()
    alone, together = (seconds / 117 for seconds in found[next(iter(SPEED))][:2])
    print(
        f"the model: an update of {1e3 * alone:.2f} ms alone takes two {1e3 * alone / 2:.2f} + {1e3 * shared:.2f} ms "
        f"to add up = {1e3 * (alone / 2 + shared):.2f} ms; measured {1e3 * together:.2f}. To add up one number takes "
        f"{1e3 * latency:.2f} ms, 1.6 MB by gloo {1e3 * group:.2f}"
    )


NETWORKS = {
    "784×500, batch 512": (5 * 2 * 512 * 784 * 500, 4 * 784 * 500),
    "10⁴×10⁴, batch 512": (5 * 2 * 512 * 10**8, 4 * 10**8),
    "3×32×32 → 64×16×16, kernel 4, batch 128": (5 * 2 * 128 * 64 * 16 * 16 * 3 * 16, 4 * 64 * 3 * 16),
}
"""Operations of a CD-1 update and bytes of its gradient; the last is the first layer of Hwang et al. 2020."""


def predicted(operations: float, n_bytes: float, world: int, rate: float, latency: float, bandwidth: float) -> float:
    """Return the seconds of an update on W workers: `products/W + 2 log₂(W) latency + 2 bytes (1 - 1/W)/bandwidth`."""
    steps = 2 * math.ceil(math.log2(world))
    return operations / rate / world + steps * latency + 2 * n_bytes * (1 - 1 / world) / bandwidth


def model(rate: float, latency: float, bandwidth: float, path: Path | None) -> None:
    """Print, and draw, how many times as fast as one so many workers are, by the model of the cost."""
    worlds = [2**i for i in range(11)]
    print("workers " + " ".join(f"{world:>6}" for world in worlds))
    curves = {}
    for name, (operations, n_bytes) in NETWORKS.items():
        times = [predicted(operations, n_bytes, world, rate, latency, bandwidth) for world in worlds]
        curves[name] = [times[0] / t for t in times]
        print(f"{name}: {times[0] * 1e3:.1f} ms alone; " + " ".join(f"{x:.1f}" for x in curves[name]))
    if path is not None:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
        axes.plot(worlds, worlds, color="0.7", label="ideal")
        for name, curve in curves.items():
            axes.plot(worlds, curve, marker="o", markersize=3, label=name)
        axes.set(xscale="log", yscale="log", xlabel="workers", ylabel="times as fast as one worker")
        axes.legend(frameon=False)
        figure.savefig(path, dpi=150)


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--repeats", type=int, default=5, help="of each timing")
    parser.add_argument("--n", type=int, default=20, help="how many kills")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, default=5e10, help="operations a second of a worker, for the model")
    parser.add_argument("--latency", type=float, default=5e-5, help="seconds from one worker to another")
    parser.add_argument("--bandwidth", type=float, default=1.25e9, help="bytes a second between hosts")
    parser.add_argument("--picture", type=Path, help="where the model is drawn")
    arguments = parser.parse_args()
    parts = arguments.parts or PARTS
    if "same" in parts:
        same()
    if "speed" in parts:
        speed(arguments.repeats)
    if "likelihood" in parts:
        likelihoods()
    if "kills" in parts:
        kills(arguments.n, arguments.seed)
    if "silence" in parts:
        silence()
    if "memory" in parts:
        memory()
    if "precision" in parts:
        precision()
    if "model" in parts:
        model(arguments.rate, arguments.latency, arguments.bandwidth, arguments.picture)


if __name__ == "__main__":
    main()
