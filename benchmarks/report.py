"""The table of a run, in words for the terminal and as `benchmarks.md`."""

from __future__ import annotations

from typing import Any

from benchmarks.runner import FLOOR, OURS

HEADER = ["case", "floor", "ours", "ours × floor", "peers × floor", "speed-up over peers", "bar", "met"]
HOW = """## How to run

    make bench

makes an environment of its own with the peers, runs every case and writes this page, `benchmarks.json` and the
pictures; it takes less than ten minutes on two cores. `make bench ARGS="--only cd1 --repeats 9"` runs one case and
only prints. Options: `--only CASE` (may be repeated), `--repeats N`, `--threads N`, `--quick` (tiny sizes, to see that
all runs), `--output FILE`.

Each repeat runs the floor, ours and the peers one after another; a figure is the median over the repeats, a ratio the
median of the ratios of each repeat, so that whatever slows the machine down for a while cancels. Before the clock
starts everyone does the same work once at tiny sizes. Everything is float32 on the CPU.
"""


def table(run: dict[str, Any]) -> list[list[str]]:
    """Return the rows of the table; several entries of a cell are separated by line feeds."""
    return [_row(result) for result in run["results"]]


def _row(result: dict[str, Any]) -> list[str]:
    unit, medians, times = result["unit"], result["medians"], result["times_floor"]
    others = [name for name in medians if name not in (FLOOR, OURS)]
    has_floor = FLOOR in medians
    return [
        f"`{result['case']}` {result['title']}",
        _amount(medians[FLOOR], unit) if has_floor else "–",
        _amount(medians[OURS], unit),
        f"{times[OURS]:.2f}" if has_floor else "–",
        "\n".join(
            f"{name} {times[name]:.2f}" if has_floor else f"{name} {_amount(medians[name], unit)}" for name in others
        )
        or "–",
        "\n".join(f"{name} {result['speed_up'][name]:.2f}×" for name in others if has_floor) or "–",
        "\n".join(bar["bar"] for bar in result["bars"]) or "–",
        "\n".join(_verdict(bar) for bar in result["bars"]) or "–",
    ]


def _amount(value: float, unit: str) -> str:
    return f"{value:,.3g} {unit}" if value < 100 else f"{value:,.0f} {unit}"


def _verdict(bar: dict[str, Any]) -> str:
    return {True: "yes", False: "no", None: "not run"}[bar["met"]] + (
        "" if bar["figure"] is None else f" ({bar['figure']:.2f})"
    )


def as_text(result: dict[str, Any]) -> str:
    """Return the figures of one case for the terminal."""
    medians, times = result["medians"], result["times_floor"]
    lines = []
    for name, value in medians.items():
        parts = [f"  {name:14s}{_amount(value, result['unit']):>12s}"]
        if times[name] is not None and name != FLOOR:
            parts.append(f"{times[name]:6.2f} × floor")
        if result["speed_up"].get(name) is not None and times[name] is not None:
            parts.append(f"ours is {result['speed_up'][name]:.2f}× faster")
        lines.append("   ".join(parts))
    lines += [f"  bar {bar['bar']}: {_verdict(bar)}" for bar in result["bars"]]
    return "\n".join(lines)


def as_markdown(run: dict[str, Any]) -> str:
    """Return the page."""
    rows = [HEADER, ["---"] * len(HEADER), *table(run)]
    lines = ["# Benchmarks", "", _preface(run), ""]
    lines += ["| " + " | ".join(cell.replace("\n", "<br>") for cell in row) + " |" for row in rows]
    lines += ["", "![Cost of every contender as a multiple of the floor](images/benchmarks.png)", ""]
    if run["scaling"]:
        lines += ["## How the cost grows", "", *_scaling(run["scaling"]), ""]
        lines += ["![Cost against size](images/scaling.png)", ""]
    lines += ["## What is timed, and what is not like for like", "", *_notes(run["results"]), ""]
    lines += ["## Machine and versions", "", *_machine(run), "", HOW.rstrip()]
    return "\n".join(lines) + "\n"


def _preface(run: dict[str, Any]) -> str:
    met = [bar["met"] for result in run["results"] for bar in result["bars"]]
    quick = " **Tiny sizes (`--quick`): the figures mean nothing.**" if run["quick"] else ""
    repeats = sorted({result["repeats"] for result in run["results"]})
    return (
        f"{sum(m is True for m in met)} of {len(met)} bars are met. Threads: {run['threads']}; medians of "
        f"{' or '.join(map(str, repeats))} repeats.{quick} The floor is what the work cannot do without, bare: its "
        "matrix products, in buffers that are there already, its convolutions, or the passes through its network."
    )


def _scaling(curves: list[dict[str, Any]]) -> list[str]:
    lines = ["| cost of | against | sizes | R² of a straight line | last doubling costs |", "|---|---|---|---|---|"]
    for curve in curves:
        sizes = f"{curve['sizes'][0]} … {curve['sizes'][-1]}"
        lines.append(
            f"| {curve['what']} | {curve['label']} | {sizes} | {curve['r_squared']:.4f} | {curve['doubling']:.2f}× |"
        )
    return lines


def _notes(results: list[dict[str, Any]]) -> list[str]:
    lines, said = [], {}
    for result in results:
        lines.append(
            f"- `{result['case']}`: **{result['title']}**" + (f" ({result['note']})" if result["note"] else "")
        )
        for name, note in result["notes"].items():
            first = said.setdefault((name, note), result["case"])
            lines.append(f"    - {name}: " + (note if first == result["case"] else f"as in `{first}`"))
    return lines


def _machine(run: dict[str, Any]) -> list[str]:
    machine = run["machine"]
    vector = f", {machine['vector']}" if machine["vector"] else ""
    return [
        f"- {machine['processor']}, {machine['cores']} cores{vector}, {machine['memory_gib']} GiB, {machine['system']}",
        f"- load before the run {run['load_before']}, after it {run['load_after']}; it took {run['seconds']:.0f} s",
        f"- threads: {', '.join(f'{name} {n}' for name, n in run['thread_pools'].items())}",
        f"- Harmonium's inner loops are {'compiled' if machine['compiled'] else 'left to PyTorch (no C compiler)'}",
        f"- Python {machine['python']}, " + ", ".join(f"{name} {number}" for name, number in run["versions"].items()),
    ]
