"""Operations: what applications ask of each other, as frameworks name it, with counts and times.

The rows are those of messages by `framework` and `operation`. Messages of which no operation is
known are a row too, so that nothing is missing from the counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.report_tables import DUCKDB_SETUP, OPERATIONS, find

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = (
    "framework", "operation", "method", "ts_ns", "retry_count", "error_type", "outcome",
    "outcome_ns", "published_ns",
)  # fmt: skip
"""Columns of messages that are read."""


def operations(batches: Iterable[Any]) -> pa.Table:
    """The rows of the report `operations` from batches of messages with `COLUMNS`."""
    import pyarrow as pa

    from amqpsniff.tables.query import answer
    from amqpsniff.tables.schema import schema_of

    every = schema_of("messages", everything=True)
    schema = pa.schema([field for field in every if field.name in COLUMNS])
    read = (batch.select(schema.names) for batch in batches)
    given = {"messages": (schema, lambda _: read)}
    return answer(find(OPERATIONS).statement(1, {"messages": "messages"}), given, DUCKDB_SETUP)
