"""Rows chosen and joined by SQL: the only module that knows DuckDB.

A filter is one boolean expression over the columns of the table shown. DuckDB evaluates it on each
batch to a mask, and Arrow filters the batch by the mask: order, types and encoding of the rows stay
as they were, and one batch is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import duckdb
import pyarrow as pa

from amqpsniff.errors import FilterError


def filtered(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, where: str
) -> Iterator[pa.RecordBatch]:
    """The rows for which the expression `where` is true, in their order."""
    connection = duckdb.connect(config={"enable_external_access": False, "threads": 1})
    connection.register("rows", schema.empty_table())
    try:
        connection.execute(f"SELECT 1 FROM rows WHERE ({where}\n)")
    except duckdb.Error as error:
        raise FilterError(_one_line(error)) from None
    return _filtered(connection, batches, where)


def _filtered(
    connection: Any, batches: Iterable[pa.RecordBatch], where: str
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        connection.register("rows", pa.Table.from_batches([batch]))
        chosen = f"SELECT CAST(({where}\n) AS BOOLEAN) FROM rows"
        try:
            mask = connection.sql(chosen).arrow().read_all().column(0)
        except duckdb.Error as error:  # what only shows with values: a cast, a division
            raise FilterError(_one_line(error)) from None
        kept = batch.filter(mask.combine_chunks())
        if kept.num_rows:
            yield kept


def _one_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
