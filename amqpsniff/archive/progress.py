"""How far a run is: from the notes of tasks that are done, and from signs of those under way.

A sign is a small file beside the notes that a task writes now and then, where writing costs nothing
to speak of: on this machine. Elsewhere a task counts when it is done.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from amqpsniff.capture.formats import is_remote

from .places import Folder

if TYPE_CHECKING:
    from .output import Note, Order

NOTES = "_work/tasks"

RUNNING = "_work/running"

HEAD_BYTES = 64
"""Bytes within which the first line of a note ends, and a sign: two numbers."""

SIGN_SECONDS = 0.5
"""Time between two signs of a task."""


@dataclass
class Step:
    """Progress of a run: `stage` is `files`, `tasks` or `tables`. `bytes` are those done of all.

    Of the stage `files`, `done` and `total` are files surveyed; of `tasks` they are tasks, and
    `files` of `total_files` were read by all that read them.
    """

    stage: str
    done: int = 0
    total: int = 0
    bytes: int = 0
    total_bytes: int = 0
    rows: int = 0
    findings: int = 0
    files: int = 0
    total_files: int = 0


class Signs:
    """What a task that is under way says of itself; call it with packets read and rows made."""

    def __init__(self, folder: Folder, key: str, packets: int) -> None:
        self._folder = folder
        self._name = f"{RUNNING}/{key}.json"
        self._packets = packets
        self._next = time.monotonic() + SIGN_SECONDS
        self._wanted = packets > 0 and not is_remote(folder.name)
        self._given = False

    def __call__(self, packets: int, rows: int) -> None:
        """Leave a sign, when the last one is old."""
        if not self._wanted or time.monotonic() < self._next:
            return
        part = min(packets / self._packets, 1)
        self._folder.write(self._name, json.dumps([round(part, 4), rows]).encode())
        self._given = True
        self._next = time.monotonic() + SIGN_SECONDS

    def clear(self) -> None:
        """Take the sign away."""
        if self._given:
            self._folder.delete(self._name)


class Progress:
    """Tells how far the tasks are: `look` now and then."""

    def __init__(
        self,
        folder: Folder,
        orders: Sequence[Order],
        before: Iterable[Note],
        notice: Callable[[Step], None],
    ) -> None:
        self._folder = folder
        self._waiting = {order.key: order.task for order in orders}
        self._readers = Counter(one.path for order in orders for one in order.task.sources)
        self._notice = notice
        octets = sum(order.task.octets for order in orders)
        self._step = Step(
            "tasks", total=len(orders), total_bytes=octets, total_files=len(self._readers)
        )
        for name in folder.names(RUNNING):  # of a run that was killed
            folder.delete(name)
        for note in before:
            self._count(note.key, sum(note.rows.values()), len(note.found))

    def look(self) -> None:
        """Count the tasks that are done by now and what others have done so far, and say so."""
        for key, rows, findings in self._numbers(NOTES):
            self._count(key, int(rows), int(findings))
        step = replace(self._step)
        for key, part, rows in self._numbers(RUNNING):
            step.bytes += int(part * self._waiting[key].octets)
            step.rows += int(rows)
        self._notice(step)

    def _numbers(self, folder: str) -> list[tuple[str, float, float]]:
        """The two numbers in the first line of each file that is about a task not counted yet."""
        found = []
        for name in self._folder.names(folder):
            key = name.rpartition("/")[2].removesuffix(".json")
            if key not in self._waiting:
                continue
            octets = self._folder.read(name, HEAD_BYTES) or b""
            with contextlib.suppress(ValueError, TypeError):  # of one that will be written anew
                one, other = json.loads(octets.partition(b"\n")[0])
                found.append((key, one, other))
        return found

    def _count(self, key: str, rows: int, findings: int) -> None:
        task = self._waiting.pop(key, None)
        if task is None:
            return
        step = self._step
        step.done += 1
        step.bytes += task.octets
        step.rows += rows
        step.findings += findings
        for source in task.sources:
            self._readers[source.path] -= 1
            step.files += not self._readers[source.path]
