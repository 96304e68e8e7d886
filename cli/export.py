"""`amqpsniff export`: any table as NDJSON, CSV, Parquet or Arrow; rows of other commands too."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from operator import methodcaller
from pathlib import Path
from typing import IO, Annotated, Any

from amqpsniff.errors import UsageError

from .completions import columns
from .files import is_special, sink, standard_output
from .options import TABLES, Input, OutputFile, Rows, offer, one_of, spread
from .reading import Reading

ENDINGS = {
    "ndjson": (".ndjson", ".jsonl", ".json"),
    "csv": (".csv",),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".arrows", ".ipc"),
}
"""Formats, and the endings of file names that mean them."""

BINARY = ("parquet", "arrow")

OTLP = "otlp"
"""The format of spans; as protobuf in files with these endings."""
PROTOBUF_ENDINGS = (".pb", ".binpb")
FORMATS = (*ENDINGS, OTLP)


@spread("""
    Output:
        -t --table T: Table whose rows are written: {TABLES}.
        --columns A,B: Only these columns, in this order.
        --format F: Output format: {FORMATS}. Default: what the ending of -o says, else ndjson.
            otlp: journeys of messages as spans of OpenTelemetry, as JSON, or as protobuf in a file
            that ends in .pb. [default]
""")
def export(
    source: Input,
    rows: Rows,
    table: Annotated[str, one_of(TABLES, "no table {}")],
    columns: Annotated[str | None, offer(columns)] = None,
    bodies: bool = False,
    body_sha256: bool = False,
    format_: str | None = None,
    output: OutputFile = None,
) -> int:
    """Write the rows of a table, for programs.

    The tables are frames (a row per AMQP frame), messages (a row per publish, deliver, get and
    return), connections, channels (a row per opening of a number), links (of AMQP 1.0) and
    findings.

    Examples:

        amqpsniff export trace.pcapng --table messages -o messages.parquet
        amqpsniff export captures/ -t channels --errors -o channels.csv
        amqpsniff export trace.pcapng -t messages --columns routing_key,body_size
        amqpsniff export trace.pcapng -t messages --format otlp -o spans.json
    """
    if format_ == OTLP:
        if table != "messages" or columns is not None or rows.limit is not None:
            raise UsageError("--format otlp is for --table messages, without --columns and --limit")
        return _export_spans(source, rows, output)
    form = format_of(format_, output)
    names = [name.strip() for name in columns.split(",")] if columns is not None else None
    with sink(output, source.captures, refused(form)) as file:
        return write_rows(
            source,
            rows,
            table,
            form,
            file,
            columns=names,
            bodies=bodies,
            body_sha256=body_sha256,
            progress=output is not None or not sys.stdout.isatty(),
        )


def _export_spans(source: Input, rows: Rows, output: Path | None) -> int:
    """Write the spans of the wanted messages."""
    from amqpsniff.otlp.encoding import JSON, PROTOBUF, write

    reading = Reading(source, rows)
    protobuf = output is not None and output.suffix.lower() in PROTOBUF_ENDINGS
    with (
        reading.passing(progress=output is not None) as capture,
        sink(output, source.captures) as file,
    ):
        write(capture.traces(**rows.part()), file, PROTOBUF if protobuf else JSON)
    return reading.exit_code


def format_of(given: str | None, output: Path | None) -> str:
    """The format that is wanted, or that a file's name means; raises UsageError for any other."""
    if given is not None:
        return given
    if output is None or is_special(output):
        return "ndjson"
    for form, endings in ENDINGS.items():
        if output.suffix.lower() in endings:
            return form
    raise UsageError(f"the ending of {output} names no format; give --format {'|'.join(ENDINGS)}")


def refused(form: str) -> str:
    """The reason why a format is not for a terminal; empty if it is."""
    if form not in BINARY:
        return ""
    return f"{form} is not for a terminal; give -o FILE, or pipe it into a program"


def write_rows(
    source: Input,
    rows: Rows,
    table: str,
    form: str,
    file: IO[bytes] | None = None,
    *,
    columns: Sequence[str] | None = None,
    bodies: bool = False,
    body_sha256: bool = False,
    progress: bool = False,
    warned_of: Collection[str] | None = None,
) -> int:
    """Write the wanted rows of a table; the exit code.

    Args:
        form: A format of `amqpsniff.tables.export`.
        file: Where they are written; None for standard output.
        columns: Names of the columns in the order wanted; None for all.
        progress: Whether to say on a terminal how far it is.
        warned_of: As `Reading` has it.
    """
    from amqpsniff.tables.export import write
    from amqpsniff.tables.schema import IN_EVERY_ROW, schema_of

    schema = _schema(schema_of(table, everything=columns is not None), table, columns)
    reading = Reading(source, rows, bodies=bodies, body_sha256=body_sha256, warned_of=warned_of)
    row_filter = reading.row_filter(rows, table)

    batches = reading.chosen(row_filter, columns=columns, progress=progress)
    batches = map(methodcaller("select", schema.names), batches)
    write(batches, schema, form, file or standard_output(), IN_EVERY_ROW.get(table, ()))
    if row_filter.selection.chooses():  # of findings, say, there may well be none
        reading.miss(row_filter)
    return reading.exit_code


def _schema(schema: Any, table: str, columns: Sequence[str] | None) -> Any:
    """The schema with the wanted columns; raises UsageError for an unknown or repeated one."""
    import pyarrow as pa

    if columns is None:
        return schema
    for name in columns:
        if name not in schema.names:
            from amqpsniff.tables.statements import no_column

            raise UsageError(f"{table}: {no_column(name, schema.names)}")
        if columns.count(name) > 1:
            raise UsageError(f"--columns names `{name}` more than once")
    return pa.schema([schema.field(name) for name in columns])
