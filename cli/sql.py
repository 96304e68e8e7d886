"""`amqpsniff sql`: one SELECT over the tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from amqpsniff.errors import UsageError

from .export import ENDINGS, format_of, refused
from .files import sink
from .options import Input, OutputFile, spread
from .output import Output
from .reading import Reading
from .render import query_result

if TYPE_CHECKING:
    from amqpsniff.reader import Capture

FORMATS = ("text", *ENDINGS)


@spread("""
    Arguments:
        SELECT: One SELECT, in DuckDB's SQL.

    Output:
        --format F: Output format: {FORMATS}. Default: what the ending of -o says, else text.
            [default]
""")
def sql(
    source: Input,
    select: str,
    bodies: bool = False,
    body_sha256: bool = False,
    format_: str | None = None,
    output: OutputFile = None,
) -> int:
    """Query the tables: frames, messages, connections, channels, links, findings.

    The statement is run by DuckDB, which sees only these tables. A capture is read once for each
    table name in the statement, and only the columns that are named are made. If a terminal is too
    narrow for the result, each row is written as lines of name and value.

    Examples:

        amqpsniff sql trace.pcapng "SELECT method, count(*) FROM frames GROUP BY 1"
        amqpsniff sql captures/ "SELECT queue, count(*) FROM messages GROUP BY 1"
        amqpsniff sql trace.pcapng "SELECT * FROM findings" -o findings.parquet
    """
    from amqpsniff.tables.export import write

    text = format_ == "text" or (format_ is None and output is None)
    if text and output is not None:
        raise UsageError(f"text is not for a file; give --format {'|'.join(ENDINGS)}")
    form = "text" if text else format_of(format_, output)
    with sink(output, source.captures, refused(form)) as file:
        reading = Reading(source, bodies=bodies, body_sha256=body_sha256)
        result, read_tables = _answer(reading.capture, select)
        if text:
            query_result.show(result, Output())
        else:
            write(result, result.schema, form, file)
    if read_tables:
        reading.judge()
    return reading.exit_code


def _answer(capture: Capture, statement: str) -> tuple[Any, list[str]]:
    """The answer to a statement, and the tables that were read to their end for it."""
    from amqpsniff.tables.query import sql
    from amqpsniff.tables.schema import EVERYTHING

    read_tables: list[str] = []

    def read(table: str, columns: Collection[str]) -> Iterator[Any]:
        yield from capture.batches(table, encoded=True, columns=columns)
        read_tables.append(table)

    sources = {name: (schema, partial(read, name)) for name, schema in EVERYTHING.items()}
    return sql(statement, sources), read_tables
