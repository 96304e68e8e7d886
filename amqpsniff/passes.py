"""Passes over captures: each reads the input from its beginning through a pipeline of its own.

`amqpsniff.reader.Capture` uses them, and so do commands: for rows in pieces while a capture is
still being written, for several tables at once, for comments and link types of the files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from amqpsniff.errors import UsageError, read_twice
from amqpsniff.findings import Finding
from amqpsniff.options import Options
from amqpsniff.pipeline import MAX_RECORDS, Pipeline, Totals, drain, run
from amqpsniff.plan import Plan
from amqpsniff.tls.secrets import without_secrets

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Unpack

    from amqpsniff.analysis.client_names import ClientNames
    from amqpsniff.analysis.frame_bytes import FrameBytes
    from amqpsniff.analysis.selection import Filters, PartFilters, RowFilter, Selection
    from amqpsniff.analysis.summary import Summary
    from amqpsniff.analysis.timeline import Entry
    from amqpsniff.analysis.trace import Tracer, WantedMessages
    from amqpsniff.capture import CaptureSet
    from amqpsniff.capture.packets import PacketBatch
    from amqpsniff.compare import CaptureProfile
    from amqpsniff.report.capture_page import CapturePage
    from amqpsniff.session.census import Census
    from amqpsniff.tcp.partition import Partition

MAX_FILTERED_FRAMES = 8_192
"""Frames from the beginning of a timeline that are chosen one by one: to import Arrow's functions,
which are faster then, takes 25 ms longer."""

CENSUS = "census"
"""A table without columns: what a selection for a census chooses."""

FINDINGS_PER_BATCH = 4_096
"""Rows of `findings` in a batch, at most: some 3 MB."""


def counted(part: Filters, limit: int | None = None) -> Selection:
    """A selection for counting: it has no `where`, and `limit` leaves out no traffic."""
    from amqpsniff.analysis.selection import selection

    chosen = replace(selection(part, limit), limit=None)
    if chosen.where is not None:
        raise UsageError("`where` chooses rows of a table; a summary has none", "where")
    return chosen


class Passes:
    """Passes over captures that are read as one, in the order of time.

    Attributes:
        names: Names of the captures; empty once they are closed.
        once: Captures that can be read only once: standard input, pipes.
        options: Options of decoding.
        totals: Counts of the last pass, growing while it runs.
        outcomes: (number, `Histogram` of times) by outcome, of the last pass with a census.
        replies: `Histogram` of reply times by the request's method, of the same pass.
        encrypted: TLS conversations of the last pass, one mapping each.
        comments: Comments of the captures' sections, once the last pass is over.
        link_types: Link types (numbers of pcap) of their interfaces, once the last pass is over.
        early: True while replies and outcomes of the rows just given may still come: while
            standard input has no more for now, the rows of what came so far are given.
        found: Findings of the last pass, once it is over; all of them when `messages` or
            `findings` were among its tables.
        finished: True once the last pass has read everything.
        begun: Number of passes so far.
    """

    def __init__(
        self, paths: Iterable[str | os.PathLike[str] | IO[bytes]], options: Options
    ) -> None:
        from amqpsniff.capture import OpenFiles, expand, is_regular

        self._files = OpenFiles()
        self.names = expand(paths, self._files)
        self.once = [
            name for name in self.names if name not in self._files and not is_regular(name)
        ]
        self.options = options
        self.totals = Totals()
        self.outcomes: dict[str, tuple[int, Any]] = {}
        self.replies: dict[str, Any] = {}
        self.encrypted: list[dict[str, Any]] = []
        self.link_types: list[int] = []
        self.comments: list[str] = []
        self.early = False
        self.found: list[Finding] = []
        self.finished = False
        self.begun = 0

    def packets(self) -> CaptureSet:
        """A reading of the packets, in batches."""
        from amqpsniff.capture import CaptureSet

        opener = self._files.open if self._files else None
        return CaptureSet(self.names, reader=self.options.reader, opener=opener)

    def check_read_again(self, operation: str) -> None:
        """Raise UsageError for an operation that reads the input again, if that is not possible."""
        if self.once:
            raise read_twice(operation, self.once[0])

    def tables(
        self,
        *tables: str,
        encoded: bool = False,
        columns: Mapping[str, Collection[str]] | None = None,
        census: Census | None = None,
        share: Partition | None = None,
        options: Options | None = None,
        on_connection_end: Callable[[Any], None] | None = None,
        on_stream: Callable[[Any], None] | None = None,
        on_silence: Callable[[Any], None] | None = None,
        doubled: bool = False,
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Record batches of several tables in one pass, as (table, batch); findings come last.

        `columns` names the columns that are wanted, by table; else as `Capture.batches`. A `census`
        counts on the way, and `outcomes` and `replies` are there afterwards. With
        a `share` only its conversations are followed. `options` are those of this pass; None for
        those of the capture. `on_connection_end` is called with each connection that ended,
        `on_stream` with the bytes that are decoded, `on_silence` with each silence, and `doubled`
        connections are counted, see `amqpsniff.plan.Plan`.
        """
        from amqpsniff.tables.batches import Maker

        makers = [
            Maker(table, encoded=encoded, columns=(columns or {}).get(table))
            for table in dict.fromkeys(tables)
        ]
        settings = {
            "on_connection_end": on_connection_end,
            "on_stream": on_stream,
            "on_silence": on_silence,
            "doubled": doubled,
        }
        return self._pass(makers, census, share, options, **settings)

    def row_filters(self, part: Selection, *tables: str) -> list[RowFilter]:
        """Row filters of each table, after a first reading of the input if one is needed.

        Raises UsageError if the input has to be read twice and cannot be.
        """
        from amqpsniff.analysis.selection import RowFilter

        part = self.chosen(part, *tables)
        return [RowFilter(part, table, self.started) for table in tables]

    def chosen(self, part: Selection, *tables: str) -> Selection:
        """The selection, completed by a first reading of the input if these tables need one.

        A table of any other name has no columns: only connections are chosen then.
        """
        finder = part.first_reading(tables, self.started)
        if finder is None or part.found is not None:
            return part
        if self.once:
            part.check_read_once(tables, self.once[0])
            return part
        for table, batch in self.tables(*finder.tables, encoded=True, columns=finder.tables):
            finder.add(table, batch)
        return finder.found()

    def selected(
        self, part: Selection, *, columns: Mapping[str, Collection[str] | None], **settings: Any
    ) -> Iterator[tuple[str, Any]]:
        """Batches of tables, given with the columns that are needed or None, as far as wanted."""
        filters = dict(zip(columns, self.row_filters(part, *columns), strict=True))
        needed = {table: filters[table].needed(names) for table, names in columns.items()}
        for table, batch in self.tables(*columns, encoded=True, columns=needed, **settings):
            yield table, filters[table].of(batch)

    def read(
        self,
        plan: Plan,
        take: Callable[..., None] | None = None,
        record: Callable[[Any], None] | None = None,
        options: Options | None = None,
    ) -> None:
        """Read the input once without Arrow.

        `take` is called with each result of `Pipeline.take`, `record` with each of
        `Pipeline.records`. Afterwards `found` and `totals` are those of the pass; `outcomes` and
        `replies` too, if the plan has a census.
        """
        pipeline = self._pipeline(plan, options)
        with self.packets() as packets:
            for _ in run(packets, pipeline):
                if record is not None and pipeline.tracker.rows >= MAX_RECORDS:
                    record(pipeline.records())
                for taken in pipeline.rest() if pipeline.finished else pipeline.settled():
                    if take is not None:
                        take(*taken)
            if record is not None:
                record(pipeline.records())
            self._finish(packets, pipeline.findings(packets.findings))
        if plan.census is not None:
            self.outcomes, self.replies = pipeline.outcomes(), pipeline.replies()

    def span(self, part: Selection) -> Callable[[], tuple[int | None, int | None]] | None:
        """Gives the time that a selection chooses, once a packet was read; None for all of it."""
        if part.from_ is None and part.to is None:
            return None
        return lambda: part.span(self.started)

    def started(self) -> int | None:
        """The time of the first packet of this pass, None before it."""
        return self.totals.span[0]

    def timeline_pieces(
        self,
        part: Selection,
        *,
        frames: bool = False,
        columns: tuple[str, ...] | None = None,
        clients: ClientNames | None = None,
    ) -> Iterator[Iterable[Entry]]:
        """The entries of `Capture.timeline` in pieces, each as soon as its rows are decoded.

        So a capture can be shown while it is still written. `columns` are those of messages that
        entries carry; None for those of `amqpsniff.analysis.one_line.LINE_COLUMNS`. `clients`
        learns from the frames what clients are called.
        """
        from amqpsniff.analysis.conversation import without_folded
        from amqpsniff.analysis.one_line import LINE_COLUMNS
        from amqpsniff.analysis.timeline import CONTENT_METHODS, FOLDED, Timeline

        (row_filter,) = self.row_filters(part, "frames")
        timeline = Timeline(frozenset() if frames else CONTENT_METHODS, columns or LINE_COLUMNS)
        everything = not (frames or part.chooses() or part.limit is not None)
        seen = 0
        for table, batch in self.tables("frames", "messages", encoded=True):
            if table == "frames" and clients is not None:
                clients.add(batch)
            if table == "messages":
                yield timeline.messages(batch)
            else:
                seen += batch.num_rows
                if everything and seen <= MAX_FILTERED_FRAMES:
                    timeline.frames(batch, early=self.early, without=FOLDED)
                else:
                    rows = row_filter.of(batch if frames else without_folded(batch))
                    timeline.frames(rows, early=self.early)
                yield timeline.ready()
            if row_filter.done and timeline.settled:
                break
        yield timeline.ready(last=True)

    def frames_with_bytes(
        self, part: Selection, clients: ClientNames
    ) -> Iterator[tuple[Entry, FrameBytes]]:
        """Frames in the order of time, each with a `FrameBytes` that can find its bytes now.

        `clients` learns from the frames what clients are called.
        """
        from amqpsniff.analysis.frame_bytes import FrameBytes
        from amqpsniff.analysis.timeline import Timeline
        from amqpsniff.tables.batches import Maker

        (row_filter,) = self.row_filters(part, "frames")
        timeline = Timeline(frozenset(), ())
        frame_bytes = FrameBytes()
        makers = [Maker("frames", encoded=True)]
        pipeline = self._pipeline(Plan(("frames",), on_stream=frame_bytes.add))
        for _, batch in self._drained(pipeline, makers, lambda *_: True):
            clients.add(batch)
            timeline.frames(row_filter.of(batch), early=True)
            yield from ((entry, frame_bytes) for entry in timeline.ready())
            if row_filter.done:
                return

    def tracer(self, wanted: WantedMessages) -> Tracer:
        """The rows that `trace` puts together, as an Arrow table too, and the clients' names."""
        from amqpsniff.analysis.trace import Tracer
        from amqpsniff.packs import COLUMNS
        from amqpsniff.tables.schema import MESSAGES

        part = self.chosen(wanted.part, "messages")
        tracer = Tracer(replace(wanted, part=part), self.started)
        options = replace(self.options, body_sha256=True)
        columns = {
            "messages": {*MESSAGES.names, *COLUMNS, *tracer.columns},
            "connections": {"connection_id", "connection_name"},
        }
        for table, batch in self.tables(*columns, encoded=True, columns=columns, options=options):
            if table == "messages":
                tracer.add(batch)
            else:
                tracer.clients.learn(batch.to_pylist())
        return tracer

    def profile(self) -> CaptureProfile:
        """The profile of this capture for `diff`, from one pass."""
        from amqpsniff.compare.profile import COLUMNS, TABLES, CaptureProfile
        from amqpsniff.session.census import Census

        census, made = Census(), CaptureProfile(self.names)
        for table, batch in self.tables(*TABLES, encoded=True, columns=COLUMNS, census=census):
            made.add(table, batch)
        made.finish(self.totals, census.facts(), self.outcomes, self.replies, self.found)
        return made

    def report_page(
        self,
        connections: Sequence[str] = (),
        title: str | None = None,
        *,
        only: str | Iterable[str] | None = None,
        ignore: str | Iterable[str] | None = None,
        severity: str | None = None,
        **part: Unpack[PartFilters],
    ) -> CapturePage:
        """The page of `report` without conversations, which `read_sequences` adds."""
        from amqpsniff import __version__
        from amqpsniff.analysis.diagnosis import WantedFindings
        from amqpsniff.analysis.report_data import COLUMNS, TOP, ReportData
        from amqpsniff.report.capture_page import CapturePage
        from amqpsniff.report.page import begin_bundle
        from amqpsniff.session.census import Census

        begin_bundle()
        chosen = self.chosen(counted(part), CENSUS, *COLUMNS)  # type: ignore[arg-type]
        data = ReportData(chosen, connections, self.started, WantedFindings(only, ignore, severity))
        matches = chosen.matches_connection()
        census = Census(1, None, matches, self.span(chosen))
        settings: Any = {"census": census, "on_connection_end": data.introductions.add}
        if chosen.chooses():
            columns = {table: {*names, *data.columns[table]} for table, names in COLUMNS.items()}
            for table, batch in self.tables(*COLUMNS, encoded=True, columns=columns, **settings):
                data.add(table, batch)
        else:  # without Arrow, see `diagnose`
            plan = Plan(frozenset(COLUMNS), **settings)
            self.read(plan, data.add_rows, data.add_records)
        summary = self.summary(census, chosen, TOP, ())  # the page has findings of its own
        data.finish(summary, self.totals, self.found)
        secrets = self.options.show_secrets
        return CapturePage(data, title, version=__version__, show_secrets=secrets)

    def read_sequences(self, page: CapturePage, body_limit: int = 0) -> None:
        """Add conversations to a page, with `body_limit` bytes of each body.

        Nothing is added if the input can be read only once.
        """
        sequences = None if self.once else page.sequences(body_limit)
        if sequences is not None:
            columns = sequences.columns
            plan = Plan(tuple(columns), columns, share=sequences.share)
            options = replace(self.options, bodies=body_limit > 0)
            self.read(plan, sequences.add_rows, options=options)
            page.show(sequences)

    def summary(
        self, census: Census, part: Selection, top: int, findings: Sequence[Finding] | None = None
    ) -> Summary:
        """The summary of the last pass.

        `findings` replace those of the pass.
        """
        from amqpsniff.analysis.summary import summary

        return summary(
            census.facts(),
            self.totals,
            captures=self.names,
            comments=self.comments,
            tls=self.encrypted,
            outcomes=self.outcomes,
            replies=self.replies,
            findings=self.found if findings is None else findings,
            part=part.chooses(),
            zone=part.tz,
            top=top,
        )

    def _finish(self, packets: CaptureSet, findings: Iterable[Finding]) -> None:
        """Keep the findings and the files' own data: comments may be key logs."""
        self.found = [*packets.findings, *findings]
        self.finished = True
        hide = str if self.options.show_secrets else without_secrets
        self.comments = [hide(comment) for comment in packets.comments]
        self.link_types = packets.link_types

    def _pipeline(self, plan: Plan, options: Options | None = None) -> Pipeline:
        """A new pipeline for another reading of the input."""
        if not self.names:
            raise UsageError("this capture is closed")
        if self.begun and self.once:
            raise UsageError(f"{self.once[0]} can be read only once; save it to a file first")
        self.begun += 1
        self.finished = False
        pipeline = Pipeline(options or self.options, plan)
        self.totals = pipeline.totals
        self.encrypted = pipeline.encrypted
        return pipeline

    def _pass(
        self,
        makers: list[Any],
        census: Census | None = None,
        share: Partition | None = None,
        options: Options | None = None,
        **settings: Any,
    ) -> Iterator[tuple[str, Any]]:
        """One reading of the input through a new pipeline."""
        from amqpsniff.tables.batches import plan_for

        plan = plan_for(makers, census=census, share=share, **settings)
        pipeline = self._pipeline(plan, options)

        def at_rest(packets: CaptureSet, batch: PacketBatch | None) -> bool:
            goes_on = batch is not None and bool(self.once) and not pipeline.ready
            self.early = goes_on and packets.at_rest()
            return self.early

        yield from self._drained(pipeline, makers, at_rest)
        if census is not None:
            self.outcomes, self.replies = pipeline.outcomes(), pipeline.replies()
        for maker in makers:
            if maker.table == "findings":
                for first in range(0, max(len(self.found), 1), FINDINGS_PER_BATCH):
                    yield maker.table, maker.make(self.found[first : first + FINDINGS_PER_BATCH])

    def _drained(
        self, pipeline: Pipeline, makers: list[Any], at_rest: Callable[..., bool]
    ) -> Iterator[tuple[str, Any]]:
        """One reading of the input; `at_rest` is called as by `drain`, with the packets first."""
        with self.packets() as packets:
            steps = run(packets, pipeline)
            yield from drain(steps, pipeline, makers, partial(at_rest, packets))
            self._finish(packets, pipeline.findings(packets.findings))
