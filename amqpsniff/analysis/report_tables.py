"""The reports: SQL over the tables, run by DuckDB on a capture and by Spark on an archive.

A report is a file `reports/NAME.sql` and a row of `REPORTS`. The SQL is written once, in what
DuckDB and Spark have in common; `DUCKDB_SETUP` defines functions of Spark that DuckDB lacks. Braces
in it hold the name of a table, of an expression in `EXPRESSIONS`, or of a number in `_numbers`.

The rows of `topology` are made in two steps, since a graph is no query: the SQL chooses and counts
the rows that matter, `topology_edges` makes edges of them, in both engines.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

from amqpsniff.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa


TOPOLOGY = "topology"

OPERATIONS = "operations"
"""The report that needs columns of packs."""

OPERATION_COLUMNS = (
    "framework", "operation", "method", "ts_ns", "retry_count", "error_type", "outcome",
    "outcome_ns", "published_ns",
)  # fmt: skip
"""Columns of messages that `operations` reads."""

ERRORS = "errors"
"""The table of errors in files, which only reports read."""

BUCKETS_S = (1, 10, 60, 600, 3_600, 86_400)
"""Lengths of time buckets, in seconds."""

MAX_BUCKETS = 120
"""Buckets of a chart that can be distinguished."""

MAX_GIVEN_BUCKETS = 100_000
"""Buckets over which what is outstanding is carried on, at most: a client may be stuck for days,
and times in a capture may be wrong by decades."""

FULL_SHARE = 0.9
"""Share of the prefetch count from which on a channel waits for its consumer."""

VHOST = "virtual host; null where the connection began before the capture"
"""The meaning of a column with the virtual host of names."""

ACCURACY = 10_000
"""Of Spark's `percentile_approx`: the rank is right to a ten-thousandth."""

EXPRESSIONS = {
    "host": "regexp_replace(client, ':[0-9]+$', '')",
    "sent": "CASE WHEN status = 'incomplete' AND body_size IS NOT NULL THEN body_captured "
    "ELSE body_size END",
    "vhosts": "(SELECT connection_id, max(vhost) AS vhost FROM {{connections}} "
    "GROUP BY connection_id) AS vhosts",
    "bucket": "timestamp_seconds((ts_ns - pmod(ts_ns, {bucket_ns})) / 1e9)",
}
"""The client's address without its port; bytes sent of a message's body (those announced, or those
seen if it never ended); the virtual host of each connection, which rows of messages do not have;
the beginning of the bucket in which a time lies."""

DUCKDB_SETUP = (
    "SET default_null_order = 'nulls_first_on_asc_last_on_desc'",
    "CREATE TEMP MACRO array_join(texts, separator) AS array_to_string(texts, separator)",
    "CREATE TEMP MACRO explode(numbers) AS unnest(numbers)",
    "CREATE TEMP MACRO sequence(first, last, step) AS generate_series(first, last, step)",
    "CREATE TEMP MACRO collect_list(one) AS list(one)",
    "CREATE TEMP MACRO percentile_approx(number, rank, accuracy) AS quantile_disc(number, rank)",
    "CREATE TEMP MACRO pmod(number, divisor) AS ((number % divisor) + divisor) % divisor",
    "CREATE TEMP MACRO timestamp_seconds(seconds) AS to_timestamp(seconds)",
)
"""Macros with which DuckDB runs SQL that is written for Spark."""


@dataclass(frozen=True)
class Report:
    """A row: name and description of a report, and the meaning of each of its columns.

    Attributes:
        order: The order of its rows.
    """

    name: str
    title: str
    about: str
    order: str
    columns: Mapping[str, str]

    def statement(self, bucket_seconds: int, tables: Mapping[str, str] | None = None) -> str:
        """The SQL, with tables under their own names or those that are given."""
        names = tables or {name: name for name in self.reads()}
        return _filled(self.name, bucket_seconds).format_map(names)

    def reads(self) -> dict[str, list[str]]:
        """The columns that the SQL names, by table."""
        text = _filled(self.name, 1)
        words = set(re.findall(r"\w+", text))
        tables = dict.fromkeys(field for _, field, _, _ in Formatter().parse(text) if field)
        return {
            name: [column for column in schema(name).names if column in words] for name in tables
        }

    def finished(self, rows: pa.Table) -> pa.Table:
        """The rows of the report, from the rows of its SQL."""
        if self.name != TOPOLOGY:
            return rows
        from .topology_edges import ORDER, edges

        return edges(rows.sort_by([(name, "ascending") for name in ORDER]).to_batches())


