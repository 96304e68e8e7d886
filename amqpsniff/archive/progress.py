"""Progress of a run: from results of tasks that are done, and heartbeats of those under way."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from .filesystem import Folder
from .task_io import HEAD_BYTES, RESULTS, RUNNING, TaskResult, TaskSpec


@dataclass
class Step:
    """Progress of a run: `stage` is `files`, `plan`, `tasks`, `links` or `tables`.

    `bytes` are those done of all.

    Of the stage `files`, `done` and `total` are files surveyed; of `tasks` they are tasks, and
    `files` of `total_files` were read by all that read them. Of `plan`, `why` says how captures
    are read, and why so.
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
    """Tells how far the tasks are: `look` now and then."""

    def __init__(
        self,
        folder: Folder,
        specs: Sequence[TaskSpec],
        before: Iterable[TaskResult],
        notice: Callable[[Step], None],
    ) -> None:
        self._folder = folder
        self._waiting = {spec.key: spec.task for spec in specs}
        self._readers = Counter(one.path for spec in specs for one in spec.task.sources)
        self._notice = notice
        octets = sum(spec.task.octets for spec in specs)
        self._step = Step(
            "tasks", total=len(specs), total_bytes=octets, total_files=len(self._readers)
        )
        for name in folder.names(RUNNING):  # of a run that was killed
            folder.delete(name)
        for result in before:
            self._count(result.key, sum(result.rows.values()), len(result.found))

    def look(self) -> None:
        """Count the tasks that are done by now and what others have done so far, and say so."""
        for key, rows, findings in self._numbers(RESULTS):
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
            key = name.rpartition("/")[2].partition(".")[0]
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
