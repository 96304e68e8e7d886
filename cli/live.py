"""`amqpsniff live`: traffic as it happens, as rows or a dashboard, to a file, as metrics."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from operator import methodcaller
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

from amqpsniff import __version__
from amqpsniff.analysis.selection import RowFilter
from amqpsniff.analysis.times import SECOND_NS, nanoseconds, outside
from amqpsniff.errors import UsageError

from .completions import interfaces
from .entry import FAILED, complain
from .files import refuse_captures, standard_output
from .interrupts import stopping
from .options import TABLES, By, Decoding, Rows, at_least, flag_of, group, offer, one_of, spread
from .output import Output, settings
from .reading import keylog
from .render.summary import sections

if TYPE_CHECKING:
    from amqpsniff.capture.writer import CaptureWriter
    from amqpsniff.live.event_loop import Steps
    from amqpsniff.live.watch import PacketSource, Watch

    from .dashboard.dashboard import Dashboard

FORMATS = ("dashboard", "ndjson", "csv", "arrow")
TABLE = "messages"
SETTLE = "10s"
BUFFER = "64MiB"
FILE_BYTES = 10_000, None, "from 10kB; a number without a unit is bytes"
BUFFER_BYTES = 4 << 20, 4 << 30, "from 4MiB to 4GiB"
"""Bounds of a file of a rotation and of the ring, and the words for them."""

TOP = 10
"""Rows of a section of the summary."""

DUMB = ("dumb", "unknown")
"""Values of TERM for terminals that cannot move the cursor."""


@group("""
    Arguments:
        CAPTURE...: Instead of interfaces: - for a capture on standard input, a file that grows, or
            a directory or pattern of files that are written one after the other.

    Capturing:
        -i --interface IFACE: Interface to capture on; may be repeated. Default: any, which is all
            of them.
        -f --filter BPF: Capture only what this filter lets through. It is in the language of
            tcpdump: 'host 10.0.0.7 and port 5672'. Default: what --port says, else everything.
        --duration TIME: End after this time: 30s, 5m, 1h.
        -c --count N: End after this many packets.

    Recording:
        --buffer SIZE: Memory for packets that wait to be read. Default: {BUFFER}.
        --run-as NAME: User to become when started as root; `root` to stay root. Default: who called
            sudo, else nobody.
""")
class Sources:
    """Options for the source of packets."""

    captures: list[str] | None = None
    interface: Annotated[list[str] | None, offer(interfaces)] = None
    filter_: str = ""
    buffer: str | None = None
    run_as: str | None = None
    duration: str | None = None
    count: Annotated[int | None, at_least(1)] = None


@group("""
    Capturing:
        -w --write FILE: Write the packets to this file too, as pcapng.

    Recording:
        --rotate-size SIZE: Begin another file before one becomes larger than this: 100MB, 2GB.
        --rotate-time TIME: Begin another file after this time: 10m, 1h.
        --keep N: Keep only this many files of a rotation, the latest.
""")
class Recording:
    """Options for keeping the packets."""

    write: Path | None = None
    rotate_size: str | None = None
    rotate_time: str | None = None
    keep: Annotated[int | None, at_least(1)] = None


@spread(
    """
    Output:
        -t --table T: Table whose rows are given: {TABLES}. Default: {TABLE}.
        --settle TIME: How long a row waits for its reply or outcome. 0 gives rows at once, end lets
            them wait for as long as it takes. Default: {SETTLE}.
        --metrics [HOST]:PORT: Serve metrics for Prometheus (OpenMetrics) at this address. Without a
            host: on loopback only.
        --otlp URL: Send journeys of messages as spans to this collector of OpenTelemetry instead of
            writing rows: OTLP over HTTP, as in http://localhost:4318.
        --format F: Output format: {FORMATS}. Default: dashboard on a terminal, else ndjson.
            [default]
