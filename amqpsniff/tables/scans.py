"""Tables of a capture as sources that other query engines read: pyarrow, DuckDB, polars.

An engine requests columns and the rows that an expression chooses. Other columns are not made;
rows are chosen by the engine's own code, batch by batch, so memory stays that of one
batch. Every query is one reading of the input from its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from amqpsniff.errors import UsageError
from amqpsniff.installation import how_to_add

if TYPE_CHECKING:
    import polars as pl

Open = Callable[[Collection[str]], Iterator[pa.RecordBatch]]
"""Begins a reading that gives batches with these columns, in the table's order."""


class ScannedTable(ds.Dataset):  # type: ignore[misc]
    """A table as a dataset of pyarrow, which DuckDB and pandas read too.

    It is not written and has no fragments: what reads it does so through `scanner`.
    """

    def __init__(self, schema: pa.Schema, opened: Open) -> None:
        self._columns = schema
        self._open = opened

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return self._columns

    def scanner(
        self,
        columns: Collection[str] | None = None,
        filter: ds.Expression | None = None,
        **options: Any,
    ) -> ds.Scanner:
        """A reading of these columns, None for all, of the rows that an expression chooses."""
        names = self._columns.names if columns is None else list(columns)
        needed = self._needed(names, filter)
        batches = self._open(needed.names)
        if filter is not None:
            options["filter"] = filter
        return ds.Scanner.from_batches(batches, schema=needed, columns=names, **options)

    def _needed(self, requested: list[str], filter: ds.Expression | None) -> pa.Schema:
        """The schema of the columns to read: an expression has its columns in its text only."""
        text = "" if filter is None else str(filter)
        names = [name for name in self._columns.names if name in requested or name in text]
        return pa.schema([self._columns.field(name) for name in names or self._columns.names[:1]])

    def get_fragments(self, filter: ds.Expression | None = None) -> Iterator[ds.Fragment]:
        """None: a capture is read in the order of time."""
        return iter(())

    def __reduce__(self) -> Any:
        raise TypeError("a table of a capture cannot be pickled; open the capture where it is read")


def lazy_frame(schema: pa.Schema, opened: Open) -> pl.LazyFrame:
    """A table as a lazy frame of polars; raises UsageError without polars."""
    try:
        import polars as pl
        from polars.io.plugins import register_io_source
    except ImportError:
        raise UsageError(f"there is no polars here; {how_to_add('dataframes')}") from None

    def read(
        columns: list[str] | None,
        predicate: pl.Expr | None,
        limit: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        """Data frames with these columns, and rows that the predicate chooses of the first ones."""
        remaining = limit
        for batch in opened(schema.names if columns is None else columns):
            frame = pl.from_arrow(batch)
            assert isinstance(frame, pl.DataFrame)
            frame = frame if columns is None else frame.select(columns)
            if remaining is not None:
                frame = frame.head(remaining)
                remaining -= frame.height
            yield frame if predicate is None else frame.filter(predicate)
            if remaining == 0:
                return

    empty = pl.from_arrow(schema.empty_table())
    assert isinstance(empty, pl.DataFrame)
    return register_io_source(read, schema=empty.schema, is_pure=True)
