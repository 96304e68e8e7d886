"""Captures as tables: `open` names them, `Capture` reads them as often as it is asked.

Every pass reads the input from its beginning through a pipeline of its own and gives rows as they
are decoded, so memory does not grow with the capture.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from amqpsniff.errors import UsageError
from amqpsniff.findings import Finding as Found
from amqpsniff.limits import Limits
from amqpsniff.notebook import line, table
from amqpsniff.objects import Finding, Frame, Message, rows
from amqpsniff.options import File, Files, Options, files
from amqpsniff.pipeline import Pipeline, Totals
from amqpsniff.rereadable import Rereadable, Rows
from amqpsniff.tls.secrets import without_secrets

if TYPE_CHECKING:
    import pyarrow as pa

    from amqpsniff.capture import CaptureSet
    from amqpsniff.session.census import Census
    from amqpsniff.tables.query import Result
    from amqpsniff.tcp.shares import Share

MOST_NAMES = 3
"""Names of captures that are shown of one."""

RECORDS_PER_BATCH = 4_096
"""Rows of `connections` and `channels` after which they are given out: some 10 MB."""


def open(
    *paths: str | os.PathLike[str],
    ports: Iterable[int] = (),
    dialect: str | None = None,
    table_dialect: str = "rabbitmq",
    bodies: bool = False,
    body_sha256: bool = False,
    show_secrets: bool = False,
    tls_keylog: File | None = None,
    tls_key: Files = (),
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
        paths: What to read, as one capture in the order of time.
        ports: Follow only conversations with one of these ports; empty for any port, by content.
        dialect: Decode as `0-8`, `0-9` or `0-9-1`; None to find out.
        table_dialect: Reading of field-table tags: `rabbitmq`, `spec091` or `py-amqp`.
        bodies: Keep message bodies.
        body_sha256: Compute the SHA-256 of whole bodies.
        show_secrets: Write credentials as they are instead of `[redacted]`.
        tls_keylog: A key log (`SSLKEYLOGFILE`) that opens TLS conversations; secrets inside a
            pcapng are found without it.
        tls_key: File of an RSA private key that opens those with an RSA key exchange, or several.
        reader: `own`, `tshark`, or `auto`: tshark reads what our own readers cannot.
        limits: How many rows wait and how much is remembered, where the defaults do not suit.
    """
    options = Options(
        ports=frozenset(ports),
        dialect=dialect,
        table_dialect=table_dialect,
        bodies=bodies,
        body_sha256=body_sha256,
        show_secrets=show_secrets,
        tls_keylog=tls_keylog,
        tls_keys=files(tls_key),
        reader=reader,
        limits=limits or Limits(),
    )
    return Capture(paths, options)


