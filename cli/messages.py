"""`amqpsniff messages`: the messages table for reading."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Annotated, Any

from amqpsniff.analysis.client_names import COLUMNS, ClientNames
from amqpsniff.analysis.one_line import message_parts, outcome_parts, property_parts

from .options import By, Input, Rows, TimeForm, at_least, one_of, spread
from .output import Output
from .reading import Reading
from .render.body import preview
from .render.clock import FORMS as TIME_FORMS
from .render.clock import Clock
from .render.lines import Lines
from .render.tree import message_tree
from .rows import write_rows

FORMATS = ("text", "ndjson", "csv")


@spread("""
    Output:
        -v --verbose: Under each line all properties and headers.
        --bodies: Show whole bodies, in rows too.
        --body-limit N: Bytes of each body shown under its line, as text or hex. [default]
        --format F: Output format: {FORMATS}; the last two give the rows of the messages table.
            [default]
""")
def messages(
    source: Input,
    rows: Rows,
    verbose: bool = False,
    bodies: bool = False,
    body_limit: Annotated[int, at_least(0)] = 0,
    by: By = None,
    time: TimeForm = TIME_FORMS[0],
    format_: Annotated[str, one_of(FORMATS, "no format {} here")] = FORMATS[0],
) -> int:
    """List messages: what was published, delivered, got and returned, and what became of it.

    A line has the time, the packet's number, the client, the direction (→ to the server, ← from
    it) and the channel. The outcome follows with the time it took, on a terminal at the right edge.
    Then come method, queue (q) of a delivery, exchange (x), routing key (rk), size, a mark if parts
    are not in the capture, and properties.

    A publish is confirmed, rejected, returned or unconfirmed; a delivery acked, requeued,
    discarded, automatic (auto-ack) or unsettled. `amqpsniff trace` joins the lines of one message.

    Examples:

        amqpsniff messages trace.pcapng --queue "orders.*" --errors
        amqpsniff messages trace.pcapng --client shop --outcome unconfirmed
        amqpsniff messages trace.pcapng --where "body_size > 100000" --body-limit 99
        amqpsniff messages trace.pcapng --exchange celery --by operation
        amqpsniff messages trace.pcapng --format csv > messages.csv
    """
    if by is not None:
        from .report_table import write_operations

        return write_operations(source, rows, rows.limit, format_)
    if format_ != "text":
        return write_rows(source, rows, "messages", format_, bodies=bodies)
    limit = sys.maxsize if bodies else body_limit
    return _Listing(source, rows, verbose, limit, time).write()


class _Listing:
    """One run of the command; without a `body_limit` no bodies are shown."""

    def __init__(
        self, source: Input, rows: Rows, verbose: bool, body_limit: int, form: str
    ) -> None:

        self._verbose = verbose
        self._body_limit = body_limit
        self._form = form
        self._output = Output()
        self._reading = Reading(source, rows, bodies=body_limit > 0)
        self._wanted = self._reading.row_filter(rows, "messages")

    def write(self) -> int:
        """Write all lines; the exit code."""

        lines: Lines | None = None
        clients = ClientNames()
        columns = {"frames": COLUMNS, "messages": None}
        for table, batch in self._reading.rows(*columns, columns={"frames": COLUMNS}):
            if table == "frames":
                clients.add(batch)
                continue
            if lines is None:
                short = self._output.narrow
                clock = Clock(self._form, self._reading.started(), short=short)
                several = len(self._reading.capture.names) > 1
                lines = Lines(self._output, clock, several=several, clients=clients)
            self._output.lines(self._text(lines, self._wanted.of(_in_order(batch))))
            if self._wanted.done:
                break
        self._reading.miss(self._wanted)
        return self._reading.exit_code

    def _text(self, lines: Any, batch: Any) -> Iterator[str]:
        from amqpsniff.tables.values import values

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
            if self._body_limit and message["body"] is not None:
                yield from preview(message, self._body_limit, self._output)


def _in_order(batch: Any) -> Any:
    """The rows of a batch by the time of their method; they come in the order of their end.

    That is the same one mostly, and Arrow's functions take as long to import as much else here.
    """
    times_ns = batch.column("ts_ns").to_pylist()
    if None not in times_ns and all(one <= next_ for one, next_ in pairwise(times_ns)):
        return batch
    import pyarrow.compute as pc

    return batch.take(pc.sort_indices(batch.column("ts_ns")))
