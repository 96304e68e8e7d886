"""Operations: what applications ask of each other, as frameworks name it, with counts and times.

The rows are those of messages by `framework` and `operation`. Messages of which no operation is
known are a row too, so that nothing is missing from the counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.report_tables import DUCKDB_SETUP, Report

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = (
    "framework", "operation", "method", "ts_ns", "retry_count", "error_type", "outcome",
    "outcome_ns", "published_ns",
)  # fmt: skip
"""Columns of messages that are read."""

OPERATIONS = Report(
    "operations",
    "Operations of frameworks",
    "Messages by what they ask for: rates, retries, failures, time in the queue and at work.",
    "the most failures, then the most messages",
    {
        "framework": "the framework that wrote the messages; null if unknown",
        "operation": "the task, the event, the type of message; null if unknown",
        "published": "messages that clients published",
        "per_second": "publishes a second, from the first to the last; null for one",
        "delivered": "messages that the broker delivered, or gave to basic.get",
        "retried": "publishes of messages that were tried before",
        "most_retries": "the most times that one of them was tried before",
        "failed": "publishes that report an exception: in error queues, in replies",
        "error_type": "the most frequent exception",
        "refused": "deliveries that the client put back or rejected",
        "queue_p50_ms": "time from publish to delivery, percentile in milliseconds",
        "queue_p95_ms": "the same",
        "work_p50_ms": "time from delivery to its settlement, percentile in milliseconds",
        "work_p95_ms": "the same",
    },
)
"""Columns of the rows."""


def operations(batches: Iterable[Any]) -> pa.Table:
    """The rows of `OPERATIONS` from batches of messages with `COLUMNS`."""
    import pyarrow as pa

    from amqpsniff.tables.query import answer
    from amqpsniff.tables.schema import schema_of

    every = schema_of("messages", everything=True)
    schema = pa.schema([field for field in every if field.name in COLUMNS])
    read = (batch.select(schema.names) for batch in batches)
    given = {"messages": (schema, lambda _: read)}
    return answer(OPERATIONS.statement(1, {"messages": "messages"}), given, DUCKDB_SETUP)
