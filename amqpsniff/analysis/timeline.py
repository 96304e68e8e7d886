"""Frames and messages as one list in the order of time.

A message's content (a method, a header, bodies) is one entry, at its method. The rest of it may
come much later, so entries wait behind it until the message's row has come; not without end.
Bytes of a connection that no frame holds are entries too, where `Gaps` finds them.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from amqpsniff.spec import METHODS
from amqpsniff.spec.amqp010 import overhead_bytes
from amqpsniff.tables.values import values

FOLDED = ("header", "body", "heartbeat")
"""Frame types without an entry of their own: contents are part of their method's entry."""

CONTENT_METHODS = frozenset(row.name for row in METHODS if row.content)
"""Methods that a content follows."""

GAP = "gap"
"""The frame type of an entry that stands for missing bytes; its size is how many."""

MAX_WAITING = 65_536
"""Entries that wait for a message to end. A content that a hostile or broken client never ends
would otherwise hold all that follow; when there are more, it is shown without its message."""

MESSAGES_AT_ONCE = 1_024
"""Messages that are made objects together, 3 kB each, before entries are given out."""

FRAME_COLUMNS = (
    "capture packet_number ts_ns connection_id client server sender stream_offset channel "
    "frame_type size method arguments response_packet_number response_ns"
).split()
_FRAME_TYPE = FRAME_COLUMNS.index("frame_type")
MESSAGE_KEY = ("connection_id", "sender", "channel", "packet_number", "method")
_PACKET = MESSAGE_KEY.index("packet_number")


@dataclass(slots=True)
class Entry:
    """One line: a frame, and the message that it begins, if any.

    Fields are columns of `frames`; `arguments_json` is what the table has as `arguments`.

    `message` maps the columns asked for to values; None without a message, and while `waiting`.
    With `early` a missing reply or outcome may still come.
    """

    capture: str
    packet_number: int
    ts_ns: int | None
    connection_id: str
    client: str | None
    server: str | None
    sender: str | None
    stream_offset: int
    channel: int
    frame_type: str
    size: int
    method: str | None
    arguments_json: str | None
    response_packet_number: int | None
    response_ns: int | None
    early: bool = False
    waiting: bool = False
    message: dict[str, Any] | None = None

    @property
    def arguments(self) -> dict[str, Any] | None:
        """Arguments of the method, read from the JSON of the table; None without a method."""
        found: dict[str, Any] | None = json.loads(self.arguments_json or "null")
        return found


class Timeline:
    """Joins batches of frames with batches of messages.

    Args:
        opening: Names of the methods that open a content.
        columns: Columns of messages that entries carry.
        max_waiting: Bound on the entries that wait for the row of a message.
    """

    def __init__(
        self, opening: frozenset[str], columns: tuple[str, ...], max_waiting: int = MAX_WAITING
    ) -> None:
        self._max_waiting = max_waiting
        self._opening = opening
        self._columns = columns
        self._entries: deque[Entry] = deque()
        self._waiting: dict[tuple[Any, ...], deque[Entry]] = {}

    def frames(self, batch: Any, *, early: bool = False, without: Collection[str] = ()) -> int:
        """Take frames, in order, but not those of a type in `without`; how many it took."""
        taken = 0
        for row in zip(*(values(batch, name) for name in FRAME_COLUMNS), strict=True):
            if row[_FRAME_TYPE] in without:
                continue
            taken += 1
            entry = Entry(*row)
            entry.early = early
            if entry.method in self._opening and entry.frame_type == "method":
                entry.waiting = True
                key = tuple(getattr(entry, name) for name in MESSAGE_KEY)
                self._waiting.setdefault(key, deque()).append(entry)
            self._entries.append(entry)
        return taken

    def messages(self, batch: Any) -> Iterator[Entry]:
        """Take messages that ended: the frames that open them came before.

        Gives the entries that are next, for a few messages at a time: entries take more memory than
        a batch.
        """
        for start in range(0, batch.num_rows, MESSAGES_AT_ONCE):
            self._join(batch.slice(start, MESSAGES_AT_ONCE))
            yield from self.ready()

    def _join(self, batch: Any) -> None:
        """Give messages to the entries that wait for them."""
        keys = zip(*(values(batch, name) for name in MESSAGE_KEY), strict=True)
        rows = zip(*(values(batch, name) for name in self._columns), strict=True)
        for key, row in zip(keys, rows, strict=True):
            waiting = self._waiting.get(key)
            if waiting is None:
                continue
            entry = waiting.popleft()
            if not waiting:
                del self._waiting[key]
            entry.message = dict(zip(self._columns, row, strict=True))
            entry.waiting = False

    @property
    def packets(self) -> set[int]:
        """Packet numbers of messages that entries wait for."""
        return {key[_PACKET] for key in self._waiting}

    def put(self, entry: Entry) -> None:
        """Take an entry that is ready as it is."""
        self._entries.append(entry)

    @property
    def settled(self) -> bool:
        """True if no entry waits for its turn."""
        return not self._entries

    def ready(self, *, last: bool = False) -> Iterator[Entry]:
        """Entries that wait for nothing before them; with `last` all entries."""
        while self._entries:
            if self._entries[0].waiting and not last and len(self._entries) <= self._max_waiting:
                return
            yield self._entries.popleft()


class Gaps:
    """Finds holes between the frames of one connection, direction by direction."""

    def __init__(self) -> None:
        self._next: dict[Any, int] = {}

    def before(self, sender: Any, offset: int, octets: int) -> int:
        """The bytes that are missing before a frame of this size."""
        expected = self._next.get(sender, offset)
        self._next[sender] = max(expected, offset + octets)
        return max(offset - expected, 0)

    def split(self, batch: Any) -> Iterator[tuple[Entry | None, Any]]:
        """The frames of a batch in pieces, each with the gap before it or None."""
        names = ("sender", "stream_offset", "size", "frame_type")
        rows = zip(*(values(batch, name) for name in names), strict=True)
        begin, gap = 0, None
        for at, (sender, offset, size, kind) in enumerate(rows):
            if sender is None:
                continue
            if missing := self.before(sender, offset, size + overhead_bytes(kind)):
                yield gap, batch.slice(begin, at - begin)
                begin, gap = at, stand_in(batch.slice(at, 1), GAP, missing)
        yield gap, batch.slice(begin)


def stand_in(frame: Any, kind: str, size: int) -> Entry:
    """An entry of no frame, at the place of the one that follows it."""
    entry = Entry(*(values(frame, name)[0] for name in FRAME_COLUMNS))
    entry.frame_type, entry.size = kind, size
    entry.method = entry.arguments_json = None
    return entry
