"""Captures: `open` names them, `Capture` reads them as often as it is asked.

Each pass over the input (`amqpsniff.passes`) gives rows as they are decoded, so memory does not
grow with the capture. What rows mean together (a summary, a topology, the way of a message) is
found out by `amqpsniff.analysis`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal
from warnings import warn

from amqpsniff import html_repr
from amqpsniff.arguments import several
from amqpsniff.errors import UsageError
from amqpsniff.limits import Limits
from amqpsniff.objects import Finding, Frame, Message, rows
from amqpsniff.objects import Kind as RowKind
from amqpsniff.options import File, Files, Options
from amqpsniff.passes import CENSUS, Passes, counted
from amqpsniff.pipeline import Totals
from amqpsniff.plan import Plan
from amqpsniff.rereadable import Rereadable, Rows, TableRows, Tabular

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from typing_extensions import Unpack

    from amqpsniff.analysis.conversation import Conversation
    from amqpsniff.analysis.diagnosis import Diagnosis
    from amqpsniff.analysis.readiness import Readiness
    from amqpsniff.analysis.selection import Filters, PartFilters, Selection
    from amqpsniff.analysis.summary import Summary
    from amqpsniff.analysis.timeline import Entry
    from amqpsniff.analysis.topology import TopologyResult
    from amqpsniff.analysis.trace import TracedMessage
    from amqpsniff.tables.query import Result
    from amqpsniff.tables.scans import ScannedTable
    from amqpsniff.wireshark.annotate import Annotated
    from amqpsniff.wireshark.cut import Cut

MAX_NAMES = 3
"""Names of captures that are shown of one."""

JUDGED = frozenset(("findings", "messages"))
"""What rules need: some findings are made together with a message's row."""


def open(
    *paths: str | os.PathLike[str] | IO[bytes],
    ports: int | Iterable[int] = (),
    dialect: str | None = None,
    table_dialect: str = "rabbitmq",
    bodies: bool = False,
    body_sha256: bool = False,
    show_secrets: bool = False,
    tls_keylog: File | None = None,
    tls_key: Files = (),
    packs: Files = (),
    reader: str = "auto",
    limits: Limits | None = None,
) -> Capture:
    """Name captures to be read: files, directories, patterns, or `-` for standard input.

    Raises CaptureError when a name is not there or no capture is found, UsageError for an option
    that makes no sense. Files are read when rows are asked for; that raises CaptureError when none
    of them can be read.

    >>> import amqpsniff
    >>> capture = amqpsniff.open("samples/pika_mix.pcap")
    >>> next(capture.frames())
    <Frame protocol-header #4 channel 0 from client>
    >>> next(capture.messages()).routing_key
    'order.new.eu'

    Args:
        paths: What to read, as one capture in the order of time; also binary files that are open,
            one that cannot seek is read to its end now.
        ports: Follow only conversations with this port, or one of several; empty for any port, by
            content.
        dialect: Decode as `0-8`, `0-9` or `0-9-1`; None to find out.
        table_dialect: Reading of field-table tags: `rabbitmq`, `spec091` or `py-amqp`.
        bodies: Keep message bodies.
        body_sha256: Compute the SHA-256 of whole bodies.
        show_secrets: Write credentials as they are instead of `[redacted]`.
        tls_keylog: A key log (`SSLKEYLOGFILE`) that opens TLS conversations; secrets inside a
            pcapng are found without it.
        tls_key: File of an RSA private key that opens those with an RSA key exchange, or several.
        packs: A file (TOML) that says what messages of your own framework mean, or several; they
            are asked before those of ours.
        reader: `own`, `tshark`, or `auto`: tshark reads what our own readers cannot.
        limits: How many rows wait and how much is remembered, where the defaults do not suit.
    """
    options = Options.of(
        ports=ports,
        dialect=dialect,
        table_dialect=table_dialect,
        bodies=bodies,
        body_sha256=body_sha256,
        show_secrets=show_secrets,
        tls_keylog=tls_keylog,
        tls_key=tls_key,
        packs=packs,
        reader=reader,
        limits=limits,
    )
    return Capture(paths, options)