""",
    paged=False,
)
def live(
    sources: Sources,
    recording: Recording,
    decoding: Decoding,
    rows: Rows,
    table: Annotated[str | None, one_of(TABLES, "no table {}")] = None,
    settle: str | None = None,
    metrics: str | None = None,
    otlp: str | None = None,
    by: By = None,
    format_: str | None = None,
) -> int:
    """Watch traffic as it happens: a dashboard on a terminal, rows when piped.

    Packets come from network interfaces, from standard input, or from files that another program
    still writes. Connections that were open before are joined. A row is written once, when its
    reply or outcome is known. Ctrl-C ends the run with a summary.

    Capturing needs the capability CAP_NET_RAW; a pipe from tcpdump, also over ssh, needs none.

    Examples:

        sudo amqpsniff live -i eth0 --port 5672
        amqpsniff live -i lo --exchange orders | jq .routing_key
        amqpsniff live -i eth0 --by operation
        amqpsniff live -w trace.pcapng --rotate-size 100MB --keep 10 --metrics :9419
        amqpsniff live -i eth0 --exchange orders --otlp http://localhost:4318
        ssh broker tcpdump -i any -U -w - port 5672 | amqpsniff live -
    """
    drawn_on = sys.stdout.isatty() and os.environ.get("TERM") not in DUMB
    form = ("dashboard" if drawn_on else "ndjson") if format_ is None else format_
    if otlp is not None and (format_ is not None or table not in (None, "messages")):
        raise UsageError("--otlp sends spans of the table messages; leave out --format and --table")
    if by and (form != "dashboard" or otlp is not None):
        raise UsageError("--by is for the dashboard; rows have the columns of `messages`")
    if form == "dashboard" and otlp is None:
        _check_dashboard(sources, rows, table, settle, drawn_on=drawn_on)
    if otlp is None and form == "arrow" and sys.stdout.isatty():
        raise UsageError("arrow is not for a terminal; pipe it into a program")
    table = TABLE if table is None else table
    settle_seconds = _settle(SETTLE if settle is None else settle)
    run = Live(sources, recording, decoding, rows, settle_seconds, metrics, by)
    if otlp is not None:
        return run.send(otlp)
    if form == "dashboard":
        return run.show()
    return run.write(table, form)


def _check_dashboard(
    sources: Sources, rows: Rows, table: str | None, settle: str | None, *, drawn_on: bool
) -> None:
    """Raise UsageError if a dashboard is impossible, or cannot do what the options request."""
    if not drawn_on:
        raise UsageError(
            "the dashboard needs a terminal whose cursor moves; give --format ndjson for any other"
        )
    from amqpsniff.live.picture import NAMED

    shown = ("connection", "channel", *NAMED, "errors", "where", "tz")
    chosen = {"table": table, "limit": rows.limit} | rows.part()
    for name, value in chosen.items():
        if value not in (None, False) and name not in shown:
            raise UsageError(f"{flag_of(name)} chooses rows; give --format ndjson too")
    if settle is not None and not sources.captures:  # of these it says how late packets may be
        raise UsageError("--settle is for rows; give --format ndjson too")


def _settle(text: str) -> float | None:
    return None if text == "end" else span(text, "settle")


def rotation_seconds(text: str) -> float:
    """The time of a file of a rotation; raises UsageError if it is 0."""
    seconds = span(text, "rotate-time")
    if not seconds:
        raise UsageError(f"--rotate-time {text} is too short; write 30s, 5m or 1h")
    return seconds


_SIZE = re.compile(r"(\d{1,15})(?:\.(\d{1,6}))?\s*([kMGT]?)(i?)B?", re.IGNORECASE)
_PREFIXES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def size(text: str, option: str, lowest: int, highest: int | None, bounds: str) -> int:
    """Bytes: `500000`, `100MB`, `1.5G`, `64MiB`; raises UsageError for others and out of bounds."""
    match = _SIZE.fullmatch(text.strip())
    octets = 0
    if match:
        integer, digits, prefix, binary = match.groups()
        base = 1024 if binary else 1000
        octets = round(float(f"{integer}.{digits or 0}") * float(base ** _PREFIXES[prefix.lower()]))
    if octets <= 0:
        raise UsageError(f"--{option} {text!r} is not a size; write 500kB, 100MB or 2GB")
    if octets < lowest or (highest is not None and octets > highest):
        raise UsageError(f"--{option} {text}: {bounds}")
    return octets


def span(text: str, option: str) -> float:
    """Seconds: `30`, `30s`, `1m30s`, `1.5h`; raises UsageError if invalid."""
    found = nanoseconds(text)
    if found is None:
        raise UsageError(f"--{option} {text!r} is not a span of time; write 30s, 5m or 1h")
    return found / SECOND_NS


@dataclass
class Live:
    """One run of the command.

    Raises UsageError for options that make no sense together, CaptureError when nothing can be
    captured; both before anything is written.
    """

    sources: Sources
    recording: Recording
    decoding: Decoding
    rows: Rows
    settle_seconds: float | None
    metrics: str | None
    by: str | None = None

    def __post_init__(self) -> None:
        self._reported_trouble = False
        duration = self.sources.duration
        self._seconds = None if duration is None else span(duration, "duration")
        _check(self.sources, self.recording)
        if self.metrics is not None:
            from amqpsniff.live.metrics import parse_address

            parse_address(self.metrics)

    def write(self, table: str, form: str) -> int:
        """Write the wanted rows of a table to standard output; the exit code."""
        from amqpsniff.tables.export import write
        from amqpsniff.tables.schema import schema_of

        row_filter = RowFilter(self.rows.selection(), table, self._started)
        schema, columns = schema_of(table), {table: row_filter.needed()}
        with self._running((table,), columns=columns, read=sys.stdout) as steps:
            sink = standard_output()
            batches = map(
                methodcaller("select", schema.names), self._batches(steps, row_filter, sink)
            )
            write(batches, schema, form, sink)
        with suppress(OSError):  # without a reader the rows are there all the same
            self._summarise(sys.stderr)
        return self._exit_code()

    def send(self, url: str) -> int:
        """Send the spans of the wanted messages to a collector; the exit code."""
        from amqpsniff.otlp.collector import Sender
        from amqpsniff.otlp.spans import COLUMNS, traces

        row_filter = RowFilter(self.rows.selection(), "messages", self._started)
        columns = {"messages": row_filter.needed(COLUMNS)}
        with (
            closing(Sender(url)) as sender,
            self._running(("messages",), columns=columns) as steps,
        ):
            for trace in traces(self._batches(steps, row_filter), {}, __version__):
                sender.send(trace)
        if not self.decoding.quiet:
            complain(f"{sender.sent} spans sent to {sender.url}")
        if sender.lost:
            complain(f"error: {sender.lost} spans lost: {sender.trouble}")
        with suppress(OSError):
            self._summarise(sys.stderr)
        return FAILED if sender.lost else self._exit_code()

    def show(self) -> int:
        """Show the dashboard on the terminal; the exit code."""
        from amqpsniff.live.operations import COLUMNS

        from .dashboard.dashboard import Dashboard

        selection = self.rows.selection()
        # `where` is about the lines of views, each with columns of its own
        row_filter = RowFilter(replace(selection, where=None), "messages", self._started)
        columns = {"messages": row_filter.needed(COLUMNS)}
        tables = ("messages",) if self.by else ()
        with (
            self._running(tables, judge=True, columns=columns) as steps,
            Dashboard(self.watch, selection, self.by) as dashboard,
        ):
            self._watch_on(steps, dashboard, row_filter)
        self._summarise(sys.stdout)
        return self._exit_code()

    @contextmanager
    def _running(
        self,
        tables: tuple[str, ...],
        *,
        judge: bool = False,
        columns: Mapping[str, Collection[str]] | None = None,
        read: IO[str] | None = None,
    ) -> Iterator[Steps]:
        """Capture until the steps are over, or a pipe is not `read` any more.

        Everything is imported first, for packets do not wait for long.
        """
        from amqpsniff.live.event_loop import Steps
        from amqpsniff.live.figures import Figures
        from amqpsniff.live.metrics import Server
        from amqpsniff.live.watch import Watch
        from amqpsniff.options import Options
        from amqpsniff.session.census import Census

        options = Options.of(
            **self.decoding.given(), tls_keylog=self._keylog(), tls_keylog_later=True
        )
        source = self._source()
        looked_at = judge or self.metrics is not None
        counts: Any = Figures if looked_at else Census  # which takes less for each connection
        census = counts(TOP, self.rows.channel, self.rows.selection().matches_connection())
        self.watch: Watch = Watch(
            source,
            options,
            tables,
            census=census,
            judge=looked_at,
            packets=self.sources.count,
            settle_seconds=self.settle_seconds,
            columns=columns,
            time_deliveries=self.metrics is not None,
            name_clients=judge,
        )
        with ExitStack() as held:
            held.callback(self._report_notes)
            held.callback(self.watch.close)
            if self.metrics is not None:
                server = Server(self.metrics, self.watch)
                held.callback(server.close)
            self.watch.writer = self._writer(source)  # overwrites a file: after all checks
            out = None if read is None or read.isatty() else read.fileno()
            steps = Steps(self.watch, self._seconds, out=out)
            with stopping(steps):
                if not judge and not self.decoding.quiet:
                    verb = "following" if self.sources.captures else "capturing on"
                    complain(f"{verb} {self.watch.source.capture}; Ctrl-C ends it")
                yield steps

    def _watch_on(self, steps: Steps, dashboard: Dashboard, row_filter: RowFilter) -> None:
        """Step the run and its dashboard until one of them is over."""
        steps.keys = dashboard.keyboard.descriptor
        for _ in steps:
            for note in self._notes():
                dashboard.pictures.note(note)
            for _, batch in self.watch.rows():
                dashboard.pictures.operations.add(row_filter.of(batch))
            dashboard.step()
            if dashboard.over:
                steps.stop()
        deque(self.watch.finish(), 0)

    def _started(self) -> int | None:
        return self.watch.pipeline.totals.first_ns

    def _source(self) -> PacketSource:
        """Open the source of packets, then give up the rights that opening took."""
        captures = self.sources.captures
        if captures:
            from amqpsniff.capture.tail import follow

            return follow(captures)
        from amqpsniff.capture.filter import ports_expression
        from amqpsniff.capture.live_capture import InterfaceCapture
        from amqpsniff.capture.privileges import drop

        expression = self.sources.filter_ or ports_expression(self.decoding.port or ())
        buffer = self.sources.buffer
        octets = size(BUFFER if buffer is None else buffer, "buffer", *BUFFER_BYTES)
        source = InterfaceCapture(self.sources.interface or (), expression, octets)
        written = self.recording.write
        folders = [written.absolute().parent] if written is not None else []
        try:
            why = drop(self.sources.run_as, folders, self._keys())
        except BaseException:
            source.close()
            raise
        if why is not None and not self.decoding.quiet:
            complain(f"warning: stays root: {why}")
        return source

    def _keys(self) -> list[Path]:
        """Files with keys, which few may read."""
        names = (self._keylog(), *(self.decoding.tls_key or ()))
        return [Path(name) for name in names if name is not None]

    def _keylog(self) -> str | None:
        return keylog(self.decoding.tls_keylog, exists=False)

    def _writer(self, source: PacketSource) -> CaptureWriter | None:
        from amqpsniff.capture.writer import CaptureWriter, Rotation

        recording = self.recording
        if recording.write is None:
            return None
        rotation = Rotation(
            None
            if recording.rotate_size is None
            else size(recording.rotate_size, "rotate-size", *FILE_BYTES),
            None if recording.rotate_time is None else rotation_seconds(recording.rotate_time),
            recording.keep,
        )
        return CaptureWriter(
            recording.write, source.name_of, f"amqpsniff {__version__}", rotation, source.statistics
        )

    def _batches(
        self, steps: Steps, row_filter: Any, sink: IO[bytes] | None = None
    ) -> Iterator[Any]:
        """The wanted rows as they come; each batch is written out before the next one is made."""
        for _ in steps:
            for note in self._notes():
                if not self.decoding.quiet or note.startswith("error: "):
                    complain(note)
            for _, batch in self.watch.rows():
                yield from _chosen(row_filter, batch, sink)
            if row_filter.done:
                steps.stop()
        for _, batch in self.watch.finish():
            yield from _chosen(row_filter, batch, sink)

    def _report_notes(self) -> None:
        for note in self._notes():
            complain(note)

    def _notes(self) -> Iterator[str]:
        """Notes on the capture since the last call."""
        notes, self.watch.source.notes = self.watch.source.notes, []
        yield from (f"warning: {note}" for note in notes)
        trouble = self.watch.writer.trouble if self.watch.writer is not None else None
        if trouble is not None and not self._reported_trouble:
            self._reported_trouble = True
            yield f"error: packets are not written any more: {trouble}"

    def _summarise(self, file: IO[str]) -> None:
        """Write the summary of the run."""
        if self.decoding.quiet:
            return
        totals = self.watch.pipeline.totals
        times = (totals.first_ns, totals.last_ns, settings.zone)
        nothing = outside(self.rows.from_, self.rows.to, *times)
        if nothing:
            complain(f"warning: {nothing}")
        result, output = self.watch.summary(TOP, settings.zone), Output(file)
        output.show(*sections(result, output.room, judged=self.watch.judged))

    def _exit_code(self) -> int:
        writer = self.watch.writer
        codes = {finding.code for finding in self.watch.source.findings}
        failed = (writer is not None and writer.trouble) or "capture-unreadable" in codes
        return FAILED if failed else 0


def _chosen(row_filter: Any, batch: Any, sink: IO[bytes] | None) -> Iterator[Any]:
    """The wanted rows of a batch; the output is flushed before the next batch."""
    rows = row_filter.of(batch)
    if rows.num_rows:
        yield rows
        if sink is not None:
            sink.flush()


def _check(sources: Sources, recording: Recording) -> None:
    """Raise UsageError for options that make no sense together."""
    captures = sources.captures or []
    for name in ("interface", "filter_", "buffer", "run_as") if captures else ():
        if getattr(sources, name):
            raise UsageError(f"{flag_of(name)} is for capturing; a capture has its packets")
    if "-" in captures and len(captures) > 1:
        raise UsageError("standard input is read alone; leave out the files")
    if recording.write is None:
        for name in ("rotate_size", "rotate_time", "keep"):
            if getattr(recording, name) is not None:
                raise UsageError(f"{flag_of(name)} is for --write FILE")
    elif recording.keep is not None and not (recording.rotate_size or recording.rotate_time):
        raise UsageError("--keep is for a rotation; give --rotate-size or --rotate-time too")
    elif str(recording.write) == "-" or Path(recording.write).is_dir():
        raise UsageError(f"--write {recording.write}: give the name of a file")
    elif captures:
        refuse_captures(recording.write, captures)
        _refuse_followed(recording.write, captures)


def _refuse_followed(written: Path, captures: list[str]) -> None:
    """Raise UsageError if the output would be read again, and written again, without end."""
    folder = written.absolute().parent
    for name in captures:
        followed = Path(name) if Path(name).is_dir() else Path(name).parent
        several = followed == Path(name) or glob.has_magic(name)
        if several and followed.exists() and followed.samefile(folder):
            raise UsageError(f"{written} would be followed itself; --write to another folder")
