"""The command line: `harmonium train`, `sample`, `evaluate` and the rest. Adapters only."""

from harmonium.cli.entry import main

__all__ = ["main"]
