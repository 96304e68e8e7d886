"""`amqpsniff inspect`: the list of methods and messages in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

from amqpsniff.analysis.client_names import ClientNames
from amqpsniff.errors import UsageError

from .options import Input, Rows, TimeForm, at_least, one_of, spread
from .output import Output
from .reading import NO_ROW, Reading
from .render.body import INDENT, NOWHERE, hex_lines, preview
from .render.clock import FORMS as TIME_FORMS
from .render.clock import Clock
from .render.lines import Lines
from .render.text import Paint
from .render.tree import MESSAGE_COLUMNS, entry_tree
from .rows import write_rows

if TYPE_CHECKING:
    from amqpsniff.analysis.frame_bytes import FrameBytes
    from amqpsniff.analysis.timeline import Entry
    from amqpsniff.reader import Capture


FORMATS = ("text", "ndjson")


@spread("""
    Output:
        --frames: Every frame on a line of its own: headers, bodies, heartbeats too.
        -v --verbose: Under each line all arguments, properties and headers.
        --body-limit N: With -v bytes of each body shown as well, as text or hex. [default]
        --hex: Under each line the frame's bytes, as a hex dump; with --frames. Those of secrets are
            shown as **, those that were not captured as --.
        --format F: Output format: {FORMATS}; ndjson gives the rows of the frames table. [default]
""")
def inspect(
    source: Input,
    rows: Rows,
    frames: bool = False,
    verbose: bool = False,
    body_limit: Annotated[int, at_least(0)] = 0,
    hex_: bool = False,
    time: TimeForm = TIME_FORMS[0],
    format_: Annotated[str, one_of(FORMATS, "no format {} here")] = FORMATS[0],
) -> int:
    """List methods and messages in the order of time, one a line.

    A line has the time, the packet's number, the client, the direction (→ to the server, ← from
    it), the channel and the method with its main arguments. In these, x is an exchange, rk a
    routing key, q a queue, ct a consumer tag, dt a delivery tag. A message is one line, at its
    method. The outcome of a request or message has a column of its own, with the time it took: ok,
    no reply, confirmed, acked and so on. It is before the method, on a terminal at the right edge.

    Examples:

        amqpsniff inspect trace.pcapng
        amqpsniff inspect trace.pcapng --client worker-1 --queue "orders.*" -v
        amqpsniff inspect trace.pcapng --errors --time absolute --tz local
        tcpdump -U -w - port 5672 | amqpsniff inspect -
    """
    if format_ == "ndjson":
        if hex_:
            raise UsageError("--hex is for text; rows have no bytes")

        return write_rows(source, rows, "frames", format_)
    limit = body_limit if verbose else 0
    return _Listing(
        source, rows, limit, frames=frames, verbose=verbose, hex_=hex_, form=time
    ).write()


class _Listing:
    """One run of the command."""

    def __init__(
        self,
        source: Input,
        rows: Rows,
        body_limit: int,
        *,
        frames: bool,
        verbose: bool,
        hex_: bool,
        form: str,
    ) -> None:

        self._hex = hex_
        self._frames = frames
        self._verbose = verbose
        self._form = form
        self._body_limit = body_limit
        self._reading = Reading(source, rows, bodies=body_limit > 0)
        self._selection = rows.selection()
        self._output = Output()
        self._lines: Lines | None = None
        self._shown = 0

    def write(self) -> int:
        """Write all lines; the exit code."""

        with self._reading.passing(progress=False) as capture:
            capture.clients = ClientNames()
            if self._hex:
                self._write_hex(capture)
            else:
                more = ("body",) if self._body_limit else ()
                columns = (*MESSAGE_COLUMNS, *more) if self._verbose else None
                pieces = capture.timeline_pieces(
                    self._selection, frames=self._frames, columns=columns
                )
                for entries in pieces:
                    self._output.lines(self._text(entries))
        if not self._shown and self._selection.limit != 0:
            chosen = self._selection.chooses()
            self._reading.warn_of_nothing(NO_ROW if chosen else "no frames in what was captured")
        return self._reading.exit_code

    def _write_hex(self, capture: Capture) -> None:
        """Write the line of every frame with its bytes under it."""

        secrets = self._reading.options.show_secrets
        for entry, octets in capture.frames_with_bytes(self._selection):
            self._output.lines(self._text((entry,)))
            self._output.lines(dump(entry, octets, self._output.paint, secrets=secrets))

    def _text(self, entries: Iterable[Entry]) -> Iterator[str]:

        for entry in entries:
            self._shown += 1
            if self._lines is None:
                short = self._output.narrow
                clock = Clock(self._form, self._reading.started(), short=short)
                several = len(self._reading.capture.names) > 1
                clients = self._reading.capture.clients
                self._lines = Lines(self._output, clock, several=several, clients=clients)
            yield self._lines.frame(entry)
            if self._verbose:
                yield from entry_tree(entry, self._output.paint)
            if self._body_limit and entry.message is not None:
                yield from preview(entry.message, self._body_limit, self._output)


def dump(entry: Entry, octets: FrameBytes, paint: Paint, *, secrets: bool) -> Iterator[str]:
    """The hex dump of a frame, at its place in the half-stream; without secrets unless asked."""
    from amqpsniff.analysis.frame_bytes import hidden_positions, length_of

    found, missing = octets.find(entry)
    hidden = NOWHERE if secrets else hidden_positions(entry, found, missing)
    for line in hex_lines(found, hidden=hidden, missing=missing, first=entry.stream_offset):
        yield INDENT + paint("hex", line)
    if length_of(entry) > len(found):
        yield INDENT + paint("key", f"… {length_of(entry) - len(found):,} more bytes")
