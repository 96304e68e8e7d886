"""What a report is made of, gathered in one pass over the captures, in memory that does not grow.

Numbers over time are kept in `amqpsniff.report.buckets`, names in `Routing` and in a census, rows
that last in `Kept`. Of what is outstanding, only that counts which is known to have waited, and
what was never settled goes with its channel, or with its connection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.counting import is_one_of
from amqpsniff.analysis.topology import (
    DELIVERIES,
    FRAME_COLUMNS,
    MESSAGE_COLUMNS,
    PUBLISHES,
    Routing,
)
from amqpsniff.report.buckets import Counts, Delays, Levels, Steps
from amqpsniff.spec import FRAME_OVERHEAD_OCTETS, SIDES
from amqpsniff.tables.values import rows_of, values

from ..cases import finding_rows
from ..options import Scope
from .kept import (
    CHANNEL_COLUMNS,
    CONNECTION_COLUMNS,
    MOST_CHANNELS,
    MOST_CONNECTIONS,
    Kept,
    Row,
    channel_weight,
    connection_weight,
)

if TYPE_CHECKING:
    from ..options import Input
    from ..reading import Reading

TOP = 100
"""Names of each kind in the tables of a report."""

MOST_OPEN = 50_000
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
    "severity", "detail", "count", "last_packet_number", "grade", "cause_code",
    "cause_packet_number",
)  # fmt: skip
"""What differs between findings of one code; the rest is in the catalogue."""

COLUMNS = {
    "frames": (*FRAME_COLUMNS, "sender", "frame_type", "size", "response_ns"),
    "messages": (*MESSAGE_COLUMNS, "outcome", "outcome_ns"),
    "connections": CONNECTION_COLUMNS,
    "channels": CHANNEL_COLUMNS,
    "findings": FINDING_COLUMNS,
}


class Gathering:
    """One pass.

    Args:
        source: What is read.
        scope: The part of the time that is wanted.
        named: Connections that somebody named, as `--connection` has it.

    Attributes:
        reading: The pass; its findings and totals are there afterwards.
        counted: What a `Census` counted.
        found: Rows of the findings table.
        connections, channels: Rows that were kept, and how many ended how.
        named: Rows of the connections that were named, by the name.
        rates, levels: `Counts` and `Levels` by what is counted.
        uncounted: Channels of which not all that waited is known, by level.
        delays: `Delays` by what took so long: confirm, ack, reply.
        spans: From when to when, in nanoseconds, each capture has connections.
    """

    def __init__(self, source: Input, scope: Scope, named: tuple[str, ...]) -> None:
        from ..reading import Reading
        from ..selection import Selection

        self.reading: Reading = Reading(source, scope)
        self.routing = Routing()
        self.counted: dict[str, Any] = {}
        self.found: list[Row] = []
        self.connections = Kept(MOST_CONNECTIONS, connection_weight)
        self.channels = Kept(MOST_CHANNELS, channel_weight)
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
        self._midstream: Counter[str | None] = Counter()
        self.uncounted: Counter[str] = Counter()
        self._left: dict[str, Counter[Place]] = {"unacked": Counter(), "unconfirmed": Counter()}
        self._ended: dict[str, int] = {}
        self._closed: list[tuple[Place, int, dict[str, int | None]]] = []
        self._whole = scope == Scope()
        tables = ("frames", "messages", "connections", "channels", "findings")
        started = self.reading.started
        self._selections = {table: Selection(scope, table, started) for table in tables}
        self._choices = {
            name: Selection(Scope(connection=name), "connections", started) for name in named
        }
        self._take: dict[str, Callable[[Any], None]] = {
            "frames": self._frames,
            "messages": self._messages,
            "connections": self._connections,
            "channels": self._channels,
            "findings": self._findings,
        }

    def run(self) -> None:
        """Read the captures."""
        from amqpsniff.session.census import Census

        census = Census(1, None, None, self._selections["frames"].span)
        batches = self.reading.rows(*self._take, columns=COLUMNS, progress=True, census=census)
        for table, batch in batches:
            self._take[table](self._selections[table].of(batch))
        self._settle_rest()
        self.counted = census.facts()

    @property
    def missed(self) -> bool:
        """Whether there is AMQP, and nothing of it in the time that was chosen."""
        kept = (self._selections[table].kept for table in ("frames", "messages", "findings"))
        return not self._whole and bool(self.reading.capture.totals.connections) and not any(kept)

    def _frames(self, batch: Any) -> None:
        import pyarrow.compute as pc

        self.routing.add_frames(batch)
        batch = batch.filter(pc.is_valid(batch.column("ts_ns")))
        header = is_one_of(batch.column("frame_type"), frozenset(OTHER_FRAMES))
        octets = pc.add(batch.column("size"), pc.if_else(header, 0, FRAME_OVERHEAD_OCTETS))
        for side in SIDES:
            mask = is_one_of(batch.column("sender"), frozenset((side,)))
            times = batch.column("ts_ns").filter(mask)
            self.rates[side].add(times, octets.filter(mask))
        answered = batch.filter(pc.is_valid(batch.column("response_ns")))
        took = answered.column("response_ns")
        self.delays["reply"].add(pc.add(answered.column("ts_ns"), took), took)

    def _messages(self, batch: Any) -> None:
        import pyarrow.compute as pc

        self.routing.add_messages(batch)
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
            if place in known or len(known) < MOST_OPEN:
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
                if len(self._ended) < MOST_OPEN:
                    self._ended[row["connection_id"]] = row["end_ns"]
        self.levels["connections"].add(pa.array(begun, pa.int64()), pa.array(ended, pa.int64()))
        for name, selection in self._choices.items():
            self.named[name] += islice(rows_of(selection.of(batch)), TOP)

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
            if ended and any(one != 0 for one in left.values()) and len(self._closed) < MOST_OPEN:
                place = row["connection_id"], row["channel"]
                self._closed.append((place, row["end_ns"], left))

    def _findings(self, batch: Any) -> None:
        self.found += finding_rows(batch)

    def _settle_rest(self) -> None:
        """What was left when its channel or connection ended is nothing to wait for any more.

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
        """So many do not wait any more; None for all of them."""
        left = self._left[level].get(place, 0)
        number = left if number is None else min(number, left)
        if number > 0:
            self._left[level][place] -= number
            self.levels[level].put(end_ns, -number)
