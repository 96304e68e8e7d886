"""A live run as the options say: packets, rows or a dashboard, a file, metrics, a summary."""

from __future__ import annotations

import glob
import sys
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from operator import methodcaller
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from amqpsniff import __version__
from amqpsniff.analysis.diagnosis import diagnosis_of
from amqpsniff.analysis.selection import RowFilter
from amqpsniff.analysis.times import outside
from amqpsniff.errors import UsageError

from .entry import FAILED, complain
from .event_loop import Steps
from .files import refuse_captures, standard_output
from .live import (
    BUFFER,
    BUFFER_BYTES,
    FILE_BYTES,
    Recording,
    Sources,
    rotation_seconds,
    size,
    span,
)
from .options import Decoding, Rows
from .output import Output, settings
from .reading import keylog
from .render.summary import sections

if TYPE_CHECKING:
    from amqpsniff.capture.writer import CaptureWriter
    from amqpsniff.live.metrics import Server
    from amqpsniff.live.watch import PacketSource, Watch

    from .dashboard.dashboard import Dashboard

TOP = 10
"""Rows of a section of the summary."""


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
        self._told_trouble = False
        self._server: Server | None = None
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

        wanted = RowFilter(self.rows.selection(), table, self._started)
        schema, columns = schema_of(table), {table: wanted.needed()}
        with self._running((table,), columns=columns, read=sys.stdout) as steps:
            sink = standard_output()
            batches = map(methodcaller("select", schema.names), self._batches(steps, wanted, sink))
            write(batches, schema, form, sink)
        with suppress(OSError):  # without a reader the rows are there all the same
            self._summarise(sys.stderr)
        return self._exit_code()

    def send(self, url: str) -> int:
        """Send the spans of the wanted messages to a collector; the exit code."""
        from amqpsniff.otlp.collector import Sender
        from amqpsniff.otlp.spans import COLUMNS, traces

        wanted = RowFilter(self.rows.selection(), "messages", self._started)
        columns = {"messages": wanted.needed(COLUMNS)}
        with (
            closing(Sender(url)) as sender,
            self._running(("messages",), columns=columns) as steps,
        ):
            for one in traces(self._batches(steps, wanted), {}, __version__):
                sender.send(one)
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
        wanted = RowFilter(replace(selection, where=None), "messages", self._started)
        columns = {"messages": wanted.needed(COLUMNS)}
        tables = ("messages",) if self.by else ()
        with (
            self._running(tables, judge=True, columns=columns) as steps,
            Dashboard(self.watch, self.census, selection, self.by) as dashboard,
        ):
            self._watch_on(steps, dashboard, wanted)
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
        """Capture until the steps are over, or a pipe is not `read` any more."""
        self._open(tables, judge=judge, columns=columns)
        out = None if read is None or read.isatty() else read.fileno()
        try:
            with Steps(self.watch, self._seconds, out=out) as steps:
                if not judge and not self.decoding.quiet:
                    verb = "following" if self.sources.captures else "capturing on"
                    complain(f"{verb} {self.watch.source.capture}; Ctrl-C ends it")
                yield steps
        finally:
            self._close()

    def _watch_on(self, steps: Steps, dashboard: Dashboard, wanted: RowFilter) -> None:
        """Step the run and its dashboard until one of them is over."""
        steps.keys = dashboard.keyboard.descriptor
        for _ in steps:
            for note in self._notes():
                dashboard.pictures.note(note)
            for _, batch in self.watch.rows():
                dashboard.pictures.operations.add(wanted.of(batch))
            dashboard.step()
            if dashboard.over:
                steps.stop()
        deque(self.watch.finish(), 0)

    def _started(self) -> int | None:
        return self.watch.pipeline.totals.first_ns

    def _open(
        self,
        tables: tuple[str, ...],
        *,
        judge: bool,
        columns: Mapping[str, Collection[str]] | None,
    ) -> None:
        """Begin to capture; everything is imported first, for packets do not wait for long."""
        from amqpsniff.live.figures import Figures
        from amqpsniff.live.metrics import Server
        from amqpsniff.live.watch import Watch
        from amqpsniff.options import Options
        from amqpsniff.session.census import Census
        from amqpsniff.session.counts import Histogram

        decoding = self.decoding
        options = Options(
            ports=frozenset(decoding.port or ()),
            dialect=decoding.dialect,
            table_dialect=decoding.table_dialect,
            show_secrets=decoding.show_secrets,
            tls_keylog=self._keylog(),
            tls_keylog_later=True,
            tls_keys=tuple(decoding.tls_key or ()),
            packs=tuple(decoding.packs or ()),
        )
        source = self._source()
        looked_at = judge or self.metrics is not None
        counts: Any = Figures if looked_at else Census  # which takes less for each connection
        self.census = counts(TOP, self.rows.channel, self.rows.selection().matches_connection())
        self.watch: Watch = Watch(
            source,
            options,
            tables,
            census=self.census,
            judge=looked_at,
            packets=self.sources.count,
            settle_seconds=self.settle_seconds,
            columns=columns,
            delivery_times=None if self.metrics is None else Histogram(),
            hear=self.census.hear if judge else None,
        )
        try:
            if self.metrics is not None:
                self._server = Server(self.metrics, self.watch, self.census)
            self.watch.writer = self._writer(source)  # what is there is written over: now or never
        except BaseException:
            self._let_go()
            raise

    def _let_go(self) -> None:
        if self._server is not None:
            self._server.close()
        self.watch.close()

    def _close(self) -> None:
        self._let_go()
        for note in self._notes():
            complain(note)

    def _source(self) -> PacketSource:
        """Where the packets come from, opened; rights that were needed for it are given up."""
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

    def _batches(self, steps: Steps, wanted: Any, sink: IO[bytes] | None = None) -> Iterator[Any]:
        """The wanted rows as they come; each batch is written out before the next one is made."""
        for _ in steps:
            for note in self._notes():
                if not self.decoding.quiet or note.startswith("error: "):
                    complain(note)
            for _, batch in self.watch.rows():
                yield from _chosen(wanted, batch, sink)
            if wanted.done:
                steps.stop()
        for _, batch in self.watch.finish():
            yield from _chosen(wanted, batch, sink)

    def _notes(self) -> Iterator[str]:
        """Notes on the capture since the last call."""
        notes, self.watch.source.notes = self.watch.source.notes, []
        yield from (f"warning: {note}" for note in notes)
        trouble = self.watch.writer.trouble if self.watch.writer is not None else None
        if trouble is not None and not self._told_trouble:
            self._told_trouble = True
            yield f"error: packets are not written any more: {trouble}"

    def _summarise(self, file: IO[str]) -> None:
        """Write the summary of the run."""
        if self.decoding.quiet:
            return
        from amqpsniff.analysis.summary import summary

        watch = self.watch
        pipeline = watch.pipeline
        totals = pipeline.totals
        times = (totals.first_ns, totals.last_ns, settings.zone)
        nothing = outside(self.rows.from_, self.rows.to, *times)
        if nothing:
            complain(f"warning: {nothing}")
        result = summary(
            self.census.facts(),
            totals,
            captures=[watch.source.capture],
            tls=pipeline.encrypted,
            outcomes=pipeline.outcomes(),
            replies=pipeline.replies(),
            findings=watch.found,
            zone=settings.zone,
            top=TOP,
        )
        if watch.judged:
            found = diagnosis_of(watch.found, totals, watch.introductions, zone=settings.zone)
            result["verdict"] = found.verdict.plain()
        output = Output(file)
        output.show(*sections(result, output.room, judged=watch.judged))

    def _exit_code(self) -> int:
        writer = self.watch.writer
        codes = {one.code for one in self.watch.source.findings}
        failed = (writer is not None and writer.trouble) or "capture-unreadable" in codes
        return FAILED if failed else 0


