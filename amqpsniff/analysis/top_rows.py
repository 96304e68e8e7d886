"""The rows of connections and channels that matter most; all of them are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from operator import add
from typing import TYPE_CHECKING, Any

from amqpsniff.spec import FIRST_ERROR_CODE

if TYPE_CHECKING:
    from amqpsniff.session.table_rows import Rows

Row = dict[str, Any]
MAX_CONNECTIONS = 4_000
MAX_CHANNELS = 2_000
"""Rows kept while a capture is read, two kilobytes each; a report shows fewer."""

MAX_UNSORTED = 1_000
"""Rows beyond the limit that are collected before the rows are sorted and cut."""

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
    return _end(row["closed_by"], row["close_code"], row["close_text"])


def is_error(code: int | None, text: str | None) -> bool:
    """True if a close has an error; that of AMQP 1.0 is a text without a code."""
    return text is not None if code is None else code >= FIRST_ERROR_CODE


def close_reason(row: Row) -> str | None:
    """The code and the text of a close; None without both."""
    parts = (row["close_code"], row["close_text"])
    return " ".join(str(part) for part in parts if part) or None


def _end(closed_by: str | None, code: int | None, text: str | None) -> str:
    if is_error(code, text):
        return "closed with an error"
    return _ENDED.get(closed_by, "open when the capture ended")


_ENDED: dict[str | None, str] = {
    "client": "closed by the client",
    "server": "closed by the broker",
    "rst": "TCP reset",
    "fin": "TCP ended without a close",
}


def connection_weights(rows: Rows) -> tuple[Iterable[Any], ...]:
    """Columns that order connections which ended alike: their size, then their id.

    By the id, those of equal size that are kept lie anywhere in the time.
    """
    octets = zip(rows.column("client_bytes"), rows.column("server_bytes"), strict=True)
    sizes = ((sent or 0) + (received or 0) for sent, received in octets)
    return sizes, rows.column("connection_id")


def channel_weights(rows: Rows) -> tuple[Iterable[Any], ...]:
    """Columns that order channels: what waited at most, messages, the id."""
    waited = zip(rows.column("unsettled_max"), rows.column("unconfirmed_max"), strict=True)
    return (
        (max(unacked or 0, unconfirmed or 0) for unacked, unconfirmed in waited),
        map(add, rows.column("published"), rows.column("delivered")),
        rows.column("connection_id"),
    )


class TopRows:
    """The rows with a bad end, then those with the most weight, and how many there were in all.

    Args:
        most: Rows that are kept.
        weights: The weights of rows among those with ends like their own, as columns.
        columns: Columns of a row that are kept.

    Attributes:
        number: Rows seen.
        ends: Numbers of rows by their end.
    """

    def __init__(
        self,
        limit: int,
        weights: Callable[[Rows], tuple[Iterable[Any], ...]],
        columns: Sequence[str],
    ) -> None:
        self._limit = limit
        self._weights = weights
        self._columns = columns
        self._entries: list[tuple[Any, ...]] = []
        self._least: tuple[Any, ...] = ()
        self.number = 0
        self.ends: Counter[str] = Counter()

    def add(self, rows: Rows) -> None:
        """See rows."""
        close_columns = map(rows.column, ("closed_by", "close_code", "close_text"))
        closes = list(zip(*close_columns, strict=True))
        ends = {close: _end(*close) for close in set(closes)}
        bad = {close: end in BAD_ENDS for close, end in ends.items()}
        earlier = range(-self.number, -self.number - len(closes), -1)
        values = zip(*map(rows.column, self._columns), strict=True)
        entries = zip(map(bad.get, closes), *self._weights(rows), earlier, values, strict=True)
        self._entries += filter(self._least.__lt__, entries)
        if len(self._entries) > self._limit + MAX_UNSORTED:
            self._sort()
        self.number += len(closes)
        for close, times in Counter(closes).items():
            self.ends[ends[close]] += times

    def _sort(self) -> None:
        """Keep the rows with the largest weights; lighter ones are skipped from then on."""
        self._entries.sort(reverse=True)
        del self._entries[self._limit :]
        if len(self._entries) == self._limit:
            self._least = self._entries[-1]

    @cached_property
    def rows(self) -> list[Row]:
        """The rows that were kept, the weightiest first, once all were seen."""
        self._sort()
        return [dict(zip(self._columns, values, strict=True)) for *_, values in self._entries]
