"""The rows of connections and channels that matter most; all of them are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from heapq import heappush, heapreplace
from operator import itemgetter
from typing import Any

from amqpsniff.spec import FIRST_ERROR_CODE

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
    if row["close_code"] is not None and row["close_code"] >= FIRST_ERROR_CODE:
        return "closed with an error"
    return _ENDED.get(row["closed_by"], "open when the capture ended")


_ENDED = {
    "client": "closed by the client",
    "server": "closed by the broker",
    "rst": "TCP reset",
    "fin": "TCP ended without a close",
}


def connection_weight(row: Row) -> tuple[Any, ...]:
    """The order in which connections that ended alike are worth keeping: by their size.

    Of equal ones the id decides, so that those are kept that lie anywhere in the time.
    """
    return (row["client_bytes"] or 0) + (row["server_bytes"] or 0), row["connection_id"]


def channel_weight(row: Row) -> tuple[Any, ...]:
    """The same of a channel: by what waited, then by messages."""
    waited = max(row["unsettled_max"] or 0, row["unconfirmed_max"] or 0)
    messages = row["published"] + row["delivered"]
    return waited, messages, row["connection_id"]


def shown(value: Any) -> Any:
    """A value as Arrow has it, which keeps no text that is not UTF-8: a file's name may be none."""
    if isinstance(value, str) and not value.isascii():
        return value.encode(errors="backslashreplace").decode()
    return value


class TopRows:
    """The rows with a bad end, then those with the most weight, and how many there were in all.

    Args:
        most: Rows that are kept.
        weight: The weight of a row among those with ends like its own.
        columns: Columns of a row that are kept.

    Attributes:
        number: Rows seen.
        ends: Numbers of rows by their end.
    """

    def __init__(
        self, most: int, weight: Callable[[Row], tuple[Any, ...]], columns: Sequence[str]
    ) -> None:
        self._most = most
        self._weight = weight
        self._columns = columns
        self._values = itemgetter(*columns)
        self._heap: list[tuple[tuple[Any, ...], int, Any]] = []
        self.number = 0
        self.ends: Counter[str] = Counter()

    def add(self, row: Row) -> None:
        """See a row."""
        self.number += 1
        end = end_of(row)
        self.ends[end] += 1
        place = ((end in BAD_ENDS, *self._weight(row)), -self.number)
        if len(self._heap) < self._most:
            heappush(self._heap, (*place, self._values(row)))
        elif place > self._heap[0][:2]:
            heapreplace(self._heap, (*place, self._values(row)))

    @cached_property
    def rows(self) -> list[Row]:
        """The rows that were kept, the weightiest first, once all were seen."""
        heap = sorted(self._heap, key=lambda one: one[:2], reverse=True)
        return [dict(zip(self._columns, map(shown, values), strict=True)) for *_, values in heap]
