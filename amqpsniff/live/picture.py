"""The figures of one moment as rows of views, those that are wanted; a pause keeps them."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from amqpsniff.analysis.diagnosis import diagnosis_of
from amqpsniff.analysis.finding_tree import finding_row
from amqpsniff.analysis.selection import Selection, matches
from amqpsniff.analysis.verdict import Verdict
from amqpsniff.findings import SEVERITIES, Finding
from amqpsniff.live.figures import Figures
from amqpsniff.live.operations import Operations
from amqpsniff.live.watch import Watch
from amqpsniff.units import duration

Row = dict[str, Any]

MAX_NOTES = 3
NOTE_SECONDS = 60.0
"""Time for which a note on the capture is shown."""

_HANGING = 1e12
"""Added to the seconds of a connection that hangs, which sorts it before the busy ones."""

TICK_SECONDS = 1.0
"""How often rates are measured."""

FILTERS: dict[str, dict[str, tuple[str, ...]]] = {
    "clients": {"client": ("label", "client", "product"), "user": ("user",), "vhost": ("vhost",)},
    "exchanges": {"exchange": ("exchange",), "vhost": ("vhost",)},
    "keys": {"exchange": ("exchange",), "routing_key": ("routing_key",), "vhost": ("vhost",)},
    "queues": {"queue": ("queue",), "vhost": ("vhost",)},
    "findings": {"client": ("who", "client")},
}
"""Filters by name that rows of a view can fulfil: the columns of which one has to match."""

NAMED = tuple(dict.fromkeys(name for filters in FILTERS.values() for name in filters))
"""All of these filters."""

FINDING_COLUMNS = (
    "ts_ns", "severity", "code", "title", "detail", "connection_id", "capture", "client", "channel",
    "count", "packet_number", "cause_code",
)  # fmt: skip
"""Columns of findings that rows of their view have."""


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
        verdict: The verdict of `diagnose` on the capture so far.
        connection: The row of the connection on the screen; null when nothing is.
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
        watch: The run, whose census is `Figures`.
        selection: Filters that rows of views must fulfil, and the time zone of the verdict.
    """

    def __init__(self, watch: Watch, selection: Selection) -> None:
        self._watch = watch
        self._figures: Figures = watch.census
        self._filters = _by_name(selection)
        self._zone = selection.tz
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
        findings = [
            _finding(finding, figures.name_of(finding.connection_id)) for finding in watch.found
        ]
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
        return chosen(list(rows), self._filters.get(view, ""), expression=True)

    def _judge(self) -> Verdict:
        watch, figures = self._watch, self._figures
        connections = figures.open + figures.ended
        if not connections:
            return Verdict([])
        totals = replace(watch.pipeline.totals, connections=connections)
        clients = map(_introduced, figures.connections)
        return diagnosis_of(watch.found, totals, watch.introductions, clients, self._zone).verdict


def _introduced(row: Row) -> Row:
    names = {"client_product": row["product"], "connection_name": row["label"]}
    return {"connection_id": row["connection_id"], "user": row["user"], **names}


def _connection(row: Row) -> Row:
    """A connection with its sort key: those that hang come first. The row is not copied."""
    messages = row["published_per_s"] + row["delivered_per_s"]
    waits = row["hangs_s"]
    row["messages_per_s"] = messages
    row["urgency"] = messages if waits is None else _HANGING + waits
    row["waits"] = None if waits is None else f"{row['hangs']} {duration(waits * 1e9)}"
    return row


def _finding(finding: Finding, name: str | None) -> Row:
    row = finding_row(finding)
    subject = name or finding.client or finding.capture
    rank = SEVERITIES.index(finding.kind.severity)
    return {"who": subject, "rank": rank, **{name: row[name] for name in FINDING_COLUMNS}}


_EXPRESSION = re.compile(r"[=<>()]|\b(like|ilike|is|in|between|and|or|not)\b", re.IGNORECASE)


def chosen(rows: list[Row], query: str, *, expression: bool = False) -> list[Row]:
    """The rows that are wanted; raises FilterError for an expression that does not run.

    A text is looked for in all texts of a row, whatever the case; what looks like an SQL expression
    is evaluated over the columns.
    """
    if not query or not rows:
        return rows
    if not expression and not _EXPRESSION.search(query):
        return [row for row in rows if _has(row, query.lower())]
    return _evaluated(rows, query)


def _by_name(selection: Selection) -> dict[str, str]:
    """The filters by name as an SQL expression for each view that has their columns."""
    expressions = {}
    for view, filters in FILTERS.items():
        conditions = [
            f"({matches(columns, name, value)})"
            for name, columns in filters.items()
            if (value := getattr(selection, name)) is not None
        ]
        if view == "findings" and selection.errors:
            conditions.append("severity = 'error'")
        if conditions:
            expressions[view] = " AND ".join(conditions)
    return expressions


def _has(row: Row, part: str) -> bool:
    return any(isinstance(value, str) and part in value.lower() for value in row.values())


def _evaluated(rows: list[Row], expression: str) -> list[Row]:
    import pyarrow as pa

    from amqpsniff.tables.query import Filter

    columns = {name: [row.get(name) for row in rows] for name in rows[0]}
    place = "place"
    table = pa.RecordBatch.from_pydict(
        {name: _column(values) for name, values in columns.items()}
        | {place: pa.array(range(len(rows)), pa.int64())}
    )
    condition = Filter(table.schema, expression)
    try:
        return [rows[at] for at in condition.of(table).column(place).to_pylist()]
    finally:
        condition.close()


def _column(values: list[Any]) -> Any:
    import pyarrow as pa

    example = next((value for value in values if value is not None), None)
    kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
    kinds[type(None)] = pa.null()  # compares with numbers and with texts
    kind = kinds[type(example)]
    if kind == pa.int64() and any(isinstance(value, float) for value in values):
        kind = pa.float64()
    return pa.array(values, kind)
