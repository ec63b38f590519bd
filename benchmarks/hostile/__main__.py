"""Throw hostile inputs at every reader and command, and count what went wrong.

    python -m benchmarks.hostile                  # 2,000 and more
    python -m benchmarks.hostile --mutations 50 --seed 3
    python -m benchmarks.hostile --only arrays,flags
    python -m benchmarks.hostile --share 1/4      # every fourth of the same list

Each is run in a process of its own. Wrong are: a traceback, a crash, more than 30 seconds, more than 1 GB at the peak,
an exit without a word, and the acceptance of what must be refused (the kinds are printed).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from benchmarks.hostile.arrays import wrong_arrays
from benchmarks.hostile.attack import Attack
from benchmarks.hostile.files import chosen_files, mutated_files
from benchmarks.hostile.folders import damaged_folders, make_runs
from benchmarks.hostile.judge import Verdict, judged
from benchmarks.hostile.settings import wrong_flags, wrong_settings


def attacks(folder: Path, n: int, seed: int, only: str = "") -> Iterator[Attack]:
    """Yield all attacks: chosen ones, and `n` mutations of files and half as many of runs."""
    rng, runs = random.Random(seed), make_runs(folder)
    parts: dict[str, Callable[[], Iterator[Attack]]] = {
        "files": lambda: chosen_files(folder),
        "arrays": wrong_arrays,
        "settings": lambda: wrong_settings(folder, rng),
        "flags": lambda: wrong_flags(runs["pcd"]),
        "runs": lambda: damaged_folders(folder, runs, n // 2, rng),
        "mutations": lambda: mutated_files(folder, n, rng),
    }
    for name, part in parts.items():
        if not only or name in only.split(","):
            yield from part()


def main() -> None:
    """Run them and print the count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=800)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="parts: files, arrays, settings, flags, runs, mutations")
    parser.add_argument("--share", default="1/1", help="2/4: every fourth input, from the second on")
    parser.add_argument("--output", type=Path, help="a file of JSON lines for all that went wrong")
    arguments = parser.parse_args()
    found: list[Verdict] = []
    with tempfile.TemporaryDirectory() as name:
        chosen = attacks(Path(name), arguments.mutations, arguments.seed, arguments.only)
        first, step = map(int, arguments.share.split("/"))
        for verdict in judged(islice(chosen, first - 1, None, step), Path(name)):
            found.append(verdict)
            if verdict.outcome != "answer":
                attack = verdict.attack
                last = (verdict.text.strip().splitlines() or [""])[-1]
                print(f"{verdict.outcome}: {attack.kind}: {attack.name}: {last[:160]}", flush=True)
                if arguments.output is not None:
                    line = json.dumps([verdict.outcome, attack.kind, attack.name, attack.command, verdict.text])
                    with arguments.output.open("a") as file:
                        file.write(f"{line}\n")
            if len(found) % 200 == 0:
                print(f"{len(found)} done", flush=True)
    table = Counter((verdict.attack.kind, verdict.attack.refuse) for verdict in found)
    for (kind, refuse), n in sorted(table.items()):
        print(f"{n:5} {kind}{' (must be refused)' if refuse else ''}")
    wrong = Counter(verdict.outcome for verdict in found if verdict.outcome != "answer")
    peak, slowest = max(v.peak for v in found), max(v.seconds for v in found)
    print(f"{len(found)} hostile inputs: {dict(wrong) or 'every one got an answer'}")
    print(f"largest peak of memory {peak / 1e6:.0f} MB, longest {slowest:.1f} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
