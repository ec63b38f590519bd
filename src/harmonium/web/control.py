"""Stop and resume: all that the page writes, and it writes it by the same ways as the command line."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field

from harmonium.runs import Run
from harmonium.runs.lock import is_locked
from harmonium.web.folder import Folder
from harmonium.web.limits import N_RESUMED
from harmonium.web.security import Refused

_LAST_WORDS = 2000


@dataclass
class Control:
    """Asks trainings to stop, and starts `harmonium resume` in processes of their own, which outlive the page."""

    folder: Folder
    failures: dict[str, str] = field(default_factory=dict, init=False)
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, init=False)

    def stop(self, name: str) -> str:
        """Ask the process that trains a run to save and end."""
        run = self.folder.open(name)
        if not is_locked(run.folder):
            raise Refused(409, "Nobody trains this run now: there is nothing to stop.")
        run.ask_to_stop()
        return "Asked to stop: it saves its state and ends within a moment."

    def resume(self, name: str) -> str:
        """Go on with a run."""
        run = self.folder.open(name)
        if not isinstance(run, Run):
            raise Refused(409, "This is an experiment. Go on with it on the command line: harmonium resume RUN.")
        self.folder.check_data(run)
        if is_locked(run.folder) or self._running(name):
            raise Refused(409, "This run is being trained already.")
        if run.finished:
            raise Refused(409, "This run is finished. To train it further: harmonium resume RUN --epochs N.")
        if sum(map(self._running, list(self._processes))) >= N_RESUMED:
            raise Refused(429, f"{N_RESUMED} runs are being trained from here already. Wait, or stop one.")
        self.failures.pop(name, None)
        run.clear_stop()
        place = [] if self.folder.data_dir is None else ["--data-dir", str(self.folder.data_dir)]
        process = subprocess.Popen(
            [sys.executable, "-m", "harmonium.cli", "resume", str(run.folder.resolve()), "--quiet", *place],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C at the server is not for it
        )
        self._processes[name] = process
        threading.Thread(target=self._listen, args=(name, process), daemon=True).start()
        return "It goes on from its last checkpoint."

    def _running(self, name: str) -> bool:
        process = self._processes.get(name)
        return process is not None and process.poll() is None

    def _listen(self, name: str, process: subprocess.Popen[bytes]) -> None:
        """Keep the last words of a process that failed; one that was stopped has not."""
        words = b""
        if process.stderr is not None:
            with process.stderr:
                for line in process.stderr:
                    words = (words + line)[-_LAST_WORDS:]
        if process.wait() not in (0, 130, 143):
            text = words.decode("utf-8", "replace").strip().splitlines()
            self.failures[name] = text[-1] if text else f"harmonium resume ended with code {process.returncode}."
