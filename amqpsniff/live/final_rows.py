"""Rows of a live run: each is returned once, when it is final.

A request's row waits for its reply and a message's for its outcome; all others are returned at
once, so rows come in the order in which they become final. After `settle_ns` a row is returned as
it is. Batches are made together with their rows; later changes are written when they are returned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from amqpsniff.session.limits import Limits
from amqpsniff.session.row_buffer import Batch
from amqpsniff.tables.batches import Maker, settled_columns, waiting_rows


class _Held:
    """Rows of one batch that may still change.

    `rows` are the decoder's, `batch` those of them that wait, `places` where they are among `rows`,
    `pending` how many waited when it was last looked.
    """

    __slots__ = ("rows", "batch", "places", "pending", "since_ns")

    def __init__(self, rows: Any, batch: Any, places: Any, since_ns: int) -> None:
        self.rows = rows
        self.batch = batch
        self.places = places
        self.pending = rows.pending
        self.since_ns = since_ns


class FinalRows:
    """The rows of `frames` or `messages` as batches, encoded.

    Args:
        table: Which of the two.
        settle_ns: How long a row waits; None for as long as it takes.
        columns: Those that are given; None for all but links.
    """

    def __init__(
        self, table: str, settle_ns: int | None, columns: Collection[str] | None = None
    ) -> None:
        self.table = table
        self.maker = Maker(table, encoded=True, columns=columns)
        self.waiting = 0
        self._settle_ns = settle_ns
        self._held: deque[_Held] = deque()

    def add(self, taken: Batch, now_ns: int) -> Iterator[Any]:
        """Take the rows of `Pipeline.take_open`; gives those that will not change."""
        rows: Any = taken[0] if self.table == "frames" else taken[1]
        if not rows.rows:
            return
        batch = self.maker.make(taken)
        if not rows.pending or self._settle_ns == 0:
            rows.give()
            yield batch
            return
        waiting = waiting_rows(rows)
        settled = batch.filter(pc.invert(waiting))
        if settled.num_rows:
            yield settled
        places = pc.indices_nonzero(waiting)
        if len(places):
            self._held.append(_Held(rows, batch.take(places), places, now_ns))
            self.waiting += len(places)

    def settled(self, now_ns: int) -> Iterator[Any]:
        """Rows that are settled since the last call, or waited long enough."""
        remaining: deque[_Held] = deque()
        while self._held:
            held = self._held.popleft()
            aged = self._settle_ns is not None and now_ns - held.since_ns >= self._settle_ns
            if aged or self.waiting > Limits().held_rows:
                yield self._all_of(held)
            elif held.rows.pending == held.pending:
                remaining.append(held)
            else:
                rows = self._settled_of(held)
                if rows is not None:
                    yield rows
                if held.batch.num_rows:
                    remaining.append(held)
                else:
                    held.rows.give()
        self._held = remaining

    def rest(self) -> Iterator[Any]:
        """Everything that waits, as it is."""
        while self._held:
            yield self._all_of(self._held.popleft())

    def _all_of(self, held: _Held) -> Any:
        batch = _current(held.rows, held.batch, held.places)
        held.rows.give()
        self.waiting -= batch.num_rows
        return batch

    def _settled_of(self, held: _Held) -> Any:
        """The rows of a batch that are settled now, which are taken out of it; None for none."""
        waiting = waiting_rows(held.rows).take(held.places)
        settled = pc.invert(waiting)
        held.pending = held.rows.pending
        places = held.places.filter(settled)
        if not len(places):
            return None
        rows = _current(held.rows, held.batch.filter(settled), places)
        held.batch = held.batch.filter(waiting)
        held.places = held.places.filter(waiting)
        self.waiting -= rows.num_rows
        return rows


def _current(rows: Any, batch: Any, places: Any) -> Any:
    """Rows with their current outcomes."""
    columns = settled_columns(rows, batch.schema)
    arrays = [
        columns[name].take(places) if name in columns else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
