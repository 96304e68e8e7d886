"""Runs of a batch that are killed, each at another of the moments at which it touches its folder.

    python -m tests.archive.killed CAPTURES OUTPUT [links]

Run `N` is killed at the `N`th moment and started again; its folder is `OUTPUT/N`. The last one is
not killed: it has no such moment. A moment is before a file is begun, when all of it but its end
was written, when it has its name, and before and after a file is deleted. One of `STEP` is tried,
without AMQPSNIFF_THOROUGH.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from itertools import count
from typing import Any

from amqpsniff.archive.batch import Batch
from amqpsniff.archive.filesystem import Folder
from tests.thorough import THOROUGH

STEP = 1 if THOROUGH else 23
"""It has no factor in common with the moments of a file."""


def run(captures: str, output: str, moments: int, links: bool) -> bool:
    """Run a batch in a process of its own that is killed after so many moments; whether it was."""
    process = os.fork()
    if not process:
        _kill_after(moments)
        Batch([captures], output, task_bytes=4_000, links=links).run()
        os._exit(0)
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        return True
    if os.WEXITSTATUS(status):
        raise RuntimeError(f"a run failed: {output}")
    return False


def _kill_after(moments: int) -> None:
    left = [moments]

    def moment() -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    create, delete = Folder.create, Folder.delete

    @contextlib.contextmanager
    def created(self: Folder, name: str) -> Iterator[Any]:
        moment()
        with create(self, name) as file:
            yield file
            moment()
        moment()

    def deleted(self: Folder, name: str) -> None:
        moment()
        delete(self, name)
        moment()

    Folder.create, Folder.delete = created, deleted  # type: ignore[method-assign]


def main(captures: str, output: str, *links: str) -> None:
    """Kill one run after the other."""
    for number in count(1, STEP):
        there = f"{output}/{number}"
        if not run(captures, there, number, bool(links)):
            return
        run(captures, there, 0, bool(links))


if __name__ == "__main__":
    main(*sys.argv[1:])
