"""`amqpsniff inspect`: the list of methods and messages in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amqpsniff.errors import UsageError
from amqpsniff.spec import METHODS

from . import times
from .options import (
    OUTPUT,
    Input,
    Rows,
    TimeForm,
    check_format,
    format_option,
    spread,
    verbose_option,
)

if TYPE_CHECKING:
    from .render.lines import Lines
    from .timeline import Entry, Timeline

FORMATS = ("text", "ndjson")

FEW = 8_192
"""Frames from the beginning that are chosen one by one: to import Arrow's functions, which are
faster then, takes 25 ms longer."""

UNSEEN = ("header", "body", "heartbeat")
"""Frame types that are no lines of their own: contents are folded into their method's line."""

CONTENT_METHODS = frozenset(row.name for row in METHODS if row.content)


@spread
def inspect(
    source: Input,
    rows: Rows,
    frames: Annotated[
        bool,
        typer.Option(
            "--frames",
            help="Every frame on a line of its own, headers, bodies and heartbeats too.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    verbose: Annotated[
        bool, verbose_option("Under each line all arguments, properties and headers.")
    ] = False,
    hex_: Annotated[
        bool,
        typer.Option(
            "--hex",
            help="Under each line the frame's octets, as a hex dump; with --frames. Those of "
            "secrets are shown as **, those that were not captured as --.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    time: TimeForm = times.FORMS[0],
    format_: Annotated[
        str, format_option(FORMATS, "; ndjson gives the rows of the frames table")
    ] = FORMATS[0],
) -> int:
    """List methods and messages in the order of time, one a line.

    A line says when, the packet's number, the client, the direction (→ to the server, ← from it),
    the channel and the method with its main arguments: x exchange, rk routing key, q queue, ct
    consumer tag, dt delivery tag. A message is one line, at its method. What became of a request or
    a message follows a →, with the time it took: ok, no reply, confirmed, acked and so on.

    Examples:

        amqpsniff inspect trace.pcapng
        amqpsniff inspect trace.pcapng -v --connection :43700 --channel 1
        amqpsniff inspect trace.pcapng --where "reply_code >= 400" --time absolute
        tcpdump -U -w - port 5672 | amqpsniff inspect -
    """
    check_format(format_, FORMATS)
    if format_ == "ndjson":
        if hex_:
            raise UsageError("--hex is for text; rows have no octets")
        from .rows import write_rows

        return write_rows(source, rows, "frames", format_)
    return _Listing(source, rows, frames=frames, verbose=verbose, hex_=hex_, form=time).write()


class _Listing:
    """One run of the command."""

    def __init__(
        self, source: Input, rows: Rows, *, frames: bool, verbose: bool, hex_: bool, form: str
    ) -> None:
        from .output import Output
        from .reading import Reading
        from .selection import Selection

        self._hex = hex_
        self._few = FEW
        self._frames = frames or hex_
        self._verbose = verbose
        self._form = form
        self._reading = Reading(source, rows)
        self._selection = Selection(rows, "frames", self._reading.started)
        self._output = Output()
        self._lines: Lines | None = None

    def write(self) -> int:
        """Write all lines; the exit code."""
        from .render.shorthand import LINE_COLUMNS
        from .render.tree import MESSAGE_COLUMNS
        from .timeline import Timeline

        self._selection.check()
        opening = frozenset() if self._frames else CONTENT_METHODS
        timeline = Timeline(opening, MESSAGE_COLUMNS if self._verbose else LINE_COLUMNS)
        if self._hex:
            return self._write_hex(timeline)
        for table, batch in self._reading.rows("frames", "messages"):
            if table == "frames":
                self._give(timeline, batch)
                self._output.lines(self._text(timeline.ready()))
            else:
                self._output.lines(self._text(timeline.messages(batch)))
            if self._selection.done and timeline.settled:
                break
        self._output.lines(self._text(timeline.ready(last=True)))
        self._reading.miss(self._selection, chosen=self._selection.chooses)
        return self._reading.exit_code

    def _write_hex(self, timeline: Timeline) -> int:
        """Write the line of every frame with its octets under it."""
        from .octets import batches
        from .render.frame_octets import dump

        for batch, octets in batches(self._reading):
            timeline.frames(self._wanted(batch), early=True)
            for entry in timeline.ready():
                self._output.lines(self._text((entry,)))
                secrets = self._reading.options.show_secrets
                self._output.lines(dump(entry, octets, self._output.paint, secrets=secrets))
            if self._selection.done:
                break
        self._reading.miss(self._selection, chosen=self._selection.chooses)
        return self._reading.exit_code

    def _give(self, timeline: Timeline, batch: Any) -> None:
        """Give a batch of frames, without those that are not wanted, to the timeline."""
        early = self._reading.capture.early
        self._few -= batch.num_rows
        if self._frames or self._selection.limits or self._few < 0:
            timeline.frames(self._wanted(batch), early=early)
        else:
            self._selection.kept += timeline.frames(batch, early=early, unseen=UNSEEN)

    def _wanted(self, batch: Any) -> Any:
        if not self._frames:
            import pyarrow as pa
            import pyarrow.compute as pc

            unseen = pc.is_in(batch.column("frame_type"), value_set=pa.array(UNSEEN))
            batch = batch.filter(pc.invert(unseen))
        return self._selection.of(batch)

    def _text(self, entries: Iterable[Entry]) -> Iterator[str]:
        from .render.lines import Lines
        from .render.tree import entry_tree

        for entry in entries:
            if self._lines is None:
                short = self._output.narrow
                clock = times.Clock(self._form, self._reading.started(), short=short)
                several = len(self._reading.capture.names) > 1
                self._lines = Lines(self._output, clock, several=several)
            yield self._lines.frame(entry)
            if self._verbose:
                yield from entry_tree(entry, self._output.paint)