REPORTS = {
    report.name: report
    for report in (
        Report(
            "traffic",
            "Traffic by exchange, routing key, queue and client",
            "Messages and bytes of their bodies, published, delivered and returned.",
            "the most messages",
            {
                "vhost": VHOST,
                "exchange": 'name; the default exchange is ""',
                "routing_key": "as it was published",
                "queue": "null for publishes, which have none",
                "client": "address of the client",
                "published": "messages that clients published",
                "published_bytes": "bytes of their bodies",
                "delivered": "messages that the broker delivered, or gave to basic.get",
                "delivered_bytes": "bytes of their bodies",
                "returned": "messages that the broker returned",
                "returned_bytes": "bytes of their bodies",
                "mean_bytes": "mean size of a body; null where no size was captured",
                "max_bytes": "largest body; null where no size was captured",
            },
        ),
        Report(
            "latency",
            "Confirm and acknowledgement latency",
            "Time from publish to confirm or nack, and from delivery to its settlement.",
            "the slowest, confirms before settlements",
            {
                "kind": "`confirm` or `settle`",
                "client": "address of the client",
                "vhost": VHOST,
                "exchange": "exchange of the messages",
                "time": "beginning of the time bucket",
                "messages": "messages whose time is known",
                "p50_ms": "percentile, in milliseconds: a time that occurred",
                "p90_ms": "the same",
                "p95_ms": "the same",
                "p99_ms": "the same",
                "max_ms": "the longest",
            },
        ),
        Report(
            "saturation",
            "Unsettled deliveries and prefetch over time",
            "How full clients are: the most deliveries outstanding in each time bucket, against "
            "the prefetch count, and the most publishes waiting for their confirm.",
            "the earliest",
            {
                "time": "beginning of the time bucket",
                "client": "address of the client",
                "channels": "channels on which something changed or was outstanding",
                "unknown_channels": "channels open before the capture or with missing frames; "
                "other amounts are then lower bounds",
                "unsettled": "deliveries, the sum of the most of each channel; null if unknown",
                "unconfirmed": "publishes, the same",
                "prefetch": "sum of the channels' prefetch counts; null if none is known",
                "saturation": "unsettled as a share of the prefetch count, on channels where both "
                "are known",
                "full_channels": "channels with 90 % of their prefetch count or more",
            },
        ),
        Report(
            "redelivery",
            "Redelivery and poison messages",
            "Deliveries that were not the first of their message or did not end it.",
            "the most redeliveries",
            {
                "vhost": VHOST,
                "queue": "name; the routing key if the queue is unknown",
                "client": "address of the client",
                "delivered": "deliveries",
                "redelivered": "deliveries that the broker marked as redelivered",
                "requeued": "deliveries that went back to their queue",
                "discarded": "deliveries that the client rejected for good",
                "redelivered_share": "redelivered of delivered",
                "poison_messages": "message ids that were delivered at least 5 times",
                "most_deliveries": "the most deliveries of one redelivered message id",
                "worst_message_id": "that message id",
            },
        ),
        Report(
            "losses",
            "Publishes at risk",
            "What became of publishes: unprotected, refused, returned, unanswered, cut off.",
            "the most lost, then the most unprotected",
            {
                "vhost": VHOST,
                "exchange": 'name; the default exchange is ""',
                "client": "address of the client",
                "published": "publishes",
                "confirmed": "publishes that the broker confirmed",
                "unprotected": "publishes without confirms or transactions that were not returned, "
                "on channels whose mode is known",
                "rejected": "publishes that the broker nacked",
                "returned": "publishes that the broker returned",
                "unconfirmed": "publishes without an answer by the end of the channel or capture",
                "incomplete": "publishes inside which the connection ended",
            },
        ),
        Report(
            "churn",
            "Churn of connections and channels",
            "Connections by the client's address and application: rates, lifetimes, reconnect "
            "loops, leaks.",
            "the most connections",
            {
                "client": "address of the client",
                "application": 'name of the connection, else product of the client, else ""',
                "connections": "connections",
                "midstream": "connections that began before the capture",
                "per_minute": "connections opened a minute, from the first beginning to the last; "
                "null for fewer than three",
                "p50_life_s": "percentile of the lives of those that ended, in seconds",
                "p95_life_s": "the same",
                "short": "connections that lived less than a second",
                "left_open": "connections that did not end in the capture",
                "channels": "channels opened by all",
                "channels_each": "channels of a connection, on average",
                "reconnect_loops": "occurrences in findings about the client's address",
                "connection_churn": "the same",
                "channel_churn": "the same",
                "leaks": "the same",
            },
        ),
        Report(
            "closes",
            "Close codes by client and method",
            "Why connections and channels were closed.",
            "errors, the most frequent",
            {
                "kind": "`connection` or `channel`",
                "closed_by": "`client`, `server`, `fin` or `rst`",
                "code": "reply code",
                "method": "the method that caused the close; null if none",
                "client": "address of the client",
                "closes": "how many",
                "example_text": "one of their reply texts",
            },
        ),
        Report(
            TOPOLOGY,
            "Topology",
            "Clients, exchanges, bindings and queues as edges of a graph, with messages.",
            "the most messages",
            {
                "vhost": VHOST,
                "source_kind": "`client`, `exchange` or `queue`",
                "source": 'name, or address of the client; the default exchange is ""',
                "target_kind": "the same",
                "target": "the same",
                "label": "routing key of a binding, else null",
                "removed": "true if the binding or one of its ends was deleted; null if the edge "
                "is no binding",
                "messages": "messages along the edge; null for bindings",
                "bytes": "bytes of their bodies; null for bindings",
            },
        ),
        Report(
            OPERATIONS,
            "Operations of frameworks",
            "Messages by what they ask for: rates, retries, failures, time in the queue and at "
            "work.",
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
        ),
        Report(
            "quality",
            "Quality of the captures",
            "What is missing from captures that have messages or errors, or begin a connection.",
            "files with errors, then the most bytes lost",
            {
                "capture": "name of the file",
                "connections": "AMQP connections that begin in it",
                "midstream": "those that began before it",
                "one_sided": "those with packets of one direction only",
                "packets": "packets of these connections",
                "retransmissions": "retransmitted segments",
                "gaps": "gaps in their bytes",
                "lost_bytes": "bytes missing in gaps",
                "truncated": "messages cut by a snap length",
                "incomplete": "messages that never ended",
                "error": "what is wrong with the file, else null",
                "skipped_bytes": "bytes of the file that were skipped because of it",
            },
        ),
        Report(
            "findings",
            "Findings by day and client",
            "How often each thing was found.",
            "the gravest, then the most frequent",
            {
                "day": "UTC; null where a finding has no time",
                "client": "address of the client; null where a finding is about the capture",
                "severity": "`error`, `warning` or `info`",
                "code": "code of the finding",
                "title": "its title",
                "findings": "how many",
                "occurrences": "sum of their counts",
                "connections": "connections with it",
                "consequences": "findings caused by another one",
            },
        ),
    )
}
"""The reports, in the order in which they are listed and shown on a page."""


