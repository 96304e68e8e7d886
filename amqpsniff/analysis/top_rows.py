"""The rows of connections and channels that matter most; all of them are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from heapq import heappush, heapreplace
from typing import TYPE_CHECKING, Any

from amqpsniff.spec import FIRST_ERROR_CODE

if TYPE_CHECKING:
    from amqpsniff.session.table_rows import Rows

Row = dict[str, Any]
MAX_CONNECTIONS = 4_000
MAX_CHANNELS = 2_000
"""Rows kept while a capture is read, two kilobytes each; a report shows fewer."""

CONNECTION_COLUMNS = (
    "capture", "connection_id", "client", "server", "first_packet_number", "start_ns", "end_ns",
    "protocol", "midstream", "vhost", "user", "client_product", "client_version", "connection_name",
    "server_product", "server_version", "channels", "client_bytes", "server_bytes", "published",
    "delivered", "acknowledged", "retransmissions", "lost_bytes", "blocked_ns", "closed_by",
    "close_code", "close_text", "owed",
)  # fmt: skip
CHANNEL_COLUMNS = (
    "connection_id", "client", "channel", "start_ns", "end_ns", "mode", "prefetch_count",
    "published", "confirmed", "returned", "delivered", "acknowledged", "unsettled_max",
    "unsettled_end", "unconfirmed_max", "unconfirmed_end", "consumers", "closed_by", "close_code",
    "close_text",
)  # fmt: skip

ENDS = (
    "closed by the client",
    "closed by the broker",
    "closed with an error",
    "TCP reset",
    "TCP ended without a close",
    "open when the capture ended",
)
"""The ends of connections and channels."""

BAD_ENDS = frozenset(("closed with an error", "TCP reset", "TCP ended without a close"))


def end_of(row: Row) -> str:
    """The end of a connection or channel, one of `ENDS`."""
    return _end(row["closed_by"], row["close_code"])


def _end(closed_by: str | None, code: int | None) -> str:
    if code is not None and code >= FIRST_ERROR_CODE:
        return "closed with an error"
    return _ENDED.get(closed_by, "open when the capture ended")


_ENDED: dict[str | None, str] = {
    "client": "closed by the client",
    "server": "closed by the broker",
    "rst": "TCP reset",
    "fin": "TCP ended without a close",
}


def connection_weights(rows: Rows) -> Iterator[tuple[Any, ...]]:
    """The order in which connections that ended alike are worth keeping: by their size.

    Of equal ones the id decides, so that those are kept that lie anywhere in the time.
    """
    names = "client_bytes", "server_bytes", "connection_id"
    for sent, received, connection_id in zip(*map(rows.column, names), strict=True):
        yield (sent or 0) + (received or 0), connection_id


def channel_weights(rows: Rows) -> Iterator[tuple[Any, ...]]:
    """The same of channels: by what waited, then by messages."""
    names = "unsettled_max", "unconfirmed_max", "published", "delivered", "connection_id"
    for unacked, unconfirmed, sent, came, connection_id in zip(
        *map(rows.column, names), strict=True
    ):
        yield max(unacked or 0, unconfirmed or 0), sent + came, connection_id


class TopRows:
    """The rows with a bad end, then those with the most weight, and how many there were in all.

    Args:
        most: Rows that are kept.
        weights: The weights of rows among those with ends like their own.
        columns: Columns of a row that are kept.

    Attributes:
        number: Rows seen.
        ends: Numbers of rows by their end.
    """

    def __init__(
        self,
        most: int,
        weights: Callable[[Rows], Iterator[tuple[Any, ...]]],
        columns: Sequence[str],
    ) -> None:
        self._most = most
        self._weights = weights
        self._columns = columns
        self._heap: list[tuple[tuple[Any, ...], int, Any]] = []
        self.number = 0
        self.ends: Counter[str] = Counter()

    def add(self, rows: Rows) -> None:
        """See rows."""
        closes = list(zip(rows.column("closed_by"), rows.column("close_code"), strict=True))
        ends = {close: _end(*close) for close in set(closes)}
        values = list(zip(*map(rows.column, self._columns), strict=True))
        heap, number = self._heap, self.number
        for row, (close, weight) in enumerate(zip(closes, self._weights(rows), strict=True)):
            place = (ends[close] in BAD_ENDS, *weight), -number - row
            if len(heap) < self._most:
                heappush(heap, (*place, values[row]))
            elif place > heap[0][:2]:
                heapreplace(heap, (*place, values[row]))
        self.number += len(closes)
        for close, times in Counter(closes).items():
            self.ends[ends[close]] += times

    @cached_property
    def rows(self) -> list[Row]:
        """The rows that were kept, the weightiest first, once all were seen."""
        heap = sorted(self._heap, key=lambda one: one[:2], reverse=True)
        return [dict(zip(self._columns, values, strict=True)) for *_, values in heap]
