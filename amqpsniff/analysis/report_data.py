"""The data of a report, collected from batches of all tables in memory that does not grow.

Numbers over time are kept in `amqpsniff.analysis.buckets`, names in a `Topology`, rows of
connections and channels in `TopRows`. Of what is outstanding only what is known to have waited
counts; what was never settled ends with its channel, or with its connection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.buckets import Counts, Delays, Levels, Steps
from amqpsniff.analysis.clients import Clients, Introductions
from amqpsniff.analysis.counting import is_one_of
from amqpsniff.analysis.diagnosis import Diagnosis
from amqpsniff.analysis.finding_tree import finding_rows, in_order
from amqpsniff.analysis.quality import flaws
from amqpsniff.analysis.selection import RowFilter, Selection, no_connection
from amqpsniff.analysis.top_rows import (
    CHANNEL_COLUMNS,
    CONNECTION_COLUMNS,
    MAX_CHANNELS,
    MAX_CONNECTIONS,
    Row,
    TopRows,
    channel_weight,
    connection_weight,
)
from amqpsniff.analysis.topology import (
    FRAME_COLUMNS,
    MESSAGE_COLUMNS,
    Topology,
)
from amqpsniff.spec import DELIVERIES, FRAME_OVERHEAD_BYTES, PUBLISHES, SIDES
from amqpsniff.tables.values import rows_of, values

if TYPE_CHECKING:
    from amqpsniff.analysis.selection import Started
    from amqpsniff.analysis.summary import Summary
    from amqpsniff.findings import Finding
    from amqpsniff.pipeline import Totals

TOP = 100
"""Names of each kind in the tables of a report."""

MAX_OPEN = 50_000
"""Channels of which it is remembered how much they left unsettled."""

OTHER_FRAMES = ("protocol-header",)
WAITED_FOR = frozenset(("confirmed", "rejected", "unconfirmed"))
SETTLED_LATER = frozenset(("acked", "requeued", "discarded", "unsettled"))
"""Outcomes of publishes that waited for a confirm, and of deliveries that waited for an ack."""
ENDS_OF = {
    "unacked": ("unsettled_end", "delivered"), "unconfirmed": ("unconfirmed_end", "published"),
}  # fmt: skip
"""Columns of channels by level: how many waited at the end, and how many there were in all."""

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
    "findings": FINDING_COLUMNS,
}


class ReportData:
    """Collects the data of a report: `add` batches, then `finish`.

    Args:
        selection: The part of the time that is wanted.
        named: Connections that are to be shown, named as in `Selection.connection`.
        started: Gives the time at which the capture began.

    Attributes:
        summary: The summary, with `TOP` rows of each section, once it is finished.
        totals: Counts of the pass, once it is finished.
        diagnosis: The findings and the verdict on them, once it is finished.
        start_ns: Time of the first packet, or None.
        introductions: Is to hear of the connections that are over.
        topology: The `Topology` so far.
        connections, channels: Rows that were kept, and how many ended how.
        named: Rows of the connections that were named, by the name.
        rates, levels: `Counts` and `Levels` by what is counted.
        uncounted: Channels of which not all that waited is known, by level.
        delays: `Delays` by what took so long: confirm, ack, reply.
        spans: First and last time of connections in nanoseconds, by capture.
    """

    summary: Summary
    totals: Totals
    diagnosis: Diagnosis

    def __init__(self, selection: Selection, named: Sequence[str], started: Started) -> None:
        self.start_ns: int | None = None
        self.introductions = Introductions()
        self._found: list[Row] = []
        self.topology = Topology()
        self.connections = TopRows(MAX_CONNECTIONS, connection_weight)
        self.channels = TopRows(MAX_CHANNELS, channel_weight)
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
        self._midstream: Counter[str | None] = Counter()
        self._left: dict[str, Counter[Place]] = {"unacked": Counter(), "unconfirmed": Counter()}
        self._ended: dict[str, int] = {}
        self._closed: list[tuple[Place, int, dict[str, int | None]]] = []
        self._whole = not selection.chooses()
        self._filters = {table: RowFilter(selection, table, started) for table in COLUMNS}
        self.columns = {table: rows.columns for table, rows in self._filters.items()}
        self._choices = {
            name: RowFilter(Selection(connection=name), "connections", started) for name in named
        }
        self._takers: dict[str, Callable[[Any], None]] = {
            "frames": self._frames,
            "messages": self._messages,
            "connections": self._connections,
            "channels": self._channels,
            "findings": self._findings,
        }

    def add(self, table: str, batch: Any) -> None:
        """Take a batch of one of the tables, with `COLUMNS` at least."""
        self._takers[table](self._filters[table].of(batch))

    def finish(self, summary: Summary, totals: Totals, findings: Iterable[Finding]) -> None:
        """Take what is known at the end of the pass.

        Raises UsageError for a connection that was named and is not there.
        """
        self._settle_rest()
        self.summary, self.totals, self.start_ns = summary, totals, totals.first_ns
        codes = [finding.code for finding in findings]
        self.diagnosis = Diagnosis(
            in_order(self._found),
            totals.packets,
            totals.connections,
            summary["quality"],
            flaws(summary["quality"], codes),
            len(codes),
            Clients(self.introductions.rows({row["connection_id"] for row in self._found})),
            totals.first_ns,
        )
        for name, rows in self.named.items():
            if not rows and self.connections.number:
                raise no_connection(name, self.connections.number)

    @property
    def missed(self) -> bool:
        """True if there is AMQP, and nothing of it in the time that was chosen."""
        kept = (self._filters[table].kept for table in ("frames", "messages", "findings"))
        return not self._whole and bool(self.totals.connections) and not any(kept)

    def _frames(self, batch: Any) -> None:
        import pyarrow.compute as pc

        self.topology.add_frames(batch)
        batch = batch.filter(pc.is_valid(batch.column("ts_ns")))
        header = is_one_of(batch.column("frame_type"), frozenset(OTHER_FRAMES))
        octets = pc.add(batch.column("size"), pc.if_else(header, 0, FRAME_OVERHEAD_BYTES))
        for side in SIDES:
            mask = is_one_of(batch.column("sender"), frozenset((side,)))
            times = batch.column("ts_ns").filter(mask)
            self.rates[side].add(times, octets.filter(mask))
        answered = batch.filter(pc.is_valid(batch.column("response_ns")))
        took = answered.column("response_ns")
        self.delays["reply"].add(pc.add(answered.column("ts_ns"), took), took)

    def _messages(self, batch: Any) -> None:
        import pyarrow.compute as pc

        self.topology.add_messages(batch)
        batch = batch.filter(pc.is_valid(batch.column("ts_ns")))
        ways = (
            (PUBLISHES, "published", "confirmed", "confirm", "unconfirmed", WAITED_FOR),
            (DELIVERIES, "delivered", "acked", "ack", "unacked", SETTLED_LATER),
        )
        for methods, way, outcome, delay, level, waiting in ways:
            rows = batch.filter(is_one_of(batch.column("method"), methods))
            self.rates[way].add(rows.column("ts_ns"))
            ended = rows.filter(pc.is_valid(rows.column("outcome_ns")))
            done = ended.filter(is_one_of(ended.column("outcome"), frozenset((outcome,))))
            took = done.column("outcome_ns")
            self.rates[outcome].add(pc.add(done.column("ts_ns"), took))
            self.delays[delay].add(pc.add(done.column("ts_ns"), took), took)
            self._count_level(level, rows, ended, waiting)

    def _count_level(self, level: str, rows: Any, ended: Any, waiting: frozenset[str]) -> None:
        """Count what began to wait, what ended, and remember what did not."""
        import pyarrow.compute as pc

        rows = rows.filter(is_one_of(rows.column("outcome"), waiting))
        ended = ended.filter(is_one_of(ended.column("outcome"), waiting))
        done = pc.add(ended.column("ts_ns"), ended.column("outcome_ns"))
        self.levels[level].add(rows.column("ts_ns"), done)
        left = rows.filter(pc.is_null(rows.column("outcome_ns")))
        known = self._left[level]
        places = zip(values(left, "connection_id"), values(left, "channel"), strict=True)
        for place, number in Counter(places).items():
            if place in known or len(known) < MAX_OPEN:
                known[place] += number

    def _connections(self, batch: Any) -> None:
        import pyarrow as pa

        begun, ended = [], []
        for row in rows_of(batch):
            self.connections.add(row)
            if row["start_ns"] is None:
                continue
            self._widen(row)
            if row["midstream"]:
                self._midstream[row["capture"]] += 1
            else:
                begun.append(row["start_ns"])
            if row["closed_by"] is not None and row["end_ns"] is not None:
                ended.append(row["end_ns"])
                if len(self._ended) < MAX_OPEN:
                    self._ended[row["connection_id"]] = row["end_ns"]
        self.levels["connections"].add(pa.array(begun, pa.int64()), pa.array(ended, pa.int64()))
        for name, wanted in self._choices.items():
            self.named[name] += islice(rows_of(wanted.of(batch)), TOP)

    def _widen(self, row: Row) -> None:
        start_ns = row["start_ns"]
        end_ns = start_ns if row["end_ns"] is None else row["end_ns"]
        first_ns, last_ns = self.spans.get(row["capture"], (start_ns, end_ns))
        self.spans[row["capture"]] = (min(first_ns, start_ns), max(last_ns, end_ns))

    def _channels(self, batch: Any) -> None:
        for row in rows_of(batch):
            self.channels.add(row)
            left = {level: row[name] for level, (name, way) in ENDS_OF.items() if row[way]}
            self.uncounted.update(level for level, number in left.items() if number is None)
            ended = row["end_ns"] is not None and row["closed_by"] is not None
            if ended and any(one != 0 for one in left.values()) and len(self._closed) < MAX_OPEN:
                place = row["connection_id"], row["channel"]
                self._closed.append((place, row["end_ns"], left))

    def _findings(self, batch: Any) -> None:
        self._found += finding_rows(batch)

    def _settle_rest(self) -> None:
        """End the wait of what was left when its channel or connection ended.

        And connections that began before their capture were open from its beginning on.
        """
        for span in self.spans.values():
            self.steps.cover(*span)
        for capture, number in self._midstream.items():
            self.levels["connections"].put(self.spans[capture][0], number)
        for level, left in self._left.items():
            closed = [(place, end_ns, ends[level]) for place, end_ns, ends in self._closed
                      if level in ends]  # fmt: skip
            for place, end_ns, over in sorted(closed, key=lambda one: one[2] is None):
                self._drop(level, place, end_ns, over)
            for place in left:
                if place[0] in self._ended:
                    self._drop(level, place, self._ended[place[0]], None)

    def _drop(self, level: str, place: Place, end_ns: int, number: int | None) -> None:
        """End the wait of this number of messages; None for all of them."""
        left = self._left[level].get(place, 0)
        number = left if number is None else min(number, left)
        if number > 0:
            self._left[level][place] -= number
            self.levels[level].put(end_ns, -number)
