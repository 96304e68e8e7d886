"""Counting in Arrow: columns may be dictionary encoded or not, and null all over."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from amqpsniff.tables.values import texts_of

SENT = "sent"


def codes(column: Any) -> Any:
    """A column as it is stored: the codes of one that is dictionary encoded."""
    return getattr(column, "indices", column)


def integers(column: Any, null: int) -> array[int]:
    """The numbers or codes of an Arrow array of 64 or 32 bits, with `null` for those that are."""
    column = codes(column)
    numbers = array("q" if column.type.bit_width == 64 else "i")
    if column.null_count:
        column = column.fill_null(null)
    begin, size = column.offset, numbers.itemsize
    if len(column):
        numbers.frombytes(
            memoryview(column.buffers()[1])[size * begin : size * (begin + len(column))]
        )
    return numbers


def is_one_of(column: Any, names: frozenset[str]) -> Any:
    """A mask of the rows that have one of these texts; a null is not among them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = texts_of(column)
    if texts is None:
        return pc.is_in(column, value_set=pa.array(sorted(names), pa.string()))
    chosen = [code for code, text in enumerate(texts) if text in names]
    return pc.is_in(column.indices.cast(pa.int32()), value_set=_integers("i", chosen))


def with_sent_bytes(batch: Any) -> Any:
    """Rows of messages with a column `SENT`: bytes of their bodies that were sent.

    That is the body size, or the captured bytes of an incomplete body, as in a census.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    complete = pc.invert(is_one_of(batch.column("status"), frozenset(("incomplete",))))
    size = batch.column("body_size")
    sent = pc.if_else(pc.or_(complete, pc.is_null(size)), size, batch.column("body_captured"))
    names = [*batch.schema.names, SENT]
    return pa.RecordBatch.from_arrays([*batch.columns, sent], names=names)


def grouped(
    batch: Any, names: Sequence[str], sums: Sequence[tuple[Any, str]]
) -> Iterator[tuple[Any, ...]]:
    """The distinct values of columns, each with aggregates as `pyarrow.TableGroupBy` has them.

    An aggregate may be over `row`, the number of the row in the batch.
    """
    import pyarrow as pa

    columns = {name: codes(batch.column(name)) for name in names}
    for name, _ in sums:
        if name == "row":
            columns["row"] = row_numbers(batch.num_rows)
        elif name:
            columns[name] = batch.column(name)
    groups = pa.table(columns).group_by(list(names), use_threads=False).aggregate(list(sums))
    aggregates = [f"{name}_{function}" if name else function for name, function in sums]
    cells = []
    for name in names:
        column, texts = groups.column(name).to_pylist(), texts_of(batch.column(name))
        if texts is not None:
            column = [None if code is None else texts[code] for code in column]
        cells.append(column)
    cells += [groups.column(name).to_pylist() for name in aggregates]
    yield from zip(*cells, strict=True)


def row_numbers(rows: int) -> Any:
    """The numbers from 0 up."""
    return _numbers(1 << max(16, rows.bit_length())).slice(0, rows)


@lru_cache(maxsize=2)
def _numbers(rows: int) -> Any:
    return _integers("q", range(rows))


def _integers(code: str, numbers: Iterable[int]) -> Any:
    """Integers as an Arrow array, 64 bits for `q` and 32 for `i`; quicker than pa.array."""
    import pyarrow as pa

    stored = array(code, numbers)
    kind = pa.int64() if code == "q" else pa.int32()
    return pa.Array.from_buffers(kind, len(stored), [None, pa.py_buffer(stored)])