def made_of(frameworks: bool) -> list[str]:
    """The names of all reports that tables can give, with columns of frameworks or without."""
    return [name for name in REPORTS if frameworks or name != OPERATIONS]


def find(name: str) -> Report:
    """A report by name; `UsageError` names those there are."""
    try:
        return REPORTS[name]
    except KeyError:
        raise UsageError(f"no report `{name}`; there are {', '.join(REPORTS)}") from None


def report_table(
    capture: Any,
    name: str,
    *,
    bucket_seconds: int = 0,
    rows: Callable[..., Iterable[tuple[str, Any]]] | None = None,
) -> pa.Table:
    """The rows of a report about a capture, which is read once.

    Args:
        capture: The `amqpsniff.Capture` that it is about.
        name: One of `REPORTS`; `UsageError` for another.
        bucket_seconds: Length of a time bucket; 0 to choose one by the time that there is,
            `UsageError` for less.
        rows: Reads the capture in place of its method `tables`.
    """
    from amqpsniff.tables.query import answer
    from amqpsniff.tables.spool import Spool

    report = find(name)
    if bucket_seconds < 0:
        raise UsageError(f"bucket_seconds is {bucket_seconds}; it is a length in seconds")
    reads = report.reads()
    read = {table: columns for table, columns in reads.items() if table != ERRORS}
    with tempfile.TemporaryDirectory(prefix="amqpsniff-") as folder:
        waiting = {table: Spool(Path(folder) / table) for table in reads}
        for table, batch in (rows or partial(capture.tables, encoded=True))(*read, columns=read):
            waiting[table].add(batch)
        if ERRORS in reads:
            for batch in _errors(capture).select(reads[ERRORS]).to_batches():
                waiting[ERRORS].add(batch)
        bucket = bucket_seconds or bucket_for(capture.totals.first_ns, capture.totals.last_ns)
        given = {
            table: (_chosen(schema(table), reads[table]), spool.batches)
            for table, spool in waiting.items()
        }
        return report.finished(answer(report.statement(bucket), given, DUCKDB_SETUP))