class Capture:
    """Captures that are read as one, in the order of time.

    Every call that gives rows reads the input anew; standard input, which cannot be, only once.

    >>> import amqpsniff
    >>> with amqpsniff.open("samples/pika_mix.pcap") as capture:
    ...     capture.table("messages", columns=["method"]).num_rows
    111

    Attributes:
        names: The captures, as they were found.
        once: Those among them that can be read only once: standard input, pipes.
        options: How they are decoded.
        totals: Counts of the last pass, growing while it goes on.
        outcomes, replies: What `count` found out, or the last pass with a census.
        encrypted: The TLS conversations of the last pass, a mapping for each.
        comments: Comments of the captures' sections, once the last pass is over.
        link_types: Link types (numbers of pcap) of their interfaces, once the last pass is over.
        early: Whether replies and outcomes of the rows just given may still come. While standard
            input has no more for now, the rows of what came so far are given.
        found: A list of `Finding` of the last pass, once it is over; all of them when
            `messages` or `findings` were among its tables.
    """

    def __init__(
        self, paths: Iterable[str | os.PathLike[str]], options: Options | None = None
    ) -> None:
        from amqpsniff.capture import expand, is_regular

        self.names = expand(paths)
        self.options = options or Options()
        self.totals = Totals()
        self.outcomes: dict[str, tuple[int, Any]] = {}
        self.replies: dict[str, Any] = {}
        self.encrypted: list[dict[str, Any]] = []
        self.link_types: list[int] = []
        self.comments: list[str] = []
        self.early = False
        self.found: list[Found] = []
        self.once = [name for name in self.names if not is_regular(name)]
        self._passes = 0

    def __repr__(self) -> str:
        names = ", ".join(map(line, self.names[:MOST_NAMES])) or "closed"
        more = len(self.names) - MOST_NAMES
        return f"<Capture {names}{f' and {more:,} more' if more > 0 else ''}>"

    def _repr_html_(self) -> str:
        """For notebooks: what would be read, how, and the counts of the last pass."""
        given, usual = vars(self.options), vars(Options())
        chosen = {name: value for name, value in given.items() if value != usual[name]}
        counted = dict(vars(self.totals)) if self._passes else {}
        counted.pop("counters", None)
        return table(repr(self)[1:-1], [*chosen.items(), *counted.items()])

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is read after this; a pass that is under way ends by itself when let go."""
        self.names = []

    def batches(
        self, table: str, *, encoded: bool = False, columns: Collection[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Record batches of one table (`frames`, `messages`, `findings`), some 24,576 rows each.

        With `encoded`, strings that repeat stay dictionary encoded, which is what the writers of
        `amqpsniff.tables.export` want; otherwise types are those of the table contract. `columns`
        names the columns that are wanted, which come in the table's order; None for all. The
        iterator is one pass: call `batches` again for another. Raises UsageError for a table or a
        column that is not there.

        >>> import amqpsniff
        >>> capture = amqpsniff.open("samples/pika_mix.pcap")
        >>> sum(batch.num_rows for batch in capture.batches("frames"))
        563
        """
        wanted = None if columns is None else {table: columns}
        passed = self.tables(table, encoded=encoded, columns=wanted)
        return map(itemgetter(1), passed)  # which keeps no batch while the next is made

    def tables(
        self,
        *tables: str,
        encoded: bool = False,
        columns: Mapping[str, Collection[str]] | None = None,
        census: Census | None = None,
        share: Share | None = None,
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Record batches of several tables in one pass, as (table, batch); findings come last.

        `columns` names the columns that are wanted, by table; else as `batches`. A `census` counts
        on the way, and `outcomes` and `replies` are there afterwards, as with `count`. Of a `share`
        only its conversations are followed.
        """
        from amqpsniff.tables.batches import Maker

        makers = [
            Maker(table, encoded=encoded, columns=(columns or {}).get(table))
            for table in dict.fromkeys(tables)
        ]
        return self._pass(makers, census, share)

    def table(self, table: str, *, columns: Collection[str] | None = None) -> pa.Table:
        """All rows of one table as a `pyarrow.Table`; it is as large as they are."""
        import pyarrow as pa

        from amqpsniff.tables.batches import Maker

        maker = Maker(table, columns=columns)
        return pa.Table.from_batches((batch for _, batch in self._pass([maker])), maker.schema)

    def frames(self) -> Rereadable[Frame]:
        """Frames one by one, as objects; each loop over the result reads the input anew."""
        return Rows(lambda: rows(Frame, self.batches("frames", encoded=True)))

    def messages(self) -> Rereadable[Message]:
        """Messages one by one, as objects, in the order in which they ended; as `frames`."""
        from amqpsniff.tables.schema import schema_of

        every = schema_of("messages", everything=True).names
        return Rows(lambda: rows(Message, self.batches("messages", encoded=True, columns=every)))

    def findings(self) -> Rereadable[Finding]:
        """Findings one by one, as objects, after the whole input was read; as `frames`."""
        return Rows(lambda: rows(Finding, self.batches("findings", encoded=True)))

    def sql(self, statement: str) -> Result:
        """Run one SELECT over the tables; gives record batches, with a `schema` and a `table()`.

        The input is read once for every time that the statement scans a table, and again for every
        further loop over the result. Raises FilterError for a statement that does not run.

        >>> import amqpsniff
        >>> capture = amqpsniff.open("samples/pika_mix.pcap")
        >>> (rows,) = capture.sql("SELECT count(*) AS acks FROM frames WHERE method = 'basic.ack'")
        >>> rows.to_pylist()
        [{'acks': 89}]
        """
        from amqpsniff.tables.query import sql
        from amqpsniff.tables.schema import EVERYTHING

        def opened(table: str) -> Callable[[Collection[str]], Iterator[Any]]:
            return lambda columns: self.batches(table, encoded=True, columns=columns)

        return sql(statement, {name: (schema, opened(name)) for name, schema in EVERYTHING.items()})

    def count(self, census: Census) -> Iterator[int]:
        """Read everything once for a census; gives the number of packets now and then.

        Afterwards `found` has the findings that need no rules, `totals` the counts, `outcomes` and
        `replies` the times of messages' outcomes and of replies: by name, (how many, `Spread`).
        """
        from amqpsniff.capture import CaptureSet

        pipeline = self._pipeline((), census=census)
        with CaptureSet(self.names, reader=self.options.reader) as packets:
            for batch in packets:
                pipeline.learn(packets.take_secrets())
                pipeline.feed(batch)
                yield self.totals.packets
            pipeline.finish()
            self.found = [*packets.findings, *pipeline.findings(packets.findings)]
            self._describe(packets)
        self.outcomes, self.replies = pipeline.outcomes(), pipeline.replies()

    def _describe(self, packets: CaptureSet) -> None:
        """Keep what the files say of themselves; people paste key logs into comments."""
        hide = str if self.options.show_secrets else without_secrets
        self.comments = [hide(comment) for comment in packets.comments]
        self.link_types = packets.link_types

    def _pipeline(self, tables: Iterable[str], **more: Any) -> Pipeline:
        """A new pipeline for another reading of the input."""
        if not self.names:
            raise UsageError("this capture is closed")
        if self._passes and self.once:
            raise UsageError(f"{self.once[0]} can be read only once; save it to a file first")
        self._passes += 1
        pipeline = Pipeline(self.options, tables, **more)
        self.totals = pipeline.totals
        self.encrypted = pipeline.encrypted
        return pipeline

    def _pass(
        self, makers: list[Any], census: Census | None = None, share: Share | None = None
    ) -> Iterator[tuple[str, Any]]:
        """One reading of the input through a new pipeline."""
        from amqpsniff.capture import CaptureSet
        from amqpsniff.tables.batches import asked_of

        tables = {maker.table for maker in makers}
        if "findings" in tables:
            tables.add("messages")  # some findings are made together with a message's row
        pipeline = self._pipeline(tables, **asked_of(makers), census=census, share=share)
        with CaptureSet(self.names, reader=self.options.reader) as packets:
            for batch in packets:
                pipeline.learn(packets.take_secrets())
                pipeline.feed(batch)
                if pipeline.tracker.rows >= RECORDS_PER_BATCH:
                    yield from _recorded(makers, pipeline)
                if pipeline.ready:
                    yield from _made(makers, pipeline.settled())
                elif self.once and packets.at_rest():
                    self.early = True
                    yield from _made(makers, pipeline.rest())
                    self.early = False
            pipeline.finish()
            yield from _made(makers, pipeline.rest())
            yield from _recorded(makers, pipeline)
            self.found = [*packets.findings, *pipeline.findings(packets.findings)]
            self._describe(packets)
        if census is not None:
            self.outcomes, self.replies = pipeline.outcomes(), pipeline.replies()
        for maker in makers:
            if maker.table == "findings":
                yield maker.table, maker.make(self.found)


def _made(makers: list[Any], batches: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for taken in batches:
        for maker in makers:
            if maker.table in ("frames", "messages"):
                batch = maker.make(taken)
                if batch.num_rows:
                    yield maker.table, batch
                del batch
        del taken  # nothing of a batch is kept while the next is made


def _recorded(makers: list[Any], pipeline: Pipeline) -> Iterator[tuple[str, Any]]:
    records = pipeline.records()
    for maker in makers:
        if records.get(maker.table):
            yield maker.table, maker.make(records[maker.table])
