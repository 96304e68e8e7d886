"""The data of a report, collected from batches of all tables in bounded memory.

Numbers over time are kept in `amqpsniff.analysis.buckets`, names in a `Topology`, rows of
connections and channels in `TopRows`. An outstanding message counts only if it certainly waited; a
message without a settlement ends with its channel, or with its connection.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis import row_times
from amqpsniff.analysis.buckets import Counts, Delays, Levels, Steps
from amqpsniff.analysis.clients import Clients, Introductions
from amqpsniff.analysis.counting import integers
from amqpsniff.analysis.diagnosis import Diagnosis, WantedFindings
from amqpsniff.analysis.finding_tree import findings_of
from amqpsniff.analysis.quality import flaws
from amqpsniff.analysis.selection import RowFilter, Selection, no_connection
from amqpsniff.analysis.top_rows import (
    CHANNEL_COLUMNS,
    CONNECTION_COLUMNS,
    MAX_CHANNELS,
    MAX_CONNECTIONS,
    Row,
    TopRows,
    channel_weights,
    connection_weights,
)
from amqpsniff.analysis.topology import (
    FRAME_COLUMNS,
    LINK_COLUMNS,
    MESSAGE_COLUMNS,
    Topology,
)
from amqpsniff.null import NULL
from amqpsniff.session.table_rows import Rows
from amqpsniff.spec import SIDES
from amqpsniff.tables.values import WORDS, numbers_of, rows_of, texts_of, values

if TYPE_CHECKING:
    from amqpsniff.analysis.selection import Started
    from amqpsniff.analysis.summary import Summary
    from amqpsniff.findings import Finding
    from amqpsniff.pipeline import Totals

TOP = 100
"""Names of each kind in the tables of a report."""

MAX_OPEN = 50_000
"""Channels whose unsettled messages are remembered after their end."""

ENDS_OF = {
    "unacked": ("unsettled_end", "delivered"), "unconfirmed": ("unconfirmed_end", "published"),
}  # fmt: skip
"""Columns of channels by level: how many waited at the end, and how many there were in all."""

_ENDS = ("connection_id", "client", "server")

Place = tuple[str, int]
"""A connection's id and the number of a channel."""

FINDING_COLUMNS = (
    "capture", "packet_number", "ts_ns", "connection_id", "client", "server", "channel", "code",
    "severity", "detail", "count", "last_packet_number", "confidence", "cause_code",
    "cause_packet_number",
)  # fmt: skip
"""Columns in which findings of one code differ; the rest is in the catalogue."""

COLUMNS = {
    "frames": (*FRAME_COLUMNS, "sender", "frame_type", "size", "response_ns"),
    "messages": (*MESSAGE_COLUMNS, "outcome", "outcome_ns"),
    "connections": CONNECTION_COLUMNS,
    "channels": CHANNEL_COLUMNS,
    "links": LINK_COLUMNS,
    "findings": FINDING_COLUMNS,
}


