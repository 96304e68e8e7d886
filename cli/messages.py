"""`amqpsniff messages`: the messages table for reading."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Annotated, Any

import typer

from .options import (
    OUTPUT,
    Input,
    Rows,
    TimeForm,
    body_limit_option,
    check_format,
    format_option,
    spread,
    verbose_option,
)
from .render.clock import FORMS as TIME_FORMS

FORMATS = ("text", "ndjson", "csv")

BODY_LIMIT = 256
"""Bytes of a body shown by default: a few lines."""


@spread
def messages(
    source: Input,
    rows: Rows,
    verbose: Annotated[bool, verbose_option("Under each line all properties and headers.")] = False,
    body: Annotated[
        bool,
        typer.Option(
            "--body",
            help="Under each line the beginning of the body, as text or hex; in ndjson and csv "
            "the whole body.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    body_limit: Annotated[
        int, body_limit_option("Bytes of a body that --body shows.")
    ] = BODY_LIMIT,
    time: TimeForm = TIME_FORMS[0],
    format_: Annotated[
        str, format_option(FORMATS, "; the last two give the rows of the messages table")
    ] = FORMATS[0],
) -> int:
    """List messages: what was published, delivered, got and returned, and what became of it.

    A line says when, the packet's number, the client, the direction (→ to the server, ← from it),
    the channel, the method, the queue (q) of a delivery, exchange (x), routing key (rk), size,
    whether it is complete in the capture, the outcome with the time it took, and properties.

    Outcomes are, of a publish, confirmed, rejected, returned, unconfirmed; of a delivery acked,
    requeued, discarded, automatic (it wanted no ack), unsettled. `amqpsniff trace` joins the lines
    of one message.

    Examples:

        amqpsniff messages trace.pcapng --where "body_size > 100000"
        amqpsniff messages trace.pcapng --where "outcome = 'unconfirmed'"
        amqpsniff messages trace.pcapng --connection :43700 -v --body
        amqpsniff messages trace.pcapng --format csv > messages.csv
    """
    check_format(format_, FORMATS)
    if format_ != "text":
        from .rows import write_rows

        return write_rows(source, rows, "messages", format_, bodies=body)
    return _Listing(source, rows, verbose, body_limit if body else None, time).write()


class _Listing:
    """One run of the command; `body_limit` is null when bodies are not shown."""

    def __init__(
        self, source: Input, rows: Rows, verbose: bool, body_limit: int | None, form: str
    ) -> None:
        from amqpsniff.analysis.selection import RowFilter

        from .output import Output
        from .reading import Reading

        self._verbose = verbose
        self._body_limit = body_limit
        self._form = form
        self._output = Output()
        self._reading = Reading(source, rows, bodies=body_limit is not None)
        self._wanted = RowFilter(rows.selection(), "messages", self._reading.started)

    def write(self) -> int:
        """Write all lines; the exit code."""
        from .render.clock import Clock
        from .render.lines import Lines

        lines: Lines | None = None
        for _, batch in self._reading.rows("messages"):
            if lines is None:
                short = self._output.narrow
                clock = Clock(self._form, self._reading.started(), short=short)
                several = len(self._reading.capture.names) > 1
                lines = Lines(self._output, clock, several=several)
            self._output.lines(self._text(lines, self._wanted.of(_in_order(batch))))
            if self._wanted.done:
                break
        self._reading.miss(self._wanted)
        return self._reading.exit_code

    def _text(self, lines: Any, batch: Any) -> Iterator[str]:
        from amqpsniff.analysis.one_line import message_parts, outcome_parts, property_parts
        from amqpsniff.tables.values import values

        from .render.body import preview
        from .render.tree import message_tree

        early = self._reading.capture.early
        names = batch.schema.names
        paint = self._output.paint
        for row in zip(*(values(batch, name) for name in names), strict=True):
            message = dict(zip(names, row, strict=True))
            place = SimpleNamespace(**message)
            outcome = outcome_parts(message, early=early)
            yield lines.message(place, message_parts(message), outcome, property_parts(message))
            if self._verbose:
                yield from message_tree(message, paint)
            if self._body_limit is not None and message["body"] is not None:
                yield from preview(message["body"], self._body_limit, self._output)


def _in_order(batch: Any) -> Any:
    """The rows of a batch by the time of their method; they come in the order of their end.

    That is the same one mostly, and Arrow's functions take as long to import as much else here.
    """
    times_ns = batch.column("ts_ns").to_pylist()
    if None not in times_ns and all(one <= next_ for one, next_ in pairwise(times_ns)):
        return batch
    import pyarrow.compute as pc

    return batch.take(pc.sort_indices(batch.column("ts_ns")))
