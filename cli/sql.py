"""`amqpsniff sql`: one SELECT over the tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Annotated, Any

from amqpsniff.errors import UsageError

from .export import BINARY, ENDINGS, format_of, refuse_captures, replacing
from .options import Input, OutputFile, one_of, spread
from .output import Output
from .reading import Reading
from .render import query_result
from .rows import standard_output

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
    format_: Annotated[str | None, one_of(FORMATS, "no format {} here")] = None,
    output: OutputFile = None,
) -> int:
    """Ask the tables: frames, messages, connections, channels, links, findings.

    The statement is run by DuckDB, which sees only these tables. A capture is read once for each
    table name in the statement, and only the columns that are named are made. If a terminal is too
    narrow for the result, each row is written as lines of name and value.

    Examples:

        amqpsniff sql trace.pcapng "SELECT method, count(*) FROM frames GROUP BY 1"
        amqpsniff sql captures/ "SELECT queue, count(*) FROM messages GROUP BY 1"
        amqpsniff sql trace.pcapng "SELECT * FROM findings" -o findings.parquet
    """
    form = _format(format_, output)
    if output is None and form in BINARY and sys.stdout.isatty():
        raise UsageError(f"{form} is not for a terminal; give -o FILE, or pipe it into a program")
    asked = _Question(source, select, bodies=bodies, body_sha256=body_sha256)
    if output is None:
        return asked.show() if form == "text" else asked.write(form, None)
    if form == "text":
        raise UsageError(f"text is not for a file; give --format {'|'.join(ENDINGS)}")
    refuse_captures(output, source.captures)
    with replacing(output) as file:
        return asked.write(form, file)


def _format(wanted: str | None, output: Path | None) -> str:
    if wanted == "text" or (wanted is None and output is None):
        return "text"
    if wanted is not None and wanted not in FORMATS:
        raise UsageError(f"no format `{wanted}`; there are {', '.join(FORMATS)}")
    return format_of(wanted, output)


class _Question:
    """One statement and its answer."""

    def __init__(self, source: Input, statement: str, *, bodies: bool, body_sha256: bool) -> None:

        self._reading = Reading(source, bodies=bodies, body_sha256=body_sha256)
        self._statement = statement
        self._whole = False

    def write(self, form: str, file: Any) -> int:
        """Write the answer in a format for programs, to standard output without a `file`."""
        from amqpsniff.tables.export import write

        result = self._ask()
        write(result, result.schema, form, standard_output() if file is None else file)
        return self._end()

    def show(self) -> int:
        """Write the answer as text."""
        query_result.show(self._ask(), Output())
        return self._end()

    def _ask(self) -> Any:
        from amqpsniff.tables.query import sql
        from amqpsniff.tables.schema import EVERYTHING

        named = {name: (schema, self._opened(name)) for name, schema in EVERYTHING.items()}
        return sql(self._statement, named)

    def _opened(self, table: str) -> Callable[[Collection[str]], Iterator[Any]]:
        def read(columns: Collection[str]) -> Iterator[Any]:
            yield from self._reading.capture.batches(table, encoded=True, columns=columns)
            self._whole = True

        return read

    def _end(self) -> int:
        """Say what is wrong with the captures, where one was read to its end; the exit code."""
        if self._whole:
            self._reading.judge(self._reading.capture.found)
        return self._reading.exit_code
