"""Tasks of one read of captures that need the results of all, without a second stage.

A data source has partitions, and no stage after them. So a partition does its task, and stores the
result in a folder that all workers see. A partition that needs all results does the tasks that no
other does, and waits for running ones. So a read ends on any number of cores, and its work is on
all of them. A running task has a lock (`lock`). If its worker dies, the task is done again: files
have the same names and contents.

    SCRATCH/tasks               the input of tasks
    SCRATCH/turns, done         running and finished tasks, by their keys
    SCRATCH/_work, messages     the output of tasks, as in the folder of a batch
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial

from amqpsniff.findings import Finding

from .encoding import pack, unpack
from .filesystem import Folder
from .linking import FOLDER as LINKS
from .linking import Joining, join, link_all, links_name
from .lock import FolderLock, Locked
from .merging import merge_findings
from .plan import SourceFile, Task
from .surveys import Surveyed
from .task_io import RESULTS, TaskResult, TaskSpec, carry_out

TASKS, TURNS, DONE = "tasks", "turns", "done"

LOOK_SECONDS = 0.5
"""Time between two looks at tasks of others."""


@dataclass
class Scan:
    """The tasks of a read: `order` is what all of them have in common, with the folder that all
    workers see.
    """

    order: TaskSpec

    def begin(self, tasks: Sequence[Task]) -> None:
        """Write down what tasks read, but nothing that opens TLS."""
        self.order.folder.write(TASKS, pack({"tasks": [astuple(task) for task in tasks]}))

    def findings(self, number: int, files: Sequence[Surveyed]) -> list[Finding] | None:
        """Do a task; where it is the last one, give the findings of all, else None."""
        specs, folder = self._specs(), self.order.folder
        last = number == len(specs) - 1
        works = {spec.key: partial(carry_out, spec) for spec in specs}
        if specs:
            own = specs[number].key
            do_together(folder, works if last else {own: works[own]}, own)
        return merge_findings(self._results(specs), files, folder) if last else None

    def messages(self, number: int) -> list[str]:
        """Do a task, and link the messages of all; the files of the task's."""
        specs, folder = self._specs(), self.order.folder
        works = {spec.key: partial(carry_out, spec) for spec in specs}
        do_together(folder, works, specs[number].key)
        do_together(folder, {"links": partial(self._link, specs)}, "links")
        (result,) = self._results(specs[number : number + 1])
        linked = "linked" if links_name(result.key) in folder.names(LINKS) else ""
        joining = Joining(folder, result.key, linked, result.files.get("messages", ()))
        join(joining)
        return joining.targets

    def _link(self, specs: Sequence[TaskSpec]) -> None:
        captures = sorted({source.path for spec in specs for source in spec.task.sources})
        results = self._results(specs)
        files = {result.key: result.linkable for result in results if result.linkable is not None}
        link_all(files, self.order.folder, captures, "")

    def _specs(self) -> list[TaskSpec]:
        specs: list[TaskSpec] = []
        for sources, skipped, marks, *facts in unpack(self.order.folder.read(TASKS))["tasks"]:
            own = None if marks is None else array("q", marks)
            task = Task(
                [SourceFile(*source) for source in sources], array("q", skipped), own, *facts
            )
            specs.append(replace(self.order, task=task, key=f"{len(specs):06d}"))
        return specs

    def _results(self, specs: Sequence[TaskSpec]) -> list[TaskResult]:
        places = [f"{RESULTS}/{spec.key}.result" for spec in specs]
        return [TaskResult.from_bytes(self.order.folder.read(place)) for place in places]


def do_together(folder: Folder, works: Mapping[str, Callable[[], object]], first: str) -> None:
    """Do all works that no other process does: `first` and those after it, then the others.

    Other processes do some of them at the same time.
    """
    keys = [*works]
    at = keys.index(first)
    remaining = dict.fromkeys([*keys[at:], *keys[:at]])
    while True:
        for name in folder.names(DONE):
            remaining.pop(name.rpartition("/")[2], None)
        if not remaining:
            return
        if not any(_do_unless_taken(folder, key, works[key]) for key in remaining):
            time.sleep(LOOK_SECONDS)


def _do_unless_taken(folder: Folder, key: str, work: Callable[[], object]) -> bool:
    """Do some work, unless another worker does."""
    lock = FolderLock(folder, f"{TURNS}/{key}")
    if lock.is_taken():
        return False
    try:
        lock.acquire()
    except Locked:
        return False
    try:
        if folder.read(f"{DONE}/{key}") is None:
            work()
            folder.write(f"{DONE}/{key}", b"")
    finally:
        lock.release()
    return True