def operations(batches: Iterable[Any]) -> pa.Table:
    """The rows of the report `operations` from batches of messages with `OPERATION_COLUMNS`.

    Messages without a known operation are a row too, so that the counts are complete.
    """
    import pyarrow as pa

    from amqpsniff.tables.query import answer
    from amqpsniff.tables.schema import schema_of

    every = schema_of("messages", everything=True)
    schema = pa.schema([field for field in every if field.name in OPERATION_COLUMNS])
    read = (batch.select(schema.names) for batch in batches)
    tables = {"messages": (schema, lambda _: read)}
    return answer(find(OPERATIONS).statement(1, {"messages": "messages"}), tables, DUCKDB_SETUP)


def bucket_for(first_ns: int | None, last_ns: int | None) -> int:
    """Seconds of a bucket with which a span of time has at most `MAX_BUCKETS`."""
    span = ((last_ns or 0) - (first_ns or 0)) / 1e9
    return next((seconds for seconds in BUCKETS_S if span / seconds <= MAX_BUCKETS), BUCKETS_S[-1])


def schema(table: str) -> Any:
    """The schema of a table that reports read."""
    if table == ERRORS:
        from amqpsniff.tables.file_errors import schema as of_errors

        return of_errors()
    from amqpsniff.tables.schema import schema_of

    return schema_of(table, everything=True)


def _chosen(full: Any, names: Iterable[str]) -> Any:
    import pyarrow as pa

    return pa.schema([full.field(name) for name in names])


def _errors(capture: Any) -> Any:
    """The table `errors` of a capture that was read."""
    from amqpsniff.tables.file_errors import error_rows, error_table

    errors = [
        (_size(name), [finding for finding in capture.found if finding.capture == name])
        for name in capture.names
    ]
    return error_table(error_rows(errors))


def _size(name: str) -> int | None:
    return Path(name).stat().st_size if Path(name).is_file() else None


@cache
def _filled(name: str, bucket_seconds: int) -> str:
    """The SQL of a report, in which only the names of tables are left in braces."""
    text = Path(__file__).with_name("reports").joinpath(f"{name}.sql").read_text(encoding="utf-8")
    numbers = {**_numbers(), "bucket_ns": bucket_seconds * 1_000_000_000}
    values = {key: text.format_map(numbers) for key, text in EXPRESSIONS.items()} | numbers
    fields = {field for _, field, _, _ in Formatter().parse(text) if field}
    return text.format_map({field: values.get(field, f"{{{field}}}") for field in fields})


def _numbers() -> dict[str, Any]:
    """Thresholds of the reports; a report and a rule about the same thing share one."""
    from amqpsniff.analysis.times import DAY_NS
    from amqpsniff.session.rules.occasions import SHORT_NS
    from amqpsniff.session.rules.requeueing import POISON_DELIVERIES
    from amqpsniff.spec import DELIVERIES, FIRST_ERROR_CODE, PUBLISHES

    from .topology import ROUTING, TRANSFER

    return {
        "accuracy": ACCURACY,
        "routing_methods": tuple(sorted(ROUTING)),
        "transfer": TRANSFER,
        "day_ns": DAY_NS,
        "first_error_code": FIRST_ERROR_CODE,
        "full_share": FULL_SHARE,
        "most_buckets": MAX_GIVEN_BUCKETS,
        "poison_deliveries": POISON_DELIVERIES,
        "publishes": tuple(sorted(PUBLISHES)),
        "deliveries": tuple(sorted(DELIVERIES)),
        "short_ns": SHORT_NS,
    }
