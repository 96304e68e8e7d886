"""One task of a plan: the engine over its files, for its conversations.

It reads files, or the packets that were dealt out to it. A task that reads files deals out packets
of other tasks in the same reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from amqpsniff.capture import CaptureSet
from amqpsniff.capture.packets import PacketBatch
from amqpsniff.errors import CaptureError
from amqpsniff.findings import Finding, Records
from amqpsniff.options import Options
from amqpsniff.pipeline import Pipeline, Totals, drain, run
from amqpsniff.session.event_logs import LinkLog, MessageLog
from amqpsniff.tcp.partition import Partition

from .dealing import Objects, Parts
from .filesystem import Opener
from .plan import Task


class TaskRun:
    """Reads a task: `batches` yields rows; the results for the whole task are here afterwards.

    `watch` is called now and then with the number of packets read or skipped. Events of rules that
    need the messages of all connections go to `sightings`; without it they are judged by the task's
    own messages. Link records go to `linkables`; without it the task links its own messages.
    `parts` are the packets that were dealt out to it, `objects` take those of other tasks.

    Attributes:
        totals: Counts of the reading.
        found: Findings about the task's own connections.
        records: Their contributions to findings about many.
        lost: Findings about files that became unreadable after the survey.
    """

    def __init__(
        self,
        task: Task,
        options: Options | None = None,
        tables: Sequence[str] = ("frames", "messages"),
        *,
        columns: Mapping[str, Sequence[str]] | None = None,
        encoded: bool = False,
        opener: Opener | None = None,
        watch: Callable[[int], None] = lambda packets: None,
        sightings: MessageLog | None = None,
        linkables: LinkLog | None = None,
        parts: Parts | None = None,
        objects: Objects | None = None,
    ) -> None:
        from amqpsniff.tables.batches import Maker

        self.task = task
        self.options = options or Options()
        self.tables = tuple(tables)
        self.totals = Totals()
        self.found: list[Finding] = []
        self.records = Records()
        self.lost: list[Finding] = []
        self._opener = opener
        self._watch = watch
        self._sightings = sightings
        self._linkables = linkables
        self._parts = parts
        self._objects = objects
        self._deal = (lambda batch: None) if objects is None else objects.feed
        self._skipped: dict[str, int] = {}
        self._makers = [
            Maker(table, encoded=encoded, columns=(columns or {}).get(table))
            for table in tables
            if table != "findings"
        ]

    def batches(self) -> Iterator[tuple[str, Any]]:
        """Record batches of the tables, as (table, batch), without findings: see `found`."""
        if self._objects is not None and self._objects.complete and not self.task.decodes:
            return
        try:
            packets = self._packets()
        except CaptureError as error:
            names = [source.path for source in self.task.sources]
            self.lost = [Finding("capture-unreadable", str(error), name) for name in names]
            return
        with packets:
            if self.task.decodes:
                yield from self._decoded(packets)
            else:
                for batch in packets:
                    self._deal(batch)
            self.lost = [
                finding for finding in packets.findings if finding.code == "capture-unreadable"
            ]
        if self._parts is not None:
            self.lost += self._parts.lost
        if self._objects is not None:
            self._objects.finish(to_end=not self.lost)

    def _packets(self) -> CaptureSet:
        """The captures to read; raises CaptureError without any."""
        if self._parts is None:
            names = [source.path for source in self.task.sources]
            self._skipped = dict(zip(names, self.task.skipped, strict=True))
            return CaptureSet(sorted(names), opener=self._opener)
        captures = self._parts.captures(self.task)
        self._skipped = {path: part.skipped_bytes for path, part in captures.items()}
        return self._parts.open(captures)

    def _decoded(self, packets: CaptureSet) -> Iterator[tuple[str, Any]]:
        from amqpsniff.tables.batches import plan_for

        marks = self.task.marks
        share = None
        if marks is not None:
            share = Partition(but=marks) if self.task.inverted else Partition(only=marks)
        plan = plan_for(
            self._makers, self.tables, share=share, records=True, sightings=self._sightings
        )
        if self._linkables is not None:
            plan = replace(plan, links=True, linkables=self._linkables)
        pipeline = Pipeline(self.options, plan)
        self.totals = pipeline.totals
        pipeline.reassembler.expect(source.path for source in self.task.sources)

        def before(batch: PacketBatch) -> None:
            pipeline.reassembler.skip(self._skipped.pop(batch.capture, 0))
            self._deal(batch)
            self._watch(pipeline.totals.packets)

        yield from drain(run(packets, pipeline, before), pipeline, self._makers)
        self.found = pipeline.findings()
        # out of the engine, whose parts know each other: it is not freed before Python looks
        self.records, pipeline.log.recorded = pipeline.log.recorded or self.records, None
