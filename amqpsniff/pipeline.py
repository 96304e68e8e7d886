"""The way through the house: packets → segments → half-streams → frames → rows.

`Pipeline` joins the stages and is fed; it never reads by itself, so that the same object serves
files, a live interface, a Spark task and a test. Octets of a connection that came some other way
than in packets go to its `decoder` (`amqpsniff.engine` does that).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from amqpsniff.columns import NUMBER_BITS, NUMBER_MASK
from amqpsniff.decode.decoder import Decoder
from amqpsniff.decode.moments import Moments
from amqpsniff.decode.proxied import header_octets
from amqpsniff.findings import Finding, FindingLog, Records
from amqpsniff.options import Options
from amqpsniff.quantities import octets
from amqpsniff.session import Journeys, Tracker
from amqpsniff.session.state import OUTCOMES
from amqpsniff.session.waiting import Batch, Waiting
from amqpsniff.tcp.headers import unread_tunnels
from amqpsniff.tcp.reassembly import Reassembler
from amqpsniff.tls import Secrets, TlsStage

if TYPE_CHECKING:
    from amqpsniff.capture.packets import PacketBatch
    from amqpsniff.session.census import Census
    from amqpsniff.session.linkables import Linkables
    from amqpsniff.session.sightings import Sightings
    from amqpsniff.tcp.shares import Share
    from amqpsniff.tcp.stream import StreamBatch


@dataclass
class Totals:
    """Counts of a whole run, for people: what the rows do not show.

    Attributes:
        packets: Packets fed.
        first_ns: Time of the earliest packet with a time, None while there is none; of packets out
            of order, the earliest that begins or ends a batch.
        last_ns: Time of the latest.
        connections: AMQP connections that ended, those cut off by the end of the capture included.
        midstream: Those of them that began before the capture.
        foreign: TCP conversations that ended and were not AMQP.
        unconnected: Attempts to connect that were refused or not answered.
        encrypted: TLS conversations that ended.
        sealed: Those of them that could not be read.
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
    unconnected: int = 0
    encrypted: int = 0
    sealed: int = 0
    retransmissions: int = 0
    gaps: int = 0
    lost_octets: int = 0
    counters: dict[str, int] = field(default_factory=dict)


