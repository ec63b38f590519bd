"""`python -m benchmarks`: run the cases, print their figures and write them down."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from benchmarks import machine

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.json"


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", metavar="CASE", help="run this case (may be repeated), print only")
    parser.add_argument("--repeats", type=int, help="repeats of each case (7; with --quick 2)")
    parser.add_argument("--threads", type=int, default=2, help="threads of every library (2)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that all runs; print only")
    parser.add_argument("--output", type=Path, help=f"write FILE, its .md and images/ beside it ({DOCS.name} in docs)")
    return parser.parse_args()


def write(run: dict[str, Any], file: Path) -> None:
    """Write the figures, the page and the pictures."""
    from benchmarks import pictures, report

    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(run, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    file.with_suffix(".md").write_text(report.as_markdown(run), encoding="utf-8")
    pictures.draw_ratios(run["results"], file.parent / "images" / "benchmarks.png")
    if run["scaling"]:
        pictures.draw_scaling(run["scaling"], file.parent / "images" / "scaling.png")
    print(f"written: {file.name}, {file.stem}.md and pictures in {file.parent.name}/", flush=True)


def run_all(options: argparse.Namespace) -> dict[str, Any]:
    """Run the chosen cases and return everything that is known of the run."""
    from benchmarks import cases, report
    from benchmarks.cases import scaling
    from benchmarks.runner import run_case

    names = [case.name for case in cases.ALL] + ["scaling"]
    unknown = [name for name in options.only or [] if name not in names]
    if unknown:
        raise SystemExit(f"There is no case {', '.join(unknown)}. The cases are {', '.join(names)}.")
    chosen = options.only or names
    repeats = options.repeats or (2 if options.quick else 7)
    started, load_before = time.perf_counter(), machine.load_average()
    results, curves = [], []
    with machine.thread_limits(options.threads) as pools:
        described = machine.describe()
        print(f"{described['processor']}, {described['cores']} cores; load {load_before}", flush=True)
        print(f"threads: {pools}", flush=True)
        print(", ".join(f"{name} {number}" for name, number in machine.versions().items()), flush=True)
        for case in (case for case in cases.ALL if case.name in chosen):
            at = time.perf_counter()
            print(f"\n{case.name}: {case.title}", flush=True)
            results.append(run_case(case, repeats, quick=options.quick).as_json())
            print(report.as_text(results[-1]), flush=True)
            print(f"  {results[-1]['repeats']} repeats, {time.perf_counter() - at:.0f} s", flush=True)
        if "scaling" in chosen:
            print("\nscaling: how the cost grows", flush=True)
            curves = [curve.as_json() for curve in scaling.curves(quick=options.quick)]
            for curve in curves:
                line = f"R² {curve['r_squared']:.4f}, the last doubling costs {curve['doubling']:.2f}×"
                print(f"  {curve['what']} against {curve['label']}: {line}", flush=True)
    return {
        "quick": options.quick,
        "threads": options.threads,
        "thread_pools": pools,
        "machine": described,
        "versions": machine.versions(),
        "load_before": load_before,
        "load_after": machine.load_average(),
        "seconds": time.perf_counter() - started,
        "results": results,
        "scaling": curves,
    }


def main() -> None:
    """Run what the command line asks for; a bar that is missed is printed, and no failure."""
    options = arguments()
    machine.fix_environment(options.threads)  # before PyTorch and NumPy are imported
    run = run_all(options)
    bars = [bar["met"] for result in run["results"] for bar in result["bars"]]
    print(f"\n{sum(met is True for met in bars)} of {len(bars)} bars met, {run['seconds']:.0f} s", flush=True)
    partial = options.quick or options.only
    output = options.output or (None if partial else DOCS)
    if output is not None:
        write(run, output)


if __name__ == "__main__":
    main()
