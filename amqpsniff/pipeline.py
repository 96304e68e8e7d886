"""The way through the house: packets → segments → half-streams → frames → rows.

`Pipeline` joins the stages and is fed; it never reads by itself, so that the same object serves
files, a live interface, a Spark task and a test. `feed` takes a batch of packets; octets of a
connection that came some other way go to the `decoder` (`amqpsniff.engine` does that).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from amqpsniff.capture.packets import PacketBatch
from amqpsniff.decode.decoder import Decoder
from amqpsniff.errors import UsageError
from amqpsniff.findings import Finding, FindingLog
from amqpsniff.spec import DIALECTS, READINGS
from amqpsniff.tcp.reassembly import Reassembler
from amqpsniff.tcp.stream import StreamBatch

ROWS_PER_BATCH = 32_768
"""Rows after which a batch is given out: enough that Arrow's cost per batch vanishes, few enough
that two tables of them stay below 50 MB."""

OCTETS_PER_BATCH = 32 * 1024 * 1024
"""Octets of text and bodies after which a batch is given out, however few its rows."""


@dataclass(frozen=True)
class Options:
    """How captures are decoded.

    Attributes:
        ports: Follow only conversations with one of these ports; empty for any port, by content.
        dialect: Decode every connection as this dialect; None to find out.
        table_dialect: Reading of field-table tags: `rabbitmq`, `spec091` or `py-amqp`.
        bodies: Keep message bodies.
        body_sha256: Compute the SHA-256 of whole bodies.
        show_secrets: Write credentials as they are instead of `[redacted]`.
    """

    ports: frozenset[int] = frozenset()
    dialect: str | None = None
    table_dialect: str = "rabbitmq"
    bodies: bool = False
    body_sha256: bool = False
    show_secrets: bool = False

    def __post_init__(self) -> None:
        if self.dialect is not None and self.dialect not in DIALECTS:
            raise UsageError(f"no dialect `{self.dialect}`; there are {', '.join(DIALECTS)}")
        if self.table_dialect not in READINGS:
            raise UsageError(
                f"no table dialect `{self.table_dialect}`; there are {', '.join(READINGS)}"
            )


@dataclass
class Totals:
    """Counts of a whole run, for people: what the rows do not show.

    Attributes:
        packets: Packets fed.
        first_ns: Time of the earliest packet with a time, None while there is none.
        last_ns: Time of the latest.
        connections: AMQP connections that ended, those cut off by the end of the capture included.
        midstream: Those of them that began before the capture.
        foreign: TCP conversations that ended and were not AMQP.
        retransmissions: Segments of AMQP connections that were sent again.
        gaps: Holes in AMQP connections.
        lost_octets: Octets in those holes.
        counters: The TCP stage's counters, in packets or segments.
    """

    packets: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    connections: int = 0
    midstream: int = 0
    foreign: int = 0
    retransmissions: int = 0
    gaps: int = 0
    lost_octets: int = 0
    counters: dict[str, int] = field(default_factory=dict)


class Pipeline:
    """Decodes packets into rows.

    Feed it, then `take` the rows whenever `ready` says that a batch's worth of them is there; after
    `finish` take once more. Findings gather in `findings` until the end. Rows of tables that are
    not asked for are not made; those of the others are the same (but for the findings that only
    show while a message's row is made: ask for `messages` to have them). `capture` is the capture
    that rows and findings are of, None before the first.
    """

    def __init__(
        self, options: Options | None = None, tables: Iterable[str] = ("frames", "messages")
    ) -> None:
        self.options = options or Options()
        self.log = FindingLog()
        self.totals = Totals()
        self.reassembler = Reassembler(ports=self.options.ports or None)
        self.decoder = Decoder(
            self.log,
            reading=self.options.table_dialect,
            dialect=self.options.dialect,
            show_secrets=self.options.show_secrets,
            new_hash=hashlib.sha256 if self.options.body_sha256 else None,
            keep_bodies=self.options.bodies,
            ports=self.options.ports,
            tables=frozenset(tables),
        )
        self.capture: str | None = None
        self._several = False

    @property
    def ready(self) -> bool:
        """Whether there are enough rows for a batch."""
        decoder = self.decoder
        return bool(decoder.rows >= ROWS_PER_BATCH or decoder.octets >= OCTETS_PER_BATCH)

    def feed(self, packets: PacketBatch) -> None:
        """Decode a batch of packets."""
        self._count(packets)
        self._several = self._several or self.capture not in (None, packets.capture)
        self.capture = packets.capture
        self._decode(self.reassembler.feed(packets))

    def finish(self) -> None:
        """There are no more packets: end every conversation."""
        self._decode(self.reassembler.finish())
        self.decoder.finish(self.capture)
        self.account()
        counters = self.totals.counters = dict(self.reassembler.counters)
        if counters.get("cut"):
            detail = f"{counters['cut']} segments of {counters['segments']}"
            capture = None if self._several else self.capture
            self.log.add(Finding("packets-cut", detail, capture))

    def take(self) -> Any:
        """The decoder's columns since the last `take`; see `amqpsniff.tables.batches`."""
        return self.decoder.take()

    def findings(self, others: Iterable[Finding] = ()) -> list[Finding]:
        """What was found so far, in order; they are given once.

        `others`, those that reading the captures gave, can be causes of what is given.
        """
        return self.log.take(others)

    def _count(self, packets: PacketBatch) -> None:
        totals = self.totals
        totals.packets += len(packets)
        times = [t for t in (packets.ts_ns[packets.begin], packets.ts_ns[packets.end - 1]) if t > 0]
        for time in times:
            totals.first_ns = time if totals.first_ns is None else min(totals.first_ns, time)
            totals.last_ns = time if totals.last_ns is None else max(totals.last_ns, time)

    def _decode(self, events: StreamBatch) -> None:
        self.decoder.feed(events, self.capture)
        self.account()
        self.decoder.drop_unwanted()
        for finding in events.findings:
            self.log.add(self._tcp_finding(*finding))

    def account(self) -> None:
        """Count the conversations that ended, and say what their rows lack; `feed` does it too."""
        ended, foreign = self.decoder.take_ended()
        totals = self.totals
        totals.foreign += foreign
        for conversation, client, began in ended:
            totals.connections += 1
            where = (conversation.connection_id, *_client_first(conversation, client))
            start_ns = conversation.start_ns if conversation.start_ns > 0 else None
            place = (self.capture, conversation.first_packet_number, start_ns, *where)
            if not began:
                totals.midstream += 1
                self.log.add(Finding("midstream", "", *place))
            gaps, lost = sum(conversation.gaps), sum(conversation.lost_octets)
            totals.retransmissions += sum(conversation.retransmissions)
            totals.gaps += gaps
            totals.lost_octets += lost
            if gaps:
                self.log.add(Finding("tcp-gap", f"{lost} octets in {gaps} holes", *place))

    def _tcp_finding(
        self, code: str, conversation: Any, number: int, ts_ns: int, detail: str
    ) -> Finding:
        where = (conversation.connection_id, conversation.a, conversation.b)
        return Finding(code, detail, self.capture, number, ts_ns if ts_ns > 0 else None, *where)


def _client_first(conversation: Any, client: int) -> tuple[str, str]:
    """Both ends of a conversation; the originator is taken for the client when nothing says."""
    ends = (conversation.a, conversation.b)
    return ends[::-1] if client == 1 else ends
