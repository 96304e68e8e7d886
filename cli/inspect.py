"""`amqpsniff inspect`: the list of methods and messages in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

from amqpsniff.analysis.client_names import ClientNames
from amqpsniff.analysis.in_full import MESSAGE_COLUMNS, frame_fields
from amqpsniff.errors import UsageError

from .export import write_rows
from .options import Input, Rows, TimeForm, at_least, spread
from .output import Output
from .reading import NO_ROW, Reading
from .render.body import INDENT, NOWHERE, hex_lines, preview
from .render.lines import Lines
from .render.text import Paint
from .render.tree import tree

if TYPE_CHECKING:
    from amqpsniff.analysis.frame_bytes import FrameBytes
    from amqpsniff.analysis.timeline import Entry


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
    time: TimeForm = "relative",
    format_: str = FORMATS[0],
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
    reading, output, selection = Reading(source, rows, bodies=limit > 0), Output(), rows.selection()
    shown = 0
    with reading.passing(progress=False) as capture:
        passes, clients = capture.passes, ClientNames()
        lines = Lines(output, reading, time, clients)

        def text(entries: Iterable[Entry]) -> Iterator[str]:
            nonlocal shown
            for entry in entries:
                shown += 1
                yield lines.frame(entry)
                if verbose:
                    yield from tree(frame_fields(entry), output.paint)
                if limit and entry.message is not None:
                    yield from preview(entry.message, limit, output)

        if hex_:
            for entry, octets in passes.frames_with_bytes(selection, clients):
                output.lines(text((entry,)))
                output.lines(dump(entry, octets, output.paint, secrets=source.show_secrets))
        else:
            columns = (*MESSAGE_COLUMNS, *(("body",) if limit else ())) if verbose else None
            for entries in passes.timeline_pieces(
                selection, frames=frames, columns=columns, clients=clients
            ):
                output.lines(text(entries))
    if not shown and selection.limit != 0:
        chosen = selection.chooses()
        reading.warn_of_nothing(NO_ROW if chosen else "no frames in what was captured")
    return reading.exit_code


def dump(entry: Entry, octets: FrameBytes, paint: Paint, *, secrets: bool) -> Iterator[str]:
    """The hex dump of a frame, at its place in the half-stream; without secrets unless asked."""
    from amqpsniff.analysis.frame_bytes import hidden_positions, length_of

    found, missing = octets.find(entry)
    hidden = NOWHERE if secrets else hidden_positions(entry, found, missing)
    for line in hex_lines(found, hidden=hidden, missing=missing, first=entry.stream_offset):
        yield INDENT + paint("hex", line)
    if length_of(entry) > len(found):
        yield INDENT + paint("key", f"… {length_of(entry) - len(found):,} more bytes")