class Pipeline:
    """Decodes packets into rows.

    Feed it, then `take` rows whenever it is `ready`; after `finish` take what is there with `rest`.
    Rows wait until nothing about them can change any more (a reply, an acknowledgement), but not
    for ever: see `amqpsniff.session.waiting`. Findings gather in `findings` until the end. Only
    rows of tables that are asked for are made (findings that show while a message's row is made
    need `messages`). `columns`, by table, are those of `frames` and `messages` that somebody looks
    at, null for all. Without `outcomes` nobody asks what becomes of messages, and their rows do not
    wait for it. More of both is made where something else that is asked for needs it. With `links`
    messages are linked across connections: see `amqpsniff.session.links`; what a share of them is
    to be linked with goes to `Linkables`. A `census` counts every row on its way. `encrypted` has
    what is known of TLS conversations that ended. Of a `share` only its
    conversations are followed; with `records` what concerns several connections is not judged but
    kept (`amqpsniff.findings.records`), and what takes all messages goes to `sightings`. With
    `places` the `reassembler` says where segments lie. `capture` is the one that rows and findings
    are of, None before the first.
    """

    def __init__(
        self,
        options: Options | None = None,
        tables: Iterable[str] = ("frames", "messages"),
        *,
        columns: Mapping[str, Collection[str]] | None = None,
        census: Census | None = None,
        outcomes: bool = True,
        links: bool | Linkables = False,
        share: Share | None = None,
        claims: bool = False,
        records: bool = False,
        places: bool = False,
        sightings: Sightings | None = None,
    ) -> None:
        wanted = frozenset(tables)
        looked_at = census is None and links is False and wanted <= {"frames", "messages"}
        self.options = options or Options()
        self.limits = limits = self.options.limits
        self.log = FindingLog()
        if records:
            self.log.recorded = Records()
        self.totals = Totals()
        self.reassembler = Reassembler(
            self.options.ports or None, limits.tcp, share=share, places=places
        )
        self.secrets = Secrets(
            self.options.tls_keylog, self.options.tls_keys, later=self.options.tls_keylog_later
        )
        self.learn(self.options.secrets)
        self.tls = TlsStage(self.secrets, header_octets, claims)
        self.decoder = Decoder(
            self.log,
            reading=self.options.table_dialect,
            dialect=self.options.dialect,
            show_secrets=self.options.show_secrets,
            new_hash=import_module("hashlib").sha256 if self.options.body_sha256 else None,
            keep_bodies=self.options.bodies,
            ports=self.options.ports,
            tables=wanted,
            columns=columns if looked_at else None,
            claims=claims,
        )
        self.tracker = Tracker(
            limits.session,
            tables=wanted,
            log=self.log if "findings" in wanted else None,
            learns=census is not None or links is not False,
            settles=outcomes or not looked_at,
        )
        handler = self.decoder.handler
        judged = "findings" in wanted or sightings is not None
        handler.methods_only = not judged and census is None and "frames" not in wanted
        handler.contents.marking = self.tracker.settles
        handler.contents.marking_all = judged
        if links is not False and "messages" in wanted:
            self.tracker.journeys = Journeys(limits.memory, None if links is True else links)
        if sightings is not None:
            handler.contents.seed = sightings.seed
            self.tracker.sightings = sightings
        if self.tracker.witnesses():
            self.tracker.moments = self.decoder.moments = Moments(self.reassembler.captures)
        self.census = census
        if census is not None:
            self.tracker.settler.measure()
            self.tracker.pairing.measure()
        self.encrypted: list[dict[str, Any]] = []
        self.capture: str | None = None
        self._held = Waiting(limits.session)
        self._given_early = self._frames_followed = self._messages_followed = 0
        self._finished = self._several = False

    @property
    def ready(self) -> bool:
        """Whether a batch of rows is there that nothing will change, or that cannot wait longer."""
        if not self._held:
            return False
        return self._finished or self._held.full or self._held.settled

    def feed(self, packets: PacketBatch) -> StreamBatch:
        """Decode a batch of packets; gives the events of TCP that they made known."""
        self._count(packets)
        self._several = self._several or self.capture not in (None, packets.capture)
        self.capture = packets.capture
        events = self.reassembler.feed(packets)
        self._decode(self.tls.feed(events))
        return events

    def wait(self, ts_ns: int) -> None:
        """No packets come up to a time: what waited for missing ones until then goes on."""
        events = self.reassembler.wait(ts_ns)
        if len(events):
            self._decode(self.tls.feed(events))

    def learn(self, secrets: Iterable[tuple[int, bytes]]) -> None:
        """Take the contents of Decryption Secrets Blocks: (type, octets)."""
        for kind, content in secrets:
            self.secrets.add(kind, content)

    def finish(self) -> StreamBatch:
        """There are no more packets: end every conversation; gives the last events of TCP."""
        self.tracker.begin_end()
        events = self.reassembler.finish()
        self._decode(self.tls.finish(events))
        self.decoder.finish(self.capture)
        self.follow()
        self._hold()
        self._finished = True
        counters = self.totals.counters = dict(self.reassembler.counters)
        if counters.get("cut"):
            detail = f"{counters['cut']} of {counters['segments']} segments"
            self.log.add(Finding("packets-cut", detail, None if self._several else self.capture))
        for capture, tunnels in self.reassembler.unread_tunnels.items():
            self.log.add(unread_tunnels(capture, tunnels))
        self.tracker.finish(None, self.totals.last_ns)
        hits = self.tracker.settler.hits | self.decoder.hits
        if self.tracker.journeys is not None:
            hits |= self.tracker.journeys.hits
        if self._given_early:
            hits["rows that wait"] = self._given_early
        self.log.add_limits(hits, self.capture)
        return events

    def take(self) -> Batch:
        """The oldest rows that are there, settled or not; see `amqpsniff.tables.batches`."""
        if not self._held:
            self._hold()
        early = self._held.full and not self._finished
        taken = self._held.take()
        frames, messages, *_ = taken
        if early:
            waiting = frames.pending if frames.wanted else 0
            self._given_early += waiting + (messages.pending if messages.wanted else 0)
        return (frames.give(), messages.give(), *taken[2:])

    def take_open(self) -> Iterator[Batch]:
        """Every batch of rows that is there; their rows change further as replies come.

        Columns that change are `amqpsniff.tables.batches.SETTLED`; rows that may are `waiting`.
        """
        if self.decoder.rows:
            self._hold()
        while self._held:
            yield self._held.take()

    def settled(self) -> Iterator[Batch]:
        """Every batch of rows that is ready."""
        while self.ready:
            yield self.take()

    def rest(self) -> Iterator[Batch]:
        """Every batch of rows that is there; at least one."""
        yield self.take()
        while self._held or self.decoder.rows:
            yield self.take()

    def records(self) -> dict[str, list[dict[str, Any]]]:
        """Rows of `connections` and `channels` since the last call; none that are not wanted."""
        connections, channels = self.tracker.take()
        return {"connections": connections, "channels": channels}

    def findings(self, others: Iterable[Finding] = ()) -> list[Finding]:
        """What was found so far, in order; they are given once.

        `others`, those that reading the captures gave, can be causes of what is given.
        """
        return self.log.take(others)

    def outcomes(self) -> dict[str, tuple[int, Any]]:
        """Messages by outcome, as (how many, `Spread` of the times); for a pipeline with a census.

        Outcomes that no message has are left out.
        """
        settler = self.tracker.settler
        ended = zip(OUTCOMES, settler.endings(), settler.spreads or (), strict=True)
        return {name: (number, spread) for name, number, spread in ended if number}

    def replies(self) -> dict[str, Any]:
        """A `Spread` of the times of replies by the request's method, with a census."""
        return dict(self.tracker.pairing.spreads or {})

    def _count(self, packets: PacketBatch) -> None:
        totals = self.totals
        totals.packets += len(packets)
        times: Sequence[int] = (packets.ts_ns[packets.begin], packets.ts_ns[packets.end - 1])
        if min(times) <= 0:  # no time: those between may have one
            times = packets.ts_ns[packets.begin : packets.end]
        for time in times:
            if time <= 0:
                continue
            totals.first_ns = time if totals.first_ns is None else min(totals.first_ns, time)
            totals.last_ns = time if totals.last_ns is None else max(totals.last_ns, time)

    def _decode(self, events: StreamBatch) -> None:
        self.decoder.feed(events, self.capture)
        self.follow()
        for finding in events.findings:
            self.log.add(self._tcp_finding(*finding))

    def follow(self) -> None:
        """Follow the rows that the decoder made since the last call; `feed` does it itself."""
        frames, messages, peers, losses, captures = self.decoder.look()
        rows = (frames, self._frames_followed, messages, self._messages_followed)
        ended, foreign, encrypted = self.decoder.take_ended()
        failed, self.decoder.bystanders.failed = self.decoder.bystanders.failed, 0
        self.totals.unconnected += failed
        self.totals.foreign += foreign - failed
        self._account_tls(encrypted)
        self.tracker.follow(*rows, peers, losses, captures, ended, self._account)
        if self.decoder.moments is not None:
            self.decoder.moments.clear()
        if self.census is not None:
            self.census.look(*rows, peers, captures, self.decoder.other_methods)
        self.totals.connections += len(ended)
        for connection, _ in ended:
            if self.census is not None:
                self.census.end(connection, connection.session)
            connection.session = None
        self.decoder.drop_unwanted()
        self._frames_followed, self._messages_followed = frames.rows, messages.rows
        decoder = self.decoder
        if (
            decoder.rows >= self.limits.rows_per_batch
            or decoder.octets >= self.limits.bytes_per_batch
            or decoder.names >= self.limits.names_per_batch
        ):
            if decoder.rows:
                self._hold()
            else:
                frames, messages, *_ = self.decoder.take()
                frames.give()
                messages.give()
                self._frames_followed = self._messages_followed = 0

    def _hold(self) -> None:
        """Put the rows made so far aside; the decoder begins new ones."""
        self._held.put(self.decoder.take())
        self._frames_followed = self._messages_followed = 0

    def _account_tls(self, encrypted: list[Any]) -> None:
        """Count the TLS conversations that ended."""
        for connection in encrypted:
            conversation = connection.conversation
            self.totals.encrypted += 1
            self.totals.sealed += not conversation.tls.opened
            if len(self.encrypted) < self.limits.encrypted:
                row = conversation.tls.facts(conversation)
                for alert in row["alerts"]:
                    alert["packet_number"] &= NUMBER_MASK
                self.encrypted.append({"capture": connection.capture, **row})

    def _account(self, connection: Any) -> None:
        """Count and say what the rows of a connection that ends lack."""
        totals = self.totals
        conversation = connection.conversation
        if not connection.began:
            totals.midstream += 1
            seen = "connection.start" in getattr(connection.session, "facts", ())
            detail = "only what came before connection.start is missing" if seen else ""
            self._say_of("midstream", detail, connection)
        totals.retransmissions += sum(conversation.retransmissions)
        gaps = sum(conversation.gaps)
        if gaps:
            lost = sum(conversation.lost_octets)
            totals.gaps += gaps
            totals.lost_octets += lost
            self._say_of("tcp-gap", f"{octets(lost)} in {gaps} hole{'s' * (gaps > 1)}", connection)

    def _say_of(self, code: str, detail: str, connection: Any) -> None:
        """Add a finding about a connection as a whole."""
        conversation = connection.conversation
        start_ns = conversation.start_ns if conversation.start_ns > 0 else None
        place = (connection.capture, conversation.first_packet_number, start_ns, *connection.name())
        self.log.add(Finding(code, detail, *place))

    def _tcp_finding(self, code: str, talk: Any, number: int, ts_ns: int, detail: str) -> Finding:
        where = (talk.connection_id, talk.a, talk.b)
        capture = self.reassembler.captures[number >> NUMBER_BITS]
        number &= NUMBER_MASK
        return Finding(code, detail, capture, number, ts_ns if ts_ns > 0 else None, *where)