class ReportData:
    """Collects the data of a report: `add` batches, then `finish`.

    Args:
        selection: The part of the time to show.
        named: Connections to show, named as in `Selection.connection`.
        started: Returns the time at which the capture began.
        wanted: The filter of findings; None for all.

    Attributes:
        summary: The summary, with `TOP` rows of each section, once it is finished.
        totals: Counts of the pass, once it is finished.
        diagnosis: The findings and the verdict on them, once it is finished.
        start_ns: Time of the first packet, or None.
        zone: The time zone of times of day; None for UTC.
        introductions: Gets the connections that end.
        topology: The `Topology` so far.
        connections, channels: Rows that were kept, and numbers by kind of end.
        named: Rows of the connections that were named, by the name.
        rates, levels: `Counts` and `Levels` by name.
        uncounted: Channels with unknown numbers of waiting messages, by level.
        abandoned: Messages that waited when their channel or connection ended, by level.
        delays: `Delays` by kind: confirm, ack, reply.
        spans: First and last time of connections in nanoseconds, by capture.
    """

    summary: Summary
    totals: Totals
    diagnosis: Diagnosis

    def __init__(
        self,
        selection: Selection,
        named: Sequence[str],
        started: Started,
        wanted: WantedFindings | None = None,
    ) -> None:
        self._wanted = wanted or WantedFindings()
        self.start_ns: int | None = None
        self.zone = selection.tz
        self.introductions = Introductions()
        self._found: list[Finding] = []
        self.topology = Topology()
        self.connections = TopRows(MAX_CONNECTIONS, connection_weights, CONNECTION_COLUMNS)
        self.channels = TopRows(MAX_CHANNELS, channel_weights, CHANNEL_COLUMNS)
        self.named: dict[str, list[Row]] = {name: [] for name in named}
        self.steps = Steps()
        self.rates = {
            name: Counts(self.steps)
            for name in ("published", "delivered", "confirmed", "acked", "client", "server")
        }
        self.levels = {
            name: Levels(self.steps) for name in ("unconfirmed", "unacked", "connections")
        }
        self.delays = {name: Delays(self.steps) for name in ("confirm", "ack", "reply")}
        self.spans: dict[str | None, tuple[int, int]] = {}
        self.uncounted: Counter[str] = Counter()
        self.abandoned: Counter[str] = Counter()
        self._midstream: Counter[str | None] = Counter()
        self._outstanding: dict[str, Counter[Place]] = {
            "unacked": Counter(),
            "unconfirmed": Counter(),
        }
        self._ended: dict[str, int] = {}
        self._closed: list[tuple[Place, int, dict[str, int | None]]] = []
        self._is_whole = not selection.chooses()
        self._filters = {table: RowFilter(selection, table, started) for table in COLUMNS}
        self.columns = {table: rows.columns for table, rows in self._filters.items()}
        self._choices = {name: Selection(connection=name).matches_connection() for name in named}
        self._takers: dict[str, Callable[[Any], None]] = {
            "frames": self._frames,
            "messages": self._messages,
            "connections": lambda batch: self._connections(_plain(batch)),
            "channels": lambda batch: self._channels(_plain(batch)),
            "links": lambda batch: self.topology.add_links(rows_of(batch)),
            "findings": lambda batch: self._found.extend(findings_of(batch)),
        }

    def add(self, table: str, batch: Any) -> None:
        """Take the chosen rows of a batch of one of the tables, with `COLUMNS` at least."""
        self._takers[table](self._filters[table].of(batch))

    def finish(self, summary: Summary, totals: Totals, findings: Sequence[Finding]) -> None:
        """Take the results at the end of the pass.

        Raises UsageError for a named connection that does not exist.
        """
        self.topology.count_rows()
        self._settle_rest()
        if self._is_whole:
            self._found = list(findings)
        found = self._wanted.of(self._found)
        self.summary, self.totals, self.start_ns = summary, totals, totals.span[0]
        codes = [finding.code for finding in findings]
        self.diagnosis = Diagnosis(
            found,
            totals.packets,
            totals.connections,
            summary["quality"],
            flaws(summary["quality"], codes),
            len(codes),
            Clients(self.introductions.rows({finding.connection_id for finding in found})),
            self.start_ns,
            self.zone,
        )
        for name, rows in self.named.items():
            if not rows and self.connections.number:
                raise no_connection(name, self.connections.number)

    @property
    def missed(self) -> bool:
        """True if there is AMQP, but nothing in the chosen part."""
        numbers = (self._filters[table].matched for table in ("frames", "messages", "findings"))
        return not self._is_whole and bool(self.totals.connections) and not any(numbers)

    def add_rows(self, frames: Any, messages: Any, connections: list[Any], *_: Any) -> None:
        """Take the rows of a pipeline without Arrow, whose import takes long."""
        self.topology.add_rows(frames, messages, connections)
        self._count_frames(frames.rows, _numbers(frames, row_times.FRAME_COLUMNS))
        ids = [connection[0] for connection in connections]
        self._count_messages(messages.rows, _numbers(messages, row_times.MESSAGE_COLUMNS), ids)

    def add_records(self, records: dict[str, Any]) -> None:
        """Take a pipeline's rows of connections, channels and links."""
        self.topology.add_records(records)
        self._connections(records["connections"])
        self._channels(records["channels"])

    def _frames(self, batch: Any) -> None:
        self.topology.add_frames(batch)
        columns = _arrow_buffers(batch, row_times.FRAME_COLUMNS)
        self._count_frames(batch.num_rows, columns)

    def _count_frames(self, rows: int, columns: Iterable[Any]) -> None:
        *sides, replies = row_times.frame_times(rows, *columns)
        for side, (times, octets) in zip(SIDES, sides, strict=True):
            self.rates[side].add(times, octets)
        self.delays["reply"].add(*replies)

    def _messages(self, batch: Any) -> None:
        self.topology.add_messages(batch)
        columns = _arrow_buffers(batch, row_times.MESSAGE_COLUMNS)
        ids = texts_of(batch.column("connection_id")) or []
        self._count_messages(batch.num_rows, columns, ids)

    def _count_messages(self, rows: int, columns: Iterable[Any], ids: Sequence[str]) -> None:
        """Count sent messages, and begins and ends of waits; remember waits without an end."""
        kinds = (
            ("published", "confirmed", "confirm", "unconfirmed"),
            ("delivered", "acked", "ack", "unacked"),
        )
        counted = row_times.message_times(rows, *columns)
        for (event, outcome, delay, level), (times, done, *waited, outstanding) in zip(
            kinds, counted, strict=True
        ):
            self.rates[event].add(times)
            self.rates[outcome].add(done[0])
            self.delays[delay].add(*done)
            self.levels[level].add(*waited)
            waiting = self._outstanding[level]
            for (connection, channel), number in outstanding.items():
                place = ids[connection], channel
                if place in waiting or len(waiting) < MAX_OPEN:
                    waiting[place] += number

    def _connections(self, rows: Rows) -> None:
        self.connections.add(rows)
        for name, matches in self._choices.items():
            found = self.named[name]
            if matches is None or len(found) >= TOP:
                continue
            for row in rows:
                if len(found) < TOP and matches(*(row[end] or "" for end in _ENDS)):
                    found.append({column: row[column] for column in CONNECTION_COLUMNS})
        begun, ended = array("q"), array("q")
        names = "connection_id", "capture", "start_ns", "end_ns", "midstream", "closed_by"
        spans: dict[str | None, list[int]] = {}
        for connection_id, capture, start_ns, end_ns, midstream, closed_by in zip(
            *map(rows.column, names), strict=True
        ):
            if start_ns is None:
                continue
            spans.setdefault(capture, []).extend((start_ns, end_ns or start_ns))
            if midstream:
                self._midstream[capture] += 1
            else:
                begun.append(start_ns)
            if closed_by is not None and end_ns is not None:
                ended.append(end_ns)
                if len(self._ended) < MAX_OPEN:
                    self._ended[connection_id] = end_ns
        for capture, times in spans.items():
            times.extend(self.spans.get(capture, ()))
            self.spans[capture] = min(times), max(times)
        self.levels["connections"].add(begun, ended)

    def _channels(self, rows: Rows) -> None:
        self.channels.add(rows)
        names = "connection_id", "channel", "end_ns", "closed_by", *chain(*ENDS_OF.values())
        for connection_id, channel, end_ns, closed_by, *counts in zip(
            *map(rows.column, names), strict=True
        ):
            unsettled = {
                level: end
                for level, end, number in zip(ENDS_OF, counts[::2], counts[1::2], strict=True)
                if number and end != 0
            }
            if not unsettled:
                continue
            self.uncounted.update(level for level, number in unsettled.items() if number is None)
            ended = end_ns is not None and closed_by is not None
            if ended and len(self._closed) < MAX_OPEN:
                self._closed.append(((connection_id, channel), end_ns, unsettled))

    def _settle_rest(self) -> None:
        """End the wait of messages whose channel or connection ended.

        Connections that began before their capture were open from its beginning on.
        """
        for span in self.spans.values():
            self.steps.cover(*span)
        for capture, number in self._midstream.items():
            self.levels["connections"].put(self.spans[capture][0], number)
        for level, places in self._outstanding.items():
            closed = [(place, end_ns, ends[level]) for place, end_ns, ends in self._closed
                      if level in ends]  # fmt: skip
            for place, end_ns, over in sorted(closed, key=lambda row: row[2] is None):
                self._drop(level, place, end_ns, over)
            for place in places:
                if place[0] in self._ended:
                    self._drop(level, place, self._ended[place[0]], None)

    def _drop(self, level: str, place: Place, end_ns: int, number: int | None) -> None:
        """End the wait of this number of messages; None for all of them."""
        waiting = self._outstanding[level].get(place, 0)
        number = waiting if number is None else min(number, waiting)
        if number > 0:
            self._outstanding[level][place] -= number
            self.abandoned[level] += number
            self.levels[level].put(end_ns, -number)


def _numbers(rows: Any, names: Iterable[str]) -> list[Any]:
    """The numbers of columns of the decoder."""
    return [numbers_of(rows, name) for name in names]


def _plain(batch: Any) -> Rows:
    """The rows of an encoded batch, in the form of those of a pipeline."""
    names = batch.schema.names
    return Rows(names, list(zip(*(values(batch, name) for name in names), strict=True)))


def _arrow_buffers(batch: Any, names: Iterable[str]) -> list[Any]:
    """The columns of an encoded batch, whose codes may differ from those of the decoder."""
    columns = []
    for name in names:
        column = batch.column(name)
        texts = texts_of(column)
        numbers = integers(column, NULL if texts is None else -1)
        if texts is not None and name in WORDS:
            places = [*map(WORDS[name].index, texts), -1]
            numbers = array("i", map(places.__getitem__, numbers))
        columns.append(numbers)
    return columns