def _chosen(wanted: Any, batch: Any, sink: IO[bytes] | None) -> Iterator[Any]:
    """The wanted rows of a batch; what is written is flushed before it is asked for more."""
    kept = wanted.of(batch)
    if kept.num_rows:
        yield kept
        if sink is not None:
            sink.flush()


def _check(sources: Sources, recording: Recording) -> None:
    """Raise UsageError for options that make no sense together."""
    captures = sources.captures or []
    for name in ("interface", "filter_", "buffer", "run_as") if captures else ():
        if getattr(sources, name):
            option = name.strip("_").replace("_", "-")
            raise UsageError(f"--{option} is for capturing; a capture has its packets")
    if "-" in captures and len(captures) > 1:
        raise UsageError("standard input is read alone; leave out the files")
    if recording.write is None:
        for name in ("rotate_size", "rotate_time", "keep"):
            if getattr(recording, name) is not None:
                raise UsageError(f"--{name.replace('_', '-')} is for --write FILE")
    elif recording.keep is not None and not (recording.rotate_size or recording.rotate_time):
        raise UsageError("--keep is for a rotation; give --rotate-size or --rotate-time too")
    elif str(recording.write) == "-" or Path(recording.write).is_dir():
        raise UsageError(f"--write {recording.write}: give the name of a file")
    elif captures:
        refuse_captures(recording.write, captures)
        _refuse_followed(recording.write, captures)


def _refuse_followed(written: Path, captures: list[str]) -> None:
    """Raise UsageError when what is written would be read again, and written again, without end."""
    folder = written.absolute().parent
    for name in captures:
        followed = Path(name) if Path(name).is_dir() else Path(name).parent
        several = followed == Path(name) or glob.has_magic(name)
        if several and followed.exists() and followed.samefile(folder):
            raise UsageError(f"{written} would be followed itself; --write to another folder")
