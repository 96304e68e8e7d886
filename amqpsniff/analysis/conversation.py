"""One connection from its beginning to its end: how it is found, and its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.clients import MAX_NAME
from amqpsniff.analysis.selection import OF_CONNECTIONS, RowFilter, Selection, Started, shown
from amqpsniff.analysis.timeline import FOLDED, Entry, Gaps, Timeline
from amqpsniff.errors import UsageError
from amqpsniff.packet_numbers import NUMBER_MASK
from amqpsniff.rereadable import Rereadable, Rows
from amqpsniff.session.owing import Silence
from amqpsniff.tables.values import values
from amqpsniff.wire_text import harmless, shortened

if TYPE_CHECKING:
    from amqpsniff.tcp.partition import Partition

Row = dict[str, Any]

_NAMING = ("connection", *OF_CONNECTIONS)
"""Filters of a `Selection` that name a connection."""

MAX_NAMED = 5
"""Connections named in an error."""

MAX_SILENCES = 100_000
"""Silences of all connections that are remembered; some 20 MB."""

MAX_KEPT = 10_000
"""Connections remembered so that an error can name them, and as many that match."""


@dataclass
class Conversation:
    """One connection.

    Attributes:
        row: Its row of the connections table.
        findings: Its rows of the findings table, in the order of time.
        silences: Times without traffic in which a side owed something, in the order of time.
        entries: Its methods and messages, and the gaps between them, in the order of time; each
            loop reads the capture again. See `amqpsniff.analysis.timeline.Entry`.
    """

    row: Row
    findings: list[Row]
    silences: list[Silence] = field(default_factory=list)
    entries: Rereadable[Entry] = field(default_factory=lambda: Rows("entries", lambda: iter(())))


class ConversationFinder:
    """Finds the connection that a selection names, or the only one, in rows of two tables.

    Args:
        selection: `connection`, `client`, `user` and `vhost` name it; `channel`, `from_` and `to`
            choose findings.
        started: Gives the time at which the capture began.
        packets: The first and the last of the packets with bytes of it; None for any.
    """

    TABLES = ("connections", "findings")

    def __init__(
        self, selection: Selection, started: Started, packets: tuple[int, int] | None = None
    ) -> None:
        self._selection = selection
        timed = Selection(from_=selection.from_, to=selection.to)
        by_name = Selection(**{name: getattr(selection, name) for name in _NAMING})
        self._timed = RowFilter(timed, "findings", started)
        self._named = RowFilter(by_name, "connections", started)
        self._all, self._matching = _Connections(), _Connections()
        self._findings: list[Row] = []
        self._silences: list[Silence] = []
        self._packets = packets
        self._holders: set[str] = set()

    def hold(self, events: Any) -> None:
        """Remember the connections of the packets that select a connection."""
        if self._packets is None:
            return
        first, last = self._packets
        for half, number in zip(events.half, events.number, strict=True):
            if first <= number & NUMBER_MASK <= last:
                self._holders.add(events.conversations[half >> 1].connection_id)

    def note(self, silence: Silence) -> None:
        """Remember a silence of some connection."""
        if len(self._silences) < MAX_SILENCES:
            self._silences.append(silence)

    def add(self, table: str, batch: Any) -> None:
        """Look through a batch of `connections` or, behind all of those, `findings`."""
        if table == "findings":
            if self._matching.only is not None:
                timed = self._timed.of(batch)
                self._findings += _rows_of(
                    timed, {self._matching.only["connection_id"]}
                ).to_pylist()
        else:
            self._all.add(batch)
            matching = self._named.of(batch)
            self._matching.add(
                matching if self._packets is None else _rows_of(matching, self._holders)
            )

    def found(self) -> Conversation | None:
        """The connection without its entries; None if there is no AMQP.

        Raises UsageError if no connection matches, or several do.
        """
        if not self._all.number:
            return None
        row = self._row()
        connection_id, channel = row["connection_id"], self._selection.channel
        findings = [
            finding
            for finding in self._findings
            if channel is None or finding["channel"] in (None, channel)
        ]
        silences = [silence for silence in self._silences if silence.connection_id == connection_id]
        return Conversation(row, findings, silences)

    def _row(self) -> Row:
        matching = self._matching
        filters = (getattr(self._selection, name) for name in _NAMING)
        query = " ".join(map(shown, filter(None, filters)))
        if matching.only is not None:
            return matching.only
        if not matching.number and self._packets is not None:
            raise UsageError(
                f"no bytes of a connection in packet {self._packets[0]}; give another, or "
                f"`connection`: {self._all.names()}",
                "connection",
            )
        if not matching.number:
            raise UsageError(f"no connection `{query}`; there are {self._all.names()}")
        if self._selection.connection is None:
            text = f"{matching.number} connections; give `connection`: {matching.names()}"
            raise UsageError(text, "connection")
        raise UsageError(
            f"{matching.number} connections are `{query}`; give more of it: {matching.names()}"
        )


def share_of(rows: Iterable[Row]) -> Partition | None:
    """TCP conversations of connections and of their ends; None for all, if some are unknown."""
    from amqpsniff.tcp.partition import Partition, marks_between

    marks = marks_between([(row["client"], row["server"]) for row in rows])
    return None if marks is None else Partition(only=marks)


def _rows_of(batch: Any, connections: set[str]) -> Any:
    """The rows of a batch that are of these connections."""
    import pyarrow as pa

    mask = [value in connections for value in values(batch, "connection_id")]
    return batch.filter(pa.array(mask, pa.bool_()))


class _Connections:
    """Clients of connections by id, with their names, `MAX_KEPT` of them; how many there are in
    all, and the row of the only one.
    """

    def __init__(self) -> None:
        self.clients: dict[str, tuple[str | None, str | None]] = {}
        self.number = 0
        self.only: Row | None = None

    def add(self, batch: Any) -> None:
        self.number += batch.num_rows
        rows = batch.slice(0, MAX_KEPT - len(self.clients))
        ids, names, clients = (
            values(rows, name) for name in ("connection_id", "connection_name", "client")
        )
        self.clients.update(zip(ids, zip(names, clients, strict=True), strict=True))
        if len(self.clients) > 1:
            self.only = None
        elif rows.num_rows:
            self.only = rows.slice(rows.num_rows - 1).to_pylist()[0]

    def names(self) -> str:
        """The connections, each by the unique beginning of its id."""
        ids = sorted(self.clients)
        length = 8 if len({connection_id[:8] for connection_id in ids}) == len(ids) else 16
        names = []
        for connection_id in ids[:MAX_NAMED]:
            name, client = self.clients[connection_id]
            shown = (shortened(harmless(name or ""), MAX_NAME), client or "client not known")
            names.append(f"{connection_id[:length]} ({' '.join(filter(None, shown))})")
        rest = f" and {self.number - MAX_NAMED} more" if self.number > MAX_NAMED else ""
        return ", ".join(names) + rest


def entries_of(
    batches: Iterable[tuple[str, Any]], selection: Selection, timeline: Timeline, started: Started
) -> Iterator[Entry]:
    """The entries of one connection, with the gaps between its frames.

    Args:
        batches: (table, record batch) of `frames` and `messages`.
        selection: `connection` is its whole id. Gaps are chosen by time alone.
        timeline: An empty one.
        started: Gives the time at which the capture began.
    """
    timed = Selection(selection.connection, None, selection.from_, selection.to)
    of_connection = RowFilter(Selection(selection.connection), "frames", started)
    in_time = RowFilter(timed, "frames", started)
    chosen = RowFilter(selection, "frames", started)
    gaps = Gaps()
    for table, batch in batches:
        if table == "messages":
            yield from timeline.messages(batch)
        else:
            for gap, piece in gaps.split(of_connection.of(batch)):
                if gap is not None and in_time.of(piece.slice(0, 1)).num_rows:
                    timeline.put(gap)
                timeline.frames(without_folded(chosen.of(piece)))
        yield from timeline.ready()
    yield from timeline.ready(last=True)


def without_folded(batch: Any) -> Any:
    """The frames of a batch that have an entry of their own."""
    import pyarrow as pa
    import pyarrow.compute as pc

    folded = pc.is_in(batch.column("frame_type"), value_set=pa.array(FOLDED))
    return batch.filter(pc.invert(folded))
