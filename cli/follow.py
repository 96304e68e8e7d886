"""`amqpsniff follow`: one conversation, both directions, from top to bottom."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from .options import Input, Rows, TimeForm, at_least, one_of, spread
from .output import Output
from .reading import Reading
from .render.clock import FORMS as TIME_FORMS
from .render.clock import Clock
from .render.conversation import Telling
from .rows import write_rows

if TYPE_CHECKING:
    from amqpsniff.analysis.conversation import Conversation


BODY_LIMIT = 64
"""Bytes of a body shown by default: enough to know it again."""

FORMATS = ("text", "ndjson")


@spread("""
    Output:
        --bodies: Whole bodies, not only their beginnings.
        --body-limit N: Bytes of each body that are shown, 0 for none. [default]
        --format F: Output format: {FORMATS}; ndjson gives the connection's rows of the frames
            table. [default]
""")
def follow(
    source: Input,
    rows: Rows,
    bodies: bool = False,
    body_limit: Annotated[int, at_least(0)] = BODY_LIMIT,
    time: TimeForm = TIME_FORMS[0],
    format_: Annotated[str, one_of(FORMATS, "no format {} here")] = FORMATS[0],
) -> int:
    """Show one conversation, both directions, from top to bottom.

    Each method is a line as in inspect: → to the server, ← from it. Under a message is the
    beginning of its body; text is shown as text, other bytes in hex. Bytes that are missing from
    the capture and findings about the connection stand where they occurred; filters leave out
    methods, not these. Where nothing but heartbeats was sent for five seconds or more though a
    side owed something, a line says who owed whom; the last line says it of the end.

    The connection is named by the beginning of its id, its client's address:port or :port; where
    there is only one, it need not be named. Without --connection, --packet names the connection
    of a packet, and shows all of it. The captures are read twice, so standard input cannot be
    used.

    Examples:

        amqpsniff follow trace.pcapng --connection 7f29
        amqpsniff follow trace.pcapng --packet 496
        amqpsniff follow trace.pcapng --connection :43706 --channel 3
        amqpsniff follow trace.pcapng --queue orders --from 10 --bodies
    """
    octets = sys.maxsize if bodies else body_limit
    return _Following(source, rows, octets, time).write(format_)


class _Following:
    """One run of the command."""

    def __init__(self, source: Input, part: Rows, body_limit: int, form: str) -> None:

        self._source = source
        self._part = part
        self._body_limit = body_limit
        self._form = form
        self._output = Output()

    def write(self, form: str) -> int:
        """Write the conversation; the exit code."""

        reading = Reading(self._source, self._part)
        with reading.passing() as capture:
            found = capture.follow(**self._part.part(), bodies=self._body_limit > 0)
        if found is None:
            return reading.exit_code
        if form == "ndjson":
            self._source.quiet = True  # the first reading has warned
            packet = self._part.packet if self._part.connection else None
            rows = replace(self._part, connection=found.row["connection_id"], packet=packet)
            return write_rows(self._source, rows, "frames", form, warned_of=())
        self._write_text(found, reading)
        return reading.exit_code

    def _write_text(self, found: Conversation, reading: Reading) -> None:

        clock = Clock(self._form, reading.started(), short=self._output.narrow)
        telling = Telling(self._output, clock, found, self._body_limit, len(reading.capture.names))
        self._output.lines(telling.heading())
        shown = islice(found.entries, self._part.limit)
        self._output.lines(line for entry in shown for line in telling.tell(entry))
        if next(found.entries, None) is None:
            self._output.lines(telling.end(whole=self._part.to is None))
