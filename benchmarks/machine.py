"""The machine, the versions and the threads of a run."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "learnergy", "rbms", "torchebm", "ebmkit")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def fix_environment(n_threads: int) -> None:
    """Set the number of threads of every library that is imported after this, and forbid progress bars."""
    for name in THREAD_VARIABLES:
        os.environ[name] = str(n_threads)
    os.environ["TQDM_DISABLE"] = "1"


@contextmanager
def thread_limits(n: int) -> Iterator[dict[str, int]]:
    """Hold PyTorch and every BLAS to `n` threads and yield what they say they use."""
    import torch

    torch.set_num_threads(n)
    try:
        import threadpoolctl
    except ImportError:
        yield {"torch": torch.get_num_threads()}
        return
    import numpy  # noqa: F401  (its BLAS is to be seen)

    with threadpoolctl.threadpool_limits(n):
        pools = {f"{p['user_api']} ({p['internal_api']})": p["num_threads"] for p in threadpoolctl.threadpool_info()}
        yield {"torch": torch.get_num_threads()} | pools


def describe() -> dict[str, Any]:
    """Return the processor, its features that matter, memory and system, and whether there are compiled loops."""
    from harmonium import native  # after the threads are fixed

    cpu = _lines("/proc/cpuinfo")
    flags = cpu.get("flags", "").split()
    memory = _lines("/proc/meminfo").get("MemTotal", "")
    return {
        "processor": cpu.get("model name") or platform.processor() or platform.machine(),
        "vector": next((name for name in ("avx512f", "avx2", "avx") if name in flags), ""),
        "cores": os.cpu_count(),
        "memory_gib": round(int(memory.split()[0]) / 2**20, 1) if memory else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "compiled": native.LIBRARY is not None,
    }


def versions() -> dict[str, str]:
    """Return the versions of Harmonium and of the peers that are installed."""
    import harmonium

    found = {"harmonium": harmonium.__version__}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def load_average() -> float | None:
    """Return how many processes wanted to run in the last minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _lines(path: str) -> dict[str, str]:
    file = Path(path)
    if not file.exists():
        return {}
    pairs = (line.partition(":") for line in file.read_text(encoding="utf-8").splitlines())
    found: dict[str, str] = {}
    for name, _, value in pairs:
        found.setdefault(name.strip(), value.strip())
    return found
