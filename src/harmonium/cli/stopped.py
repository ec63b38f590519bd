"""What is raised when a signal stops a command."""

from __future__ import annotations


class Stopped(Exception):  # noqa: N818  (not an error)
    """A signal asked to stop; the message says how to go on."""

    def __init__(self, signum: int, text: str = "Stopped.") -> None:
        super().__init__(text)
        self.signum = signum
