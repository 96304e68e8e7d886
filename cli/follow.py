"""`amqpsniff follow`: one conversation, both directions, from top to bottom."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amqpsniff.errors import UsageError

from . import times
from .inspect import CONTENT_METHODS, UNSEEN
from .options import (
    OUTPUT,
    Input,
    Rows,
    Scope,
    TimeForm,
    Where,
    body_limit_option,
    check_format,
    format_option,
    limit_option,
    spread,
)

if TYPE_CHECKING:
    from .conversation import Conversation
    from .reading import Reading
    from .timeline import Entry

BODY_LIMIT = 64
"""Octets of a body shown by default: enough to know it again."""

FORMATS = ("text", "ndjson")


@spread
def follow(
    source: Input,
    scope: Scope,
    where: Where = None,
    limit: Annotated[int | None, limit_option("Stop after this many lines of methods.")] = None,
    bodies: Annotated[
        bool,
        typer.Option(
            "--bodies",
            help="Show whole bodies, not only their beginnings.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    body_limit: Annotated[
        int, body_limit_option("Octets of each body that are shown, 0 for none.")
    ] = BODY_LIMIT,
    time: TimeForm = times.FORMS[0],
    format_: Annotated[
        str, format_option(FORMATS, "; ndjson gives the connection's rows of the frames table")
    ] = FORMATS[0],
) -> int:
    """Show one conversation, both directions, from top to bottom.

    Each method is a line as in inspect: → to the server, ← from it. Under a message is the
    beginning of its body; text is shown as text, other octets in hex. Octets that are missing from
    the capture and findings about the connection stand where they occurred; --where leaves out
    methods, not these.

    The connection is named by the beginning of its id, its client's address:port or :port; where
    there is only one, it need not be named. The captures are read twice, so standard input
    cannot be used.

    Examples:

        amqpsniff follow trace.pcapng --connection 7f29
        amqpsniff follow trace.pcapng --connection :43706 --channel 3
        amqpsniff follow trace.pcapng --connection 7f29 --from +10s --bodies
    """
    check_format(format_, FORMATS)
    part = Rows(scope.connection, scope.channel, scope.from_, scope.to, where, limit)
    octets = sys.maxsize if bodies else body_limit
    return _Following(source, part, octets, time).write(format_)


class _Following:
    """One run of the command."""

    def __init__(self, source: Input, part: Rows, body_limit: int, form: str) -> None:
        from .output import Output

        self._source = source
        self._part = part
        self._body_limit = body_limit
        self._form = form
        self._output = Output()

    def write(self, form: str) -> int:
        """Write the conversation; the exit code."""
        from .conversation import find
        from .reading import Reading
        from .selection import Selection

        first = Reading(self._source, self._part)
        if first.capture.once:
            raise UsageError("follow reads captures twice; save standard input to a file first")
        Selection(self._part, "frames", first.started).check()
        found = find(first, self._part)
        if found is None:
            return first.exit_code
        self._source.quiet = True  # what there is to warn of was said in the first reading
        part = replace(self._part, connection=found.row["connection_id"])
        if form == "ndjson":
            from .rows import write_rows

            return write_rows(self._source, part, "frames", form, warned_of=())
        return self._write_text(found, part, first.started())

    def _write_text(self, found: Conversation, part: Rows, started: int | None) -> int:
        from .reading import Reading
        from .render.conversation import Telling

        reading = Reading(self._source, bodies=self._body_limit > 0, warned_of=())
        clock = times.Clock(self._form, started, short=self._output.narrow)
        telling = Telling(self._output, clock, found, self._body_limit, len(reading.capture.names))
        self._output.lines(telling.heading())
        entries = self._entries(reading, part)
        shown = islice(entries, part.limit)
        self._output.lines(line for entry in shown for line in telling.tell(entry))
        if next(entries, None) is None:
            self._output.lines(telling.end(whole=part.to is None))
        return reading.exit_code

    def _entries(self, reading: Reading, part: Rows) -> Iterator[Entry]:
        """What has lines of its own, in the order of time."""
        from .gaps import Gaps
        from .render.shorthand import LINE_COLUMNS
        from .selection import Selection
        from .timeline import Timeline

        timed = Scope(part.connection, None, part.from_, part.to)
        whole = Selection(Scope(part.connection), "frames", reading.started)
        in_time = Selection(timed, "frames", reading.started)
        selection = Selection(replace(part, limit=None), "frames", reading.started)
        body = ("body",) if self._body_limit else ()
        timeline = Timeline(CONTENT_METHODS, (*LINE_COLUMNS, *body))
        gaps = Gaps()
        for table, batch in reading.rows("frames", "messages"):
            if table == "messages":
                yield from timeline.messages(batch)
            else:
                for gap, piece in gaps.split(whole.of(batch)):
                    if gap is not None and in_time.of(piece.slice(0, 1)).num_rows:
                        timeline.put(gap)
                    timeline.frames(_seen(selection.of(piece)))
            yield from timeline.ready()
        yield from timeline.ready(last=True)


def _seen(batch: Any) -> Any:
    """The frames that have lines of their own."""
    import pyarrow as pa
    import pyarrow.compute as pc

    unseen = pc.is_in(batch.column("frame_type"), value_set=pa.array(UNSEEN))
    return batch.filter(pc.invert(unseen))
