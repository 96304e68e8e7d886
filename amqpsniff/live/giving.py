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


class Giver:
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
        kept: deque[_Held] = deque()
        while self._held:
            one = self._held.popleft()
            aged = self._settle_ns is not None and now_ns - one.since_ns >= self._settle_ns
            if aged or self.waiting > Limits().held_rows:
                yield self._all_of(one)
            elif one.rows.pending == one.pending:
                kept.append(one)
            else:
                found = self._settled_of(one)
                if found is not None:
                    yield found
                if one.batch.num_rows:
                    kept.append(one)
                else:
                    one.rows.give()
        self._held = kept

    def rest(self) -> Iterator[Any]:
        """Everything that waits, as it is."""
        while self._held:
            yield self._all_of(self._held.popleft())

    def _all_of(self, one: _Held) -> Any:
        batch = _current(one.rows, one.batch, one.places)
        one.rows.give()
        self.waiting -= batch.num_rows
        return batch

    def _settled_of(self, one: _Held) -> Any:
        """The rows of a batch that are settled now, which are taken out of it; None for none."""
        waiting = waiting_rows(one.rows).take(one.places)
        settled = pc.invert(waiting)
        one.pending = one.rows.pending
        places = one.places.filter(settled)
        if not len(places):
            return None
        found = _current(one.rows, one.batch.filter(settled), places)
        one.batch = one.batch.filter(waiting)
        one.places = one.places.filter(waiting)
        self.waiting -= found.num_rows
        return found


def _current(rows: Any, batch: Any, places: Any) -> Any:
    """Rows with what became of them by now."""
    columns = settled_columns(rows, batch.schema)
    arrays = [
        columns[name].take(places) if name in columns else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
