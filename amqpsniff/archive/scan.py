"""Tasks of one read of captures that need the results of all, without a second stage.

A data source has partitions, and no stage after them. So a partition does its task, and keeps what
came of it in a folder that all workers see; who needs all results does the tasks that nobody does,
and waits for those under way. So a read ends on any number of cores, and its work is on all of
them. A task under way renews a file (`BEATS`). When that does not change for `DEAD_SECONDS`, its
worker is taken for dead, and the task is done again: files have the same names and contents.

    SCRATCH/tasks               what the tasks read
    SCRATCH/beats, done         tasks under way and those that are done, by their keys
    SCRATCH/_work, messages     what tasks leave, as in the folder of a batch
"""

from __future__ import annotations

import marshal
import threading
import time
import uuid
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, replace
from functools import partial

from amqpsniff.errors import OutputError
from amqpsniff.findings import Finding

from .filesystem import Folder
from .linking import FOLDER as LINKS
from .linking import Joining, join, link_all, links_name
from .merging import merge_findings
from .plan import Source, Task
from .survey import Surveyed
from .task_io import RESULTS, TaskResult, TaskSpec, carry_out

TASKS, BEATS, DONE = "tasks", "beats", "done"

BEAT_SECONDS = 5.0
"""Time after which the file of a task under way is renewed."""

DEAD_SECONDS = 60.0
"""Time without a change after which its worker is taken for dead."""

LOOK_SECONDS = 0.25
"""Time between two looks at tasks of others."""


@dataclass
class Scan:
    """The tasks of a read: `order` is what all of them have in common, its `output` the folder."""

    order: TaskSpec

    @property
    def folder(self) -> Folder:
        """The folder that all workers see."""
        return Folder(self.order.output, self.order.storage)

    def begin(self, tasks: Sequence[Task]) -> None:
        """Write down what tasks read, but nothing that opens TLS."""
        plain = [
            (
                [astuple(source) for source in one.sources],
                None if one.marks is None else one.marks.tobytes(),
                (one.inverted, one.octets, one.read_bytes, one.packets),
            )
            for one in tasks
        ]
        self.folder.write(TASKS, marshal.dumps(plain))

    def findings(self, number: int, files: Sequence[Surveyed]) -> list[Finding] | None:
        """Do a task; where it is the last one, give the findings of all, else None."""
        specs, folder = self._specs(), self.folder
        last = number == len(specs) - 1
        works = {spec.key: partial(carry_out, spec) for spec in specs}
        if specs:
            own = specs[number].key
            do_together(folder, works if last else {own: works[own]}, own)
        return merge_findings(self._results(specs), files, folder) if last else None

    def messages(self, number: int) -> list[str]:
        """Do a task, and link the messages of all; the files of the task's."""
        specs, folder = self._specs(), self.folder
        works = {spec.key: partial(carry_out, spec) for spec in specs}
        do_together(folder, works, specs[number].key)
        do_together(folder, {"links": partial(self._link, specs)}, "links")
        (result,) = self._results(specs[number : number + 1])
        linked = "linked" if links_name(result.key) in folder.names(LINKS) else ""
        place = (self.order.output, self.order.storage, result.key, linked)
        joining = Joining(*place, result.files.get("messages", ()))
        join(joining)
        return joining.targets

    def _link(self, specs: Sequence[TaskSpec]) -> None:
        captures = sorted({source.path for spec in specs for source in spec.task.sources})
        results = self._results(specs)
        files = {one.key: one.linkable for one in results if one.linkable is not None}
        link_all(files, self.folder, captures, "")

    def _specs(self) -> list[TaskSpec]:
        specs: list[TaskSpec] = []
        for sources, marks, facts in marshal.loads(self.folder.read(TASKS) or b""):  # noqa: S302
            own = None if marks is None else array("q", marks)
            task = Task([Source(*one) for one in sources], own, *facts)
            specs.append(replace(self.order, task=task, key=f"{len(specs):06d}"))
        return specs

    def _results(self, specs: Sequence[TaskSpec]) -> list[TaskResult]:
        places = [f"{RESULTS}/{spec.key}.result" for spec in specs]
        return [TaskResult.from_bytes(self.folder.read(place) or b"") for place in places]


def do_together(folder: Folder, works: Mapping[str, Callable[[], object]], first: str) -> None:
    """Have some work done, of which others do some at the same time: `first` and what comes behind
    it, then the rest.
    """
    keys = [*works]
    at = keys.index(first)
    left = dict.fromkeys([*keys[at:], *keys[:at]])
    seen: dict[str, tuple[bytes | None, float]] = {}
    while True:
        for name in folder.names(DONE):
            left.pop(name.rpartition("/")[2], None)
        if not left:
            return
        idle = next((key for key in left if _is_idle(folder, key, seen)), None)
        if idle is None:
            time.sleep(LOOK_SECONDS)
            continue
        with _beating(folder, idle):
            works[idle]()
        folder.write(f"{DONE}/{idle}", b"")


def _is_idle(folder: Folder, key: str, seen: dict[str, tuple[bytes | None, float]]) -> bool:
    """True if nobody does it; `seen` is what its file said, and since when it says so."""
    beat = folder.read(f"{BEATS}/{key}")
    known, since = seen.get(key, (None, 0.0))
    if beat is None:
        return True
    if beat != known:
        seen[key] = beat, time.monotonic()
        return False
    return time.monotonic() - since > DEAD_SECONDS


@contextmanager
def _beating(folder: Folder, key: str) -> Iterator[None]:
    """Renew the file of a task meanwhile; one that failed is nobody's again."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(BEAT_SECONDS):
            with suppress(OSError, OutputError):  # the task says it
                folder.write(f"{BEATS}/{key}", uuid.uuid4().bytes)

    folder.write(f"{BEATS}/{key}", uuid.uuid4().bytes)
    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    failed = True
    try:
        yield
        failed = False
    finally:
        over.set()
        thread.join()
        if failed:
            folder.delete(f"{BEATS}/{key}")
