"""Groups of real processes for tests: each worker calls one function, and what they return comes back in order."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import distributed

SECONDS = 60.0


def run_group(world: int, function: Callable[..., Any], folder: Path, *arguments: Any) -> list[Any]:
    """Call `function(*arguments)` in so many processes that form a group; return what each returned.

    `function` is one of a module, so that the processes find it; an error of one of them is raised here.
    """
    context = multiprocessing.get_context("forkserver")
    # Imported once for all groups; the first before there is one, which its default arguments would keep to the end.
    context.set_forkserver_preload(["torch.distributed.nn", "harmonium.runs", "tests.learning.divided"])
    meeting = folder / f"meeting-{world}-{function.__name__}"
    pipes, processes = [], []
    for rank in range(world):
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, rank, world, str(meeting), function, arguments))
        process.start()
        theirs.close()  # so that a process that dies is an end of the pipe
        pipes.append(ours)
        processes.append(process)
    found = [_answer(pipe) for pipe in pipes]
    for process in processes:
        process.join()
    for succeeded, value in found:
        if not succeeded:
            raise RuntimeError(value)
    return [value for _, value in found]


def _answer(pipe: Connection) -> tuple[bool, Any]:
    try:
        return pipe.recv() if pipe.poll(2 * SECONDS) else (False, "no answer")
    except EOFError:
        return False, "a worker died"


def _work(
    pipe: Connection, rank: int, world: int, meeting: str, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world)}
    try:
        limit = timedelta(seconds=SECONDS)
        distributed.init_process_group("gloo", f"file://{meeting}", timeout=limit, rank=rank, world_size=world)
        answer = True, function(*arguments)
        distributed.destroy_process_group()
    except Exception:  # noqa: BLE001  (told to the test, whatever it is)
        answer = False, f"worker {rank} of {world}: {traceback.format_exc()}"
    pipe.send(answer)
