"""Batches of rows that wait until they are final, in little memory and within limits.

Few columns of a row change later. The others are packed if many batches wait: a column with one
value, or null, in all rows is stored as that value. Most columns are such.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from amqpsniff.columns import Integers, Octets, Texts

from .limits import Limits

Batch = tuple[Any, Any, Any, Any, Any]
"""(frames, messages, connections, captures, method names), as the decoder gives them."""

WORD_BYTES = 32
"""Bytes that a distinct text of a batch takes in addition to its own."""

CHANGING: Final = frozenset(
    "outcome outcome_packet_number outcome_ns response_packet_number response_ns waiting "
    "state state_error settled_by transaction".split()
)
"""Columns that change after their row was made."""


class RowBuffer:
    """Batches in their order; `rows` counts the requested rows, `octets` the bytes in them."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.rows = self.octets = 0
        self._batches: deque[tuple[Batch, int, list[_Packed]]] = deque()

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def full(self) -> bool:
        """True if more wait than may."""
        return self.rows > self.limits.held_rows or self.octets > self.limits.held_bytes

    @property
    def settled(self) -> bool:
        """True if nothing about the oldest batch can change."""
        frames, messages, *_ = self._batches[0][0]
        return not ((frames.wanted and frames.pending) or (messages.wanted and messages.pending))

    def put(self, batch: Batch) -> None:
        """Add a batch."""
        octets = _bytes(batch)
        self.rows += _rows(batch)
        self.octets += octets
        packed = []
        if self.rows > self.limits.open_rows or self.octets > self.limits.open_bytes:
            packed = [_Packed(rows) for rows in batch[:2]]
            for words in batch[1].vocabularies.by_name().values():
                words.strings = []  # they are made again on demand
                words.trim()
        self._batches.append((batch, octets, packed))

    def pop(self) -> Batch:
        """Take the oldest batch out."""
        batch, octets, packed = self._batches.popleft()
        for one in packed:
            one.unpack()
        self.rows -= _rows(batch)
        self.octets -= octets
        return batch


def _rows(batch: Batch) -> int:
    """Rows of a batch that are requested."""
    frames, messages, *_ = batch
    return (frames.rows if frames.wanted else 0) + (messages.rows if messages.wanted else 0)


def _bytes(batch: Batch) -> int:
    """Bytes of texts and bodies of a batch."""
    words = batch[1].vocabularies
    texts = sum(rows.octets() for rows in batch[:2] if rows.wanted)
    return int(texts + words.octets() + WORD_BYTES * words.count())


class _Packed:
    """Rows with packed columns, except the columns that may change."""

    def __init__(self, rows: Any) -> None:
        self._columns: list[tuple[Any, Any]] = []
        self._rows = rows.rows
        columns = dict(rows.columns())
        for name in ("links", "deliveries", "meanings"):
            more = getattr(rows, name, None)
            columns |= {} if more is None else more.columns()
        for name, column in columns.items():
            if name not in CHANGING:
                pack = _pack_texts if isinstance(column, Texts) else _pack_numbers
                self._columns.append((column, pack(column, rows.rows)))

    def unpack(self) -> None:
        """Make the columns whole again."""
        for column, packed in self._columns:
            unpack = _unpack_texts if isinstance(column, Texts) else _unpack_numbers
            unpack(column, packed, self._rows)


def _pack_numbers(column: Any, rows: int) -> bytes:
    """The numbers of a column: one of them where all are equal."""
    width = 8 if isinstance(column, Integers) else 4
    octets = bytes(memoryview(column.take(rows))[: width * rows])
    column.reserve(0)
    return _same(octets, width)


def _unpack_numbers(column: Any, packed: bytes, rows: int) -> None:
    column.reserve(rows)
    if packed:
        column.storage[:] = _repeated(packed, len(column.storage))


def _pack_texts(column: Texts, rows: int) -> Any:
    """The (offsets, valid, bytes, values) of a column of texts; None without a value."""
    used = column.used
    offsets, valid, octets, values = column.take(rows)
    if not values:
        return None
    return (
        bytes(offsets[: 4 * (rows + 1)]),
        _same(bytes(valid[:rows]), 1),
        bytes(memoryview(octets)[:used]),
        values,
    )


def _unpack_texts(column: Texts, packed: Any, rows: int) -> None:
    if packed is None:
        column.reserve(rows)
        return
    offsets, valid, octets, values = packed
    column.offsets_storage = bytearray(offsets)
    column.valid_storage = bytearray(_repeated(valid, rows))
    column.reserve(rows)
    Octets.__init__(column, len(octets) or 1)  # no more room than that
    column.put_bytes(octets)
    column.rows, column.values = rows, values


def _same(octets: bytes, width: int) -> bytes:
    """The first number of a column where all are alike, else all of them."""
    return octets[:width] if octets[width:] == octets[:-width] else octets


def _repeated(octets: bytes, length: int) -> bytes:
    """`length` bytes, from all of them or from one repeated number."""
    if len(octets) == length:
        return octets
    if octets == octets[:1] * len(octets):
        octets = octets[:1]  # repeating one byte is quick
    return octets * (length // len(octets))
