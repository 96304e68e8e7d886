"""Progress of a run, from heartbeats of its tasks."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from .filesystem import Folder
from .task_io import RUNNING, TaskResult, TaskSpec


@dataclass
class RunProgress:
    """Progress of a run: `stage` is `files`, `plan`, `tasks`, `links` or `tables`.

    `bytes` are the finished bytes of all.

    In the stage `files`, `done` and `total` are files surveyed. In `tasks` they are tasks, and
    `files` of `total_files` were read by all their tasks. In `plan`, `why` is the way in which
    captures are read, and the reason.
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
    why: str = ""


class Progress:
    """Reports the progress of tasks: call `look` now and then."""

    def __init__(
        self,
        folder: Folder,
        specs: Sequence[TaskSpec],
        before: Iterable[TaskResult],
        notice: Callable[[RunProgress], None],
    ) -> None:
        self._folder = folder
        self._waiting = {spec.key: spec.task for spec in specs}
        self._readers = Counter(source.path for spec in specs for source in spec.task.sources)
        self._notice = notice
        octets = sum(spec.task.octets for spec in specs)
        self._step = RunProgress(
            "tasks", total=len(specs), total_bytes=octets, total_files=len(self._readers)
        )
        for name in folder.names(RUNNING):  # of a run that was killed
            folder.delete(name)
        for result in before:
            self._count(result.key, sum(result.rows.values()), len(result.found))

    def look(self) -> None:
        """Count finished tasks and the finished parts of others, and report them."""
        step = self._step
        parts = [0, 0]
        for name in self._folder.names(RUNNING):
            key = name.rpartition("/")[2].partition(".")[0]
            octets = (key in self._waiting and self._folder.read(name)) or b""
            with contextlib.suppress(ValueError):  # half written
                part, rows, findings = json.loads(octets)
                if part == 1:
                    self._count(key, rows, findings)
                else:
                    parts[0] += int(part * self._waiting[key].octets)
                    parts[1] += rows
        self._notice(replace(step, bytes=step.bytes + parts[0], rows=step.rows + parts[1]))

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
