"""The plan of a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Plan:
    """The plan of a run: the output it has to produce. Every stage takes it in its constructor.

    Attributes:
        tables: Tables to produce. A finding that is detected while a message's row is written needs
            `messages` too.
        columns: Columns of `frames` and `messages` that are read, by table; None for all. More are
            made where something else in the plan needs them.
        outcomes: The rows of messages wait for their outcomes.
        links: Messages are linked across connections.
        meanings: What messages mean to frameworks is read, from packs.
        processes: The processes that packet comments name are read.
        linkables: A `LinkLog` of the messages to link, where other readers have the remaining
            connections; None to link at once.
        sightings: A `MessageLog` of the messages that redelivery findings need; None to report
            these findings at once.
        records: Findings that concern several connections are kept as records and not judged.
        share: The `Partition` of the conversations that is followed; None for all.
        claims: The decoder labels every byte, see `amqpsniff.decode.claims`.
        positions: The reassembler gives the position of each segment in its stream.
        census: A `Census` that counts every row.
        on_stream: Called with each `amqpsniff.tcp.stream.StreamBatch` that the decoder is fed.
        on_silence: Called with each `amqpsniff.session.owing.Silence`, if findings are enabled.
        on_connection_end: Called with each `amqpsniff.decode.state.Connection` that ended.
        doubled: Connections that the capture shows twice are counted.
        message_arguments: Arguments are also read of the methods that come with every message.
    """

    tables: Collection[str] = frozenset(("frames", "messages"))
    columns: Mapping[str, Collection[str]] | None = None
    outcomes: bool = True
    links: bool = False
    meanings: bool = False
    processes: bool = False
    linkables: Any = None
    sightings: Any = None
    records: bool = False
    share: Any = None
    claims: bool = False
    positions: bool = False
    census: Any = None
    on_stream: Callable[[Any], None] | None = None
    on_silence: Callable[[Any], None] | None = None
    on_connection_end: Callable[[Any], None] | None = None
    doubled: bool = False
    message_arguments: bool = True

    @property
    def rows_only(self) -> bool:
        """True if only rows of `frames`, `messages` and `links` are produced."""
        counted = self.census is not None or self.links
        return not counted and {"frames", "messages", "links"}.issuperset(self.tables)

    @property
    def judged(self) -> bool:
        """True if rules look at the traffic, here or later."""
        return "findings" in self.tables or self.sightings is not None

    @property
    def settles(self) -> bool:
        """True if messages are followed to their outcomes."""
        return self.outcomes or not self.rows_only

    @property
    def handshakes(self) -> bool:
        """True if handshake arguments are read besides `connections` and rules."""
        return self.census is not None or self.links or self.doubled

    @property
    def peers(self) -> bool:
        """True if any output needs the handshake arguments."""
        return self.handshakes or self.judged or "connections" in self.tables

    @property
    def reads_packs(self) -> bool:
        """True if packs are asked what messages and clients are."""
        return self.meanings or self.judged or self.links

    @property
    def methods_only(self) -> bool:
        """True if no reader takes frames other than methods."""
        others = self.census is not None or self.claims or "frames" in self.tables
        return not (self.judged or others)

    @property
    def arguments(self) -> bool:
        """True if arguments of methods that come with every message are read."""
        columns = self.columns_of("frames")
        shown = "frames" in self.tables and (columns is None or "arguments" in columns)
        return (shown and self.message_arguments) or "findings" in self.tables

    def columns_of(self, table: str) -> Collection[str] | None:
        """The columns of a table that are read; None for all."""
        return (self.columns or {}).get(table) if self.rows_only else None
