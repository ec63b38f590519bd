"""Compare the versions of Harmonium's dependencies that are installed with a shipped list of weak ones.

    python -m benchmarks.audit

It needs no network, and knows no more than the list: each line has a package, the first version that is mended, and
what was wrong. The list is as old as its first line says. Where there is a network, `pip-audit` asks the database of
today.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIST = Path(__file__).with_name("known_vulnerable.txt")


def as_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a version, without what follows them.

    >>> as_numbers("2.13.0+cpu")
    (2, 13, 0)
    """
    found = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, found[0].split("."))) if found else ()


def weak(lines: list[str], installed: dict[str, str]) -> list[str]:
    """Return a line for each installed version that lies before the one that is mended."""
    found = []
    for line in lines:
        name, mended, what = line.split(None, 2)
        there = installed.get(name)
        if there is not None and as_numbers(there) < as_numbers(mended):
            found.append(f"{name} {there}: {what}, mended in {mended}")
    return found


def main() -> None:
    """Print what is known of the installed versions."""
    head, *lines = [line for line in LIST.read_text().splitlines() if line.strip()]
    installed = {}
    for name in {line.split()[0] for line in lines}:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    found = weak(lines, installed)
    print("\n".join(found) or f"none of {len(installed)} packages is one of the versions listed as weak")
    print(f"{head.lstrip('# ')} What became known later is not in it: no database was asked.")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
