"""The figures of one moment, as the dashboard shows them; a pause keeps them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.diagnosis import diagnosis_of
from amqpsniff.analysis.verdict import Verdict
from amqpsniff.findings import SEVERITIES
from amqpsniff.live.operations import Operations
from amqpsniff.units import duration

from ..output import settings
from .views import chosen

if TYPE_CHECKING:
    from amqpsniff.live.figures import Figures
    from amqpsniff.live.watch import Watch

Row = dict[str, Any]

MAX_NOTES = 3
NOTE_SECONDS = 60.0
"""How long a note on the capture is shown."""

_HANGING = 1e12
"""Added to the seconds of a connection that hangs, which sorts it before the busy ones."""

TICK_SECONDS = 1.0
"""How often rates are measured."""


@dataclass
class Picture:
    """The state of the traffic at one moment.

    Attributes:
        capture: What is captured.
        seconds: Since the run began.
        packets: Packets taken.
        dropped: Packets that the kernel dropped; None for files and pipes.
        written: Bytes of the file that packets go to; null for none.
        trouble: Why packets are not written any more; empty while they are.
        open, ended: Connections.
        totals: Rates and latencies over all connections.
        methods: Frames per second by method, the most frequent first.
        connections, exchanges, keys, queues, findings, operations: Rows of the views.
        severities: Findings by severity.
        notes: What happened to the capture, the latest last.
        verdict: What `diagnose` says of all that was captured so far.
        connection: All that is known of the connection that is looked at; null when nothing is.
        channels: Its open channels.
    """

    capture: str
    seconds: float
    packets: int
    dropped: int | None
    written: int | None
    trouble: str
    open: int
    ended: int
    totals: Row
    methods: dict[str, float]
    connections: list[Row]
    exchanges: list[Row]
    keys: list[Row]
    queues: list[Row]
    findings: list[Row]
    operations: list[Row]
    severities: Counter[str]
    notes: list[str]
    verdict: Verdict
    channels: list[Row]
    connection: Row | None


class Pictures:
    """Takes pictures of a run; it began when this was made.

    Args:
        watch, figures: The run and its figures.
        wanted: Expressions that rows of views must fulfil, by view.
    """

    def __init__(self, watch: Watch, figures: Figures, wanted: Mapping[str, str]) -> None:
        self._watch = watch
        self._figures = figures
        self._wanted = wanted
        self._began = time.monotonic()
        self._notes: list[tuple[float, str]] = []
        self._ticked = 0.0
        self.operations = Operations()
        self._verdict = Verdict([])

    def note(self, text: str) -> None:
        """Remember what happened to the capture."""
        self._notes = [*self._notes, (time.monotonic(), text)][-MAX_NOTES:]

    def take(self, connection: str | None) -> Picture:
        """Present figures, with the channels of one connection."""
        watch, figures = self._watch, self._figures
        now = time.monotonic()
        if now - self._ticked >= TICK_SECONDS:
            self._ticked = now
            figures.tick(watch.quiet_ns())
            self.operations.tick(now)
            self._verdict = self._judge()
        statistics = watch.source.statistics()
        writer = watch.writer
        findings = [_finding(one, figures.name_of(one.connection_id)) for one in watch.found]
        return Picture(
            capture=watch.source.capture,
            seconds=now - self._began,
            packets=watch.source.packets,
            dropped=None if statistics is None else statistics.dropped_by_system or 0,
            written=None if writer is None else writer.octets,
            trouble="" if writer is None else writer.trouble or "",
            open=figures.open,
            ended=figures.ended,
            totals=figures.totals(),
            methods=figures.methods,
            connections=self._chosen("clients", map(_connection, figures.connections)),
            exchanges=self._chosen("exchanges", figures.exchanges),
            keys=self._chosen("keys", figures.keys),
            queues=self._chosen("queues", figures.queues),
            findings=self._chosen("findings", findings),
            operations=self._chosen("operations", self.operations.rows),
            severities=watch.severities(),
            notes=[text for at, text in self._notes if now - at < NOTE_SECONDS],
            verdict=self._verdict,
            channels=[] if connection is None else figures.channels_of(connection),
            connection=None if connection is None else figures.connection(connection),
        )

    def _chosen(self, view: str, rows: Iterable[Row]) -> list[Row]:
        return chosen(list(rows), self._wanted.get(view, ""), expression=True)

    def _judge(self) -> Verdict:
        watch, figures = self._watch, self._figures
        connections = figures.open + figures.ended
        if not connections:
            return Verdict([])
        totals = replace(watch.pipeline.totals, connections=connections)
        named = map(_introduced, figures.connections)
        return diagnosis_of(watch.found, totals, watch.introductions, named, settings.zone).verdict


def _introduced(row: Row) -> Row:
    said = {"client_product": row["product"], "connection_name": row["label"]}
    return {"connection_id": row["connection_id"], "user": row["user"], **said}


def _connection(row: Row) -> Row:
    """A connection with its sort key: those that hang come first. The row is not copied."""
    messages = row["published_per_s"] + row["delivered_per_s"]
    waits = row["hangs_s"]
    row["messages_per_s"] = messages
    row["urgency"] = messages if waits is None else _HANGING + waits
    row["waits"] = None if waits is None else f"{row['hangs']} {duration(waits * 1e9)}"
    return row


def _finding(one: Any, name: str | None) -> Row:
    return {
        "who": name or one.client or one.capture,
        "ts_ns": one.ts_ns,
        "severity": one.kind.severity,
        "rank": SEVERITIES.index(one.kind.severity),
        "code": one.code,
        "title": one.kind.title,
        "detail": one.detail,
        "connection_id": one.connection_id,
        "capture": one.capture,
        "client": one.client,
        "channel": one.channel,
        "count": one.count,
        "packet_number": one.packet_number,
        "cause_code": one.cause_code,
    }