class Capture:
    """Captures that are read as one, in the order of time.

    Every call that gives rows reads the input again; standard input can be read only once.

    >>> import amqpsniff
    >>> with amqpsniff.open("samples/pika_mix.pcap") as capture:
    ...     capture.table("messages", columns=["method"]).num_rows
    111

    Attributes:
        passes: The passes over the input, and what the last one found: see
            `amqpsniff.passes.Passes`.
    """

    def __init__(
        self, paths: Iterable[str | os.PathLike[str] | IO[bytes]], options: Options | None = None
    ) -> None:
        self.passes = Passes(paths, options or Options())

    @property
    def names(self) -> list[str]:
        """The captures, as they were found."""
        return self.passes.names

    @property
    def options(self) -> Options:
        """Options of decoding."""
        return self.passes.options

    @property
    def totals(self) -> Totals:
        """Counts of the last pass, growing while it runs."""
        return self.passes.totals

    def __repr__(self) -> str:
        names = ", ".join(map(html_repr.line, self.names[:MAX_NAMES])) or "closed"
        others = len(self.names) - MAX_NAMES
        return f"<Capture {names}{f' and {others:,} more' if others > 0 else ''}>"

    def _repr_html_(self) -> str:
        """For notebooks: what would be read, how, and the counts of the last pass."""
        given, usual = vars(self.options), vars(Options())
        chosen = {name: value for name, value in given.items() if value != usual[name]}
        counts = dict(vars(self.totals)) if self.passes.begun else {}
        for name in ("counters", "confirm_bounds"):
            counts.pop(name, None)
        return html_repr.table(repr(self)[1:-1], [*chosen.items(), *counts.items()])

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the capture; iterators that still run end when they are garbage-collected."""
        self.passes.names = []

    def batches(
        self,
        table: str,
        *,
        encoded: bool = False,
        columns: Collection[str] | None = None,
        limit: int | None = None,
        **part: Unpack[Filters],
    ) -> Iterator[pa.RecordBatch]:
        """Record batches of one table (`frames`, `messages`, `findings`), some 24,576 rows each.

        With `encoded`, strings that repeat stay dictionary encoded, which is what the writers of
        `amqpsniff.tables.export` want; otherwise types are those of the table contract. `columns`
        names the columns that are wanted, which come in the table's order; None for all. `limit` is
        the number of rows, and the other arguments choose them: see
        `amqpsniff.analysis.selection.Selection`. The iterator is one pass: call `batches` again for
        another. Raises UsageError for an unknown table or column.

        >>> import amqpsniff
        >>> capture = amqpsniff.open("samples/pika_mix.pcap")
        >>> sum(batch.num_rows for batch in capture.batches("frames"))
        563
        """
        needed = None if columns is None else {table: columns}
        if part or limit is not None:
            return self._chosen_batches(table, self._selection(part, limit), columns, encoded)
        batches = self.passes.tables(table, encoded=encoded, columns=needed)
        return map(itemgetter(1), batches)  # which keeps no batch while the next is made

    def _chosen_batches(
        self, table: str, part: Selection, columns: Collection[str] | None, encoded: bool
    ) -> Iterator[pa.RecordBatch]:
        """Batches with the rows and columns that are wanted, none of them empty."""
        from amqpsniff.tables.batches import Maker

        (rows,) = self.passes.row_filters(part, table)
        names = Maker(table, columns=columns).schema.names
        needed = {table: rows.needed(columns)}
        for _, batch in self.passes.tables(table, encoded=encoded, columns=needed):
            if (selected := rows.of(batch)).num_rows:
                yield selected.select(names)
            if rows.done:
                return

    @staticmethod
    def _selection(part: Filters, limit: int | None = None) -> Selection:
        """The selection that arguments name; raises UsageError for an unknown one."""
        from amqpsniff.analysis.selection import selection

        return selection(part, limit)

    def tables(
        self,
        *tables: str,
        encoded: bool = False,
        columns: Mapping[str, Collection[str]] | None = None,
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Record batches of several tables in one pass, as (table, batch); findings come last.

        `columns` names the columns that are wanted, by table; else as `batches`.
        """
        return self.passes.tables(*tables, encoded=encoded, columns=columns)

    def table(
        self,
        table: str,
        *,
        columns: Collection[str] | None = None,
        limit: int | None = None,
        **part: Unpack[Filters],
    ) -> pa.Table:
        """Rows of one table as a `pyarrow.Table`, which is as large as they are; as `batches`."""
        import pyarrow as pa

        from amqpsniff.tables.batches import Maker

        schema = Maker(table, columns=columns).schema
        batches = self.batches(table, columns=columns, limit=limit, **part)
        return pa.Table.from_batches(batches, schema)

    def frames(self, *, limit: int | None = None, **part: Unpack[Filters]) -> Tabular[Frame]:
        """Frames one by one, as objects; each loop over the result reads the input again.

        `limit` is the number of frames, and the other arguments choose them: see
        `amqpsniff.analysis.selection.Selection`.

        >>> import amqpsniff
        >>> capture = amqpsniff.open("samples/pika_mix.pcap")
        >>> [frame.packet_number for frame in capture.frames(method="queue.*", errors=True)]
        []
        """
        return self._rows("frames", Frame, limit, None, part)

    def _rows(
        self,
        table: str,
        kind: type[RowKind],
        limit: int | None,
        columns: Collection[str] | None,
        part: Filters,
    ) -> Tabular[RowKind]:
        which: dict[str, Any] = {"columns": columns, "limit": limit, **part}
        read = partial(self.batches, table, encoded=True, **which)
        return TableRows(
            table,
            lambda: rows(kind, read()),
            partial(self.table, table, **which),
            once=bool(self.passes.once),
        )

    def messages(self, *, limit: int | None = None, **part: Unpack[Filters]) -> Tabular[Message]:
        """Messages one by one, as objects, in the order in which they ended; as `frames`.

        >>> import amqpsniff
        >>> capture = amqpsniff.open("samples/pika_mix.pcap")
        >>> len(list(capture.messages(queue="orders.*", outcome="requeued")))
        8
        """
        from amqpsniff.tables.schema import schema_of

        names = schema_of("messages", everything=True).names
        return self._rows("messages", Message, limit, names, part)

    def findings(self, *, limit: int | None = None, **part: Unpack[Filters]) -> Tabular[Finding]:
        """Findings one by one, as objects, after the whole input was read; as `frames`."""
        return self._rows("findings", Finding, limit, None, part)

    def sql(
        self, statement: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None
    ) -> Result:
        """Run one SELECT over the tables; gives record batches, or all rows as a table.

        `parameters` are the values of `?` in order, or of `$name` by name. The input is read once
        for every time that the statement scans a table, and again for every further loop over the
        result. Raises FilterError for a statement that does not run.

        >>> import amqpsniff
        >>> capture = amqpsniff.open("samples/pika_mix.pcap")
        >>> statement = "SELECT count(*) AS acks FROM frames WHERE method = ?"
        >>> (rows,) = capture.sql(statement, ["basic.ack"])
        >>> rows.to_pylist()
        [{'acks': 89}]
        """
        from amqpsniff.tables.query import sql
        from amqpsniff.tables.schema import EVERYTHING

        def opened(table: str) -> Callable[[Collection[str]], Iterator[Any]]:
            return lambda columns: self.batches(table, encoded=True, columns=columns)

        tables = {name: (schema, opened(name)) for name, schema in EVERYTHING.items()}
        return sql(statement, tables, parameters)

    def dataset(self, table: str, **part: Unpack[Filters]) -> ScannedTable:
        """A table as a `pyarrow.dataset.Dataset`; DuckDB queries it by the variable's name.

        Every query reads the input once and makes only the columns that it asks for. The other
        arguments choose rows: see `amqpsniff.analysis.selection.Selection`. Raises UsageError for
        an unknown table.

        >>> import amqpsniff, duckdb
        >>> messages = amqpsniff.open("samples/pika_mix.pcap").dataset("messages")
        >>> duckdb.sql("SELECT max(body_size) FROM messages WHERE outcome = 'acked'").fetchall()
        [(907,)]
        """
        from amqpsniff.tables.scans import ScannedTable

        return ScannedTable(*self._source(table, part))

    def scan(self, table: str, **part: Unpack[Filters]) -> pl.LazyFrame:
        """A table as a lazy frame of polars, with the arguments and errors of `dataset`.

        Raises UsageError without polars (extra `dataframes`).

        >>> import amqpsniff
        >>> frames = amqpsniff.open("samples/pika_mix.pcap").scan("frames")
        >>> frames.select("method").unique().collect().height
        54
        """
        from amqpsniff.tables.scans import lazy_frame

        return lazy_frame(*self._source(table, part))

    def _source(
        self, table: str, part: Filters
    ) -> tuple[pa.Schema, Callable[[Collection[str]], Iterator[pa.RecordBatch]]]:
        """The schema of a table, and what begins a reading of some of its columns."""
        from amqpsniff.tables.batches import Maker
        from amqpsniff.tables.schema import EVERYTHING

        Maker(table)  # which says what tables there are
        return EVERYTHING[table], lambda columns: self.batches(table, columns=columns, **part)

    def report_table(self, name: str, *, bucket_seconds: int = 0) -> pa.Table:
        """The rows of a report (`amqpsniff.analysis.report_tables.REPORTS`) as a `pyarrow.Table`.

        The input is read once. `bucket_seconds` is the length of a time bucket; 0 to choose one.
        Raises UsageError for an unknown report.

        >>> import amqpsniff
        >>> capture = amqpsniff.open("samples/pika_mix.pcap")
        >>> capture.report_table("losses").column("published").to_pylist()
        [2, 51]
        """
        from amqpsniff.analysis.report_tables import report_table

        return report_table(self.passes, name, bucket_seconds=bucket_seconds)

    def summary(
        self,
        *,
        limit: int = 10,
        **part: Unpack[Filters],
    ) -> Summary:
        """Summary of the capture: clients, routes, failures, and the quality of the capture.

        Same as `amqpsniff summary --format json`; `amqpsniff.analysis.summary.Summary` names the
        keys. `limit` is the number of rows of a section. The other arguments choose a part of the
        traffic, by connection: a queue chooses the connections that use it. See
        `amqpsniff.analysis.selection.Selection`. Raises UsageError for an invalid time.

        >>> import amqpsniff
        >>> summary = amqpsniff.open("samples/pika_mix.pcap").summary()
        >>> summary["connection_count"], summary["methods"]["basic.publish"]
        (4, 53)
        """
        from amqpsniff.session.census import Census

        chosen = self.passes.chosen(counted(part, limit), CENSUS)
        census = Census(
            limit,
            chosen.channel,
            chosen.matches_connection(),
            self.passes.span(chosen),
        )
        self.passes.read(Plan((), census=census))
        return self.passes.summary(census, chosen, limit)

    def operations(self, **part: Unpack[Filters]) -> pa.Table:
        """Messages by operation (task, job, event of a framework): rates, retries, failures, times.

        Same as `amqpsniff summary --by operation`; the report `operations` explains the columns.
        The arguments choose messages: see `amqpsniff.analysis.selection.Selection`.

        >>> import amqpsniff
        >>> capture = amqpsniff.open("tests/captures/packs/dramatiq.pcap.gz")
        >>> rows = capture.operations().to_pylist()
        >>> [(row["operation"], row["published"], row["error_type"]) for row in rows]
        [('resize', 6, 'ValueError')]
        """
        from amqpsniff.analysis.report_tables import OPERATION_COLUMNS, operations

        chosen = self.passes.selected(
            self._selection(part), columns={"messages": OPERATION_COLUMNS}
        )
        return operations(batch for _, batch in chosen)

    def topology(
        self,
        *,
        limit: int | None = 20,
        **part: Unpack[Filters],
    ) -> TopologyResult:
        """Exchanges, queues, bindings, publishers and consumers as they were seen.

        What `amqpsniff topology --format json` prints; `amqpsniff.analysis.topology.TopologyResult`
        names the keys. `limit` is the number of rows of a section, None for all; the other
        arguments choose frames and messages, see `amqpsniff.analysis.selection.Selection`.

        >>> import amqpsniff
        >>> topology = amqpsniff.open("samples/pika_mix.pcap").topology()
        >>> [row["queue"] for row in topology["queues"] if row["delivered"] > 10]
        ['orders.eu']
        """
        from amqpsniff.analysis.topology import COLUMNS, Topology

        chosen = counted(part, limit)
        topology = Topology()
        if chosen.chooses():
            for table, batch in self.passes.selected(chosen, columns=COLUMNS, doubled=True):
                topology.add(table, batch)
        else:  # without Arrow, see `diagnose`
            columns = tuple(COLUMNS), COLUMNS
            plan = Plan(*columns, message_arguments=False, outcomes=False, doubled=True)
            self.passes.read(plan, topology.add_rows, topology.add_records)
            topology.count_rows()
        topology.doubled = self.passes.totals.doubled
        return topology.result(limit, self.names)

    def trace(
        self,
        *,
        correlation_id: str | None = None,
        header: str | None = None,
        body_sha256: str | None = None,
        trace_id: str | None = None,
        operation: str | None = None,
        key: str | None = None,
        **part: Unpack[Filters],
    ) -> list[TracedMessage]:
        """The way of messages over all connections: published, confirmed, delivered, acked.

        Of several conditions all must hold: `correlation_id` is a value of this column, `header` is
        `NAME=VALUE`, `body_sha256` has 64 hexadecimal digits, `trace_id` and `operation` are values
        of their columns, `key` is one of `message_key`, `conversation_key` or `parent_key`, and of
        the other arguments
        (`amqpsniff.analysis.selection.Selection`) `message_id`, `routing_key`, `queue` and so on
        name messages whose whole way is shown, as far as it lies in `from_`, `to`, `connection` and
        `channel`. The first `amqpsniff.analysis.trace.MAX_ROWS` rows are kept, and a Python warning
        says so where there are more. Raises UsageError if there is no condition.

        >>> import amqpsniff
        >>> capture = amqpsniff.open("samples/pika_mix.pcap")
        >>> (message,) = capture.trace(message_id="m13")
        >>> [(row["method"], row["outcome"]) for row in message.rows]
        [('basic.publish', 'confirmed'), ('basic.deliver', 'requeued'), ('basic.deliver', 'acked')]
        """
        from amqpsniff.analysis.trace import MAX_ROWS, WantedMessages

        chosen = self._selection(part)
        wanted = WantedMessages(
            correlation_id, header, body_sha256, trace_id, operation, key, chosen
        )
        tracer = self.passes.tracer(wanted)
        if tracer.full:
            warn(
                f"only the first {MAX_ROWS:,} rows that match are kept; choose fewer by from_ and "
                "to, or take them from messages()",
                stacklevel=2,
            )
        return tracer.messages()

    def readiness(self, target: str, **part: Unpack[Filters]) -> Readiness:
        """Differences that a newer version of RabbitMQ (`rabbitmq-4.3`) makes for this traffic.

        Same as `amqpsniff diagnose --for`. The other arguments choose a part of the traffic: see
        `amqpsniff.analysis.selection.Selection`. Raises UsageError for an unknown version.

        >>> import amqpsniff
        >>> capture = amqpsniff.open("samples/aiopika_rpc.pcap")
        >>> {one.code for one in capture.readiness("rabbitmq-4.2").affected}
        {'reply-to-mandatory'}
        """
        from amqpsniff.analysis.readiness import COLUMNS, review, target_version

        target_version(target)
        return review(self.passes.selected(counted(part), columns=COLUMNS), target)

    def timeline(
        self,
        *,
        frames: bool = False,
        limit: int | None = None,
        **part: Unpack[Filters],
    ) -> Rereadable[Entry]:
        """Methods and messages in the order of time, as `amqpsniff inspect` lists them.

        A message is one entry, at its method; with `frames` every frame is one, headers, bodies and
        heartbeats too. The other arguments choose rows of the table `frames`, see
        `amqpsniff.analysis.selection.Selection`. Each loop over the result reads the input again.

        >>> import amqpsniff
        >>> capture = amqpsniff.open("samples/pika_mix.pcap")
        >>> publish = next(capture.timeline(where="method = 'basic.publish'"))
        >>> publish.message["routing_key"]
        'order.new.eu'
        """
        chosen = self._selection(part, limit)
        pieces = partial(self.passes.timeline_pieces, chosen, frames=frames)
        return Rows("timeline", lambda: chain.from_iterable(pieces()))

    def follow(
        self,
        connection: str | None = None,
        /,
        *,
        limit: int | None = None,
        bodies: bool = False,
        **part: Unpack[Filters],
    ) -> Conversation | None:
        """One connection, both directions, from its beginning to its end.

        `connection` is its id or the beginning of it, its client's `address:port` or `:port`; where
        there is only one, it need not be named. Without it, `packet` names the connection whose
        bytes that packet carries. Missing bytes are entries of the type `gap`. With
        `bodies` messages have a `body`. None if there is no AMQP. Raises UsageError if no
        connection is meant, or several are.

        The input is read once, and again by each loop over the entries.

        >>> import amqpsniff
        >>> conversation = amqpsniff.open("samples/bunny.pcapng").follow()
        >>> conversation.row["client_product"], next(conversation.entries).frame_type
        ('Bunny', 'protocol-header')
        """
        from amqpsniff.analysis.conversation import ConversationFinder

        if connection is not None:
            part["connection"] = connection
        chosen = replace(self._selection(part, limit), limit=None)
        packets = None if chosen.connection else chosen.packets()
        if packets is not None:
            chosen = replace(chosen, packet=None)
        self.passes.check_read_again("follow")
        chosen = self.passes.row_filters(chosen, "frames")[0].selection  # also checks `where`
        finder = ConversationFinder(chosen, self.passes.started, packets)
        for table, batch in self.passes.tables(
            *finder.TABLES, encoded=True, on_silence=finder.note, on_stream=finder.hold
        ):
            finder.add(table, batch)
        found = finder.found()
        if found is not None:
            chosen = replace(chosen, connection=found.row["connection_id"])
            found.entries = Rows(
                "entries", partial(self._entries, found.row, chosen, bodies, limit)
            )
        return found

    def _entries(
        self, row: dict[str, Any], part: Selection, bodies: bool, limit: int | None
    ) -> Iterator[Entry]:
        """The entries of the connection that has this row."""
        from amqpsniff.analysis.body_text import COLUMNS as READ_BY
        from amqpsniff.analysis.conversation import entries_of, share_of
        from amqpsniff.analysis.one_line import LINE_COLUMNS
        from amqpsniff.analysis.timeline import (
            CONTENT_METHODS,
            FRAME_COLUMNS,
            MESSAGE_KEY,
            Timeline,
        )

        columns = (*LINE_COLUMNS, *READ_BY) if bodies else LINE_COLUMNS
        options = replace(self.options, bodies=True) if bodies else self.options
        (row_filter,) = self.passes.row_filters(part, "frames")
        needed = {
            "frames": {*FRAME_COLUMNS, *row_filter.columns},
            "messages": {*MESSAGE_KEY, *columns},
        }
        share = share_of([row])
        passes = self.passes
        batches = passes.tables(*needed, encoded=True, columns=needed, share=share, options=options)
        entries = entries_of(batches, part, Timeline(CONTENT_METHODS, columns), passes.started)
        return islice(entries, limit)

    def diagnose(
        self,
        *,
        only: str | Iterable[str] | None = None,
        ignore: str | Iterable[str] | None = None,
        severity: str | None = None,
        **part: Unpack[Filters],
    ) -> Diagnosis:
        """The verdict on the capture, its findings, the important first, and their tree of causes.

        `only` and `ignore` are codes of findings, with commas between or one by one; `severity`
        leaves out milder ones. The other arguments choose rows of the table `findings`, see
        `amqpsniff.analysis.selection.Selection`. Raises UsageError for an unknown code or severity,
        and for an unknown connection.

        >>> import amqpsniff
        >>> diagnosis = amqpsniff.open("samples/pika_mix.pcap").diagnose()
        >>> [case.code for case in diagnosis.cases][:2]
        ['channel-closed-by-broker', 'declaration-mismatch']
        >>> print(diagnosis.verdict.sentences[-1])
        4 more findings are listed below.
        """
        from amqpsniff.analysis.diagnosis import Diagnoser, WantedFindings

        chosen = self.passes.chosen(self._selection(part), "findings")
        diagnoser = Diagnoser(chosen, WantedFindings(only, ignore, severity), self.passes.started)
        on_connection_end = diagnoser.introductions.add
        if diagnoser.tables:
            for table, batch in self.passes.tables(
                *diagnoser.tables, encoded=True, on_connection_end=on_connection_end
            ):
                diagnoser.add(table, batch)
        else:  # without Arrow, whose import takes as long as 50 MB of traffic
            self.passes.read(Plan(JUDGED, outcomes=False, on_connection_end=on_connection_end))
        return diagnoser.result(self.totals, self.passes.found)

    def evidence(self, diagnosis: Diagnosis) -> dict[str, Any]:
        """A diagnosis of this capture with the frames that show each finding, from a reading.

        What `amqpsniff diagnose --format json --evidence` prints; its form is the JSON Schema in
        `amqpsniff.analysis.evidence.SCHEMA`.

        >>> import amqpsniff
        >>> capture = amqpsniff.open("samples/pika_mix.pcap")
        >>> evidence = capture.evidence(capture.diagnose(only="channel-closed-by-broker"))
        >>> place = evidence["cases"][0]["places"][0]
        >>> [(one["role"], one["method"]) for one in place["frames"]][2:5]
        [('before', 'queue.declare'), ('shown', 'channel.close'), ('after', 'channel.close-ok')]
        """
        from amqpsniff.analysis.evidence import COLUMNS, Evidence

        found = Evidence(diagnosis)
        for _, batch in self.passes.tables("frames", encoded=True, columns={"frames": COLUMNS}):
            found.add(batch)
        return found.document()

    def diff(
        self, after: Capture, *, fail_on: str | None = None, fail_slower: float | None = None
    ) -> dict[str, Any]:
        """Differences between this capture and a later one of the same application.

        Same as `amqpsniff diff --format json`: `rates`, `latencies`, `findings`, `topology`,
        `clients`, `servers` and `closes`, in which `notable` marks more than chance, and `caveats`.
        A new finding of the severity `fail_on` (`info`, `warning`, `error`) or a worse one is among
        the `failures`, and so is a 95th percentile that grew by more than `fail_slower` percent.
        Reads both captures once.

        >>> import amqpsniff
        >>> before, after = map(amqpsniff.open, ("samples/pika_mix.pcap", "samples/node.pcap"))
        >>> [row["product"] for row in before.diff(after)["clients"] if row["change"] == "gone"]
        ['Pika Python Client Library']
        """
        from amqpsniff.compare import before_and_after

        self._check_comparison(after, fail_on)
        sides = self.passes.profile(), after.passes.profile()
        return before_and_after(*sides, fail_on=fail_on, fail_slower=fail_slower)

    def same_traffic(
        self, nearer_to_broker: Capture, *, limit: int = 20, fail_on: str | None = None
    ) -> dict[str, Any]:
        """The same connections at two places: one-way delays, losses and alterations between them.

        This capture is the one made nearer to the clients. What `amqpsniff diff --same-traffic
        --format json` prints, with `limit` rows of each list; what happened between the captures
        and is as bad as `fail_on` is among the `failures`.

        >>> import amqpsniff
        >>> client = amqpsniff.open("samples/compared/path_client.pcap.gz")
        >>> broker = amqpsniff.open("samples/compared/path_broker.pcap.gz")
        >>> client.same_traffic(broker)["connections"]["both"]
        2
        """
        from amqpsniff.compare.same_traffic import SameTraffic, failures

        self._selection({}, limit)  # which raises for one that cannot be
        self._check_comparison(nearer_to_broker, fail_on)
        traffic = SameTraffic(self.passes, nearer_to_broker.passes)
        try:
            deque(traffic.read(), 0)
            report = traffic.report(limit)
        finally:
            traffic.close()
        return report | {"failures": failures(report, fail_on)}

    @staticmethod
    def _check_comparison(other: object, fail_on: str | None) -> None:
        """Raise UsageError if it is not a capture, and for an unknown severity."""
        from amqpsniff.findings.finding import rank

        if not isinstance(other, Capture):
            raise UsageError(f"{other!r} is not a Capture; amqpsniff.open makes one of a file")
        if fail_on is not None:
            rank(fail_on)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        connection: str | Iterable[str] = (),
        title: str | None = None,
        by: Literal["operation"] | None = None,
        body_limit: int = 0,
        only: str | Iterable[str] | None = None,
        ignore: str | Iterable[str] | None = None,
        severity: str | None = None,
        **part: Unpack[PartFilters],
    ) -> None:
        """Write what happened as one HTML page that needs nothing else, as `amqpsniff report`.

        `connection` names the connections whose conversations are shown; without it there is one
        for each finding that matters. With `by` the page has the rows of `operations`; `body_limit`
        bytes of each body stand in conversations. `only`, `ignore` and `severity` choose
        findings as in `diagnose`. The other arguments choose a part of the traffic, as in
        `summary`. Raises UsageError for an unknown connection, and if the package with the
        charts' library is missing (the extra `report`).
        """
        connections = several("connection", connection, str)
        page = self.passes.report_page(
            connections, title, only=only, ignore=ignore, severity=severity, **part
        )
        if by is not None:
            self.passes.check_read_again("operations")
            page.operations = self.operations(**part).to_pylist()
        self.passes.read_sequences(page, body_limit)
        Path(path).write_bytes(page.html().encode(errors="backslashreplace"))

    def traces(self, **part: Unpack[Filters]) -> Rereadable[dict[str, Any]]:
        """Journeys of messages as spans of OpenTelemetry: `TracesData` in the form of OTLP/JSON.

        What `amqpsniff export --format otlp` writes. The arguments choose messages: see
        `amqpsniff.analysis.selection.Selection`. Each loop over the result reads the input twice,
        for the names of clients first.

        >>> import amqpsniff
        >>> capture = amqpsniff.open("tests/captures/incidents/x_traceparent.pcap")
        >>> first = next(capture.traces())["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
        >>> first["name"], first["parentSpanId"]
        ('publish step1', '00f067aa0ba902b7')
        """
        from amqpsniff import __version__
        from amqpsniff.otlp.spans import COLUMNS, traces

        def read() -> Iterator[dict[str, Any]]:
            batches = self.batches("messages", encoded=True, columns=COLUMNS, **part)
            return traces(batches, self._services(), __version__)

        return Rows("traces", read)

    def _services(self) -> dict[str, str]:
        """Names of clients by connection; none where the input is read only once."""
        if self.passes.once:
            return {}
        columns = ["connection_id", "connection_name", "client_product"]
        rows_ = self.table("connections", columns=columns).to_pylist()
        return {
            row["connection_id"]: row["connection_name"] or row["client_product"] or ""
            for row in rows_
        }

    def cut(
        self,
        path: str | os.PathLike[str],
        *,
        finding: str | Iterable[str] = (),
        whole: bool = False,
        **part: Unpack[Filters],
    ) -> Cut:
        """Write the packets of a part of the traffic as pcapng, as `amqpsniff cut`.

        `finding` is the code of findings whose packets are written, or several; `whole` asks for
        whole TCP conversations. The other arguments choose a part of the traffic: see
        `amqpsniff.analysis.selection.Selection`. Reads the input several times.

        >>> import amqpsniff
        >>> capture = amqpsniff.open("samples/pika_mix.pcap")
        >>> capture.cut("/dev/null", message_id="m13").packets
        9
        """
        from amqpsniff.wireshark.cut import cut

        codes = several("finding", finding, str)
        chosen = self._selection(part)
        with self._replacing(path) as file:
            (done,) = deque(cut(self.passes, file, chosen, findings=codes, whole=whole), 1)
        return done

    def annotate(self, path: str | os.PathLike[str]) -> Annotated:
        """Write the capture as pcapng, with findings, outcomes and links as packet comments.

        What `amqpsniff annotate` does; packets keep their numbers. Reads the input twice.

        >>> import amqpsniff
        >>> amqpsniff.open("samples/bunny.pcapng").annotate("/dev/null").packets
        128
        """
        from amqpsniff.wireshark.annotate import annotate

        with self._replacing(path) as file:
            (done,) = deque(annotate(self.passes, file), 1)
        return done

    def _replacing(self, path: str | os.PathLike[str]) -> AbstractContextManager[IO[bytes]]:
        """A file to write while the capture is read, which must not be one of its files."""
        target = Path(path)
        if target.exists() and any(
            target.samefile(name) for name in self.names if Path(name).exists()
        ):
            raise UsageError(f"{target} is the capture itself; give another name")
        return target.open("wb")
