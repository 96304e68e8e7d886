"""The stages joined: packets → segments → half-streams → frames → rows.

`Pipeline` joins the stages and is fed; it never reads by itself, so that the same object serves
files, a live interface, a Spark task and a test. Bytes of a connection that came some other way
than in packets go to its `decoder` (`amqpsniff.engine` does that).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from amqpsniff.decode.decoder import Decoder
from amqpsniff.decode.moments import Moments
from amqpsniff.decode.preamble import header_bytes
from amqpsniff.findings import Finding, FindingLog, Records
from amqpsniff.options import Options
from amqpsniff.packet_numbers import NUMBER_BITS, NUMBER_MASK
from amqpsniff.packs import PackFile, load
from amqpsniff.plan import Plan
from amqpsniff.session import Tracker
from amqpsniff.session.codes import OUTCOMES
from amqpsniff.session.row_buffer import Batch, RowBuffer
from amqpsniff.tcp.headers import unread_tunnels
from amqpsniff.tcp.limits import NEVER
from amqpsniff.tcp.reassembly import Reassembler
from amqpsniff.tls import Secrets, TlsStage, WebSocketStage
from amqpsniff.units import octets

if TYPE_CHECKING:
    from amqpsniff.capture import CaptureSet
    from amqpsniff.capture.packets import PacketBatch
    from amqpsniff.capture.processes import ProcessReader
    from amqpsniff.tables.batches import Maker
    from amqpsniff.tcp.stream import StreamBatch

LATEST_NS = NEVER - 1
"""The last time for which anything waits."""

MAX_RECORDS = 512
"""Rows of `connections` and `channels` after which they are given out: some 2 kB each."""

CONVERSATIONS_AT_ONCE = 512
"""Open conversations that end with one batch of events when a capture does: a row of each takes
2 kB until it is taken."""


@dataclass
class Totals:
    """Counts of a whole run that the rows do not show.

    Attributes:
        packets: Packets fed.
        first_ns: Time of the earliest packet with a time, None before the first; of packets out of
            order, the earliest that begins or ends a batch.
        last_ns: Time of the latest.
        ends_ns: Times of the first and the last packet of the only capture; None without times, and
            of several captures.
        set_back_ns: By how much the clock of the capturing host was set back between them.
        connections: AMQP connections that ended, those cut off by the end of the capture included.
        midstream: Those of them that began before the capture.
        doubled: Those of them that the capture shows behind another of it: on both sides of a proxy
            or of address translation; 0 where logins are not read.
        one_sided: Those with only one direction captured.
        foreign: TCP conversations that ended and were not AMQP.
        unconnected: Attempts to connect that were refused or not answered.
        encrypted: TLS conversations that ended.
        sealed: TLS conversations that could not be decrypted.
        retransmissions: Segments of AMQP connections that were sent again.
        gaps: Holes in AMQP connections.
        lost_bytes: Bytes in those holes.
        unmeasured: Publishes without a confirm time: on channels from before the capture, or
            after a loss of the client's bytes.
        confirm_bounds: Lower bounds of confirm times on such channels, as a `counts.Histogram`;
            None without any, and in a run without a census.
        counters: The TCP stage's counters, in packets or segments.
    """

    packets: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    ends_ns: tuple[int, int] | None = None
    set_back_ns: int = 0
    connections: int = 0
    midstream: int = 0
    doubled: int = 0
    one_sided: int = 0
    foreign: int = 0
    unconnected: int = 0
    encrypted: int = 0
    sealed: int = 0
    retransmissions: int = 0
    gaps: int = 0
    lost_bytes: int = 0
    unmeasured: int = 0
    confirm_bounds: Any = None
    counters: dict[str, int] = field(default_factory=dict)

    @property
    def span(self) -> tuple[int | None, int | None]:
        """Times of the begin and the end: of the first and last packet where the clock was set back
        between them, else the earliest and the latest.
        """
        ends = self.ends_ns if self.set_back_ns else None
        return ends or (self.first_ns, self.last_ns)

    @property
    def lasted_ns(self) -> int | None:
        """The time from begin to end, by a clock that was not set back; None for unknown."""
        first_ns, last_ns = self.span
        if first_ns is None or last_ns is None:
            return None
        return max(last_ns - first_ns + (self.set_back_ns if self.ends_ns else 0), 0)


class Pipeline:
    """Decodes packets into the rows that a plan asks for.

    Feed it, then `take` rows whenever it is `ready`; after `finish` take the remaining rows with
    `rest`. Rows wait until they are final (a reply or an acknowledgement may change them), but not
    for ever: see `amqpsniff.session.row_buffer`. Findings gather in `findings` until the end.

    Attributes:
        processes: Reads process names from packet comments; None if they are not requested.
        encrypted: Details of the first TLS conversations that ended.
        capture: The capture of the current rows and findings; None before the first.
    """

    def __init__(self, options: Options | None = None, plan: Plan | None = None) -> None:
        self.options = options or Options()
        self.plan = plan = plan or Plan()
        self.limits = limits = self.options.limits
        self.log = FindingLog()
        if plan.records:
            self.log.recorded = Records()
        self.totals = Totals()
        self._only: str | None = None
        self.reassembler = Reassembler(
            self.options.ports or None, limits.tcp, partition=plan.share, positions=plan.positions
        )
        self.secrets = Secrets(
            self.options.tls_keylog, self.options.tls_keys, later=self.options.tls_keylog_later
        )
        self._learn(self.options.secrets)
        self.tls = TlsStage(self.secrets, header_bytes, plan.claims)
        self.websocket = WebSocketStage(plan.claims)
        packs = load(*map(PackFile.read, self.options.packs)) if plan.reads_packs else None
        deferred = plan.sightings is not None or plan.linkables is not None
        moments = Moments(self.reassembler.captures) if deferred else None
        self.decoder = Decoder(self.log, plan, self.options, packs, moments)
        self.tracker = Tracker(plan, self.log, moments, limits.session, limits.memory, packs)
        self.processes: ProcessReader | None = None
        if plan.processes:
            self.processes = import_module("amqpsniff.capture.processes").ProcessReader()
        self.encrypted: list[dict[str, Any]] = []
        self.capture: str | None = None
        self._held = RowBuffer(limits.session)
        self._given_early = self._frames_followed = self._messages_followed = 0
        self._finished = self._several = False

    @property
    def ready(self) -> bool:
        """True if there is a batch of rows that are final or cannot wait longer."""
        if not self._held:
            return False
        return self._finished or self._held.full or self._held.settled

    @property
    def finished(self) -> bool:
        """True after `finish`."""
        return self._finished

    def feed(self, packets: PacketBatch, secrets: Iterable[tuple[int, bytes]] = ()) -> StreamBatch:
        """Decode a batch of packets; returns their TCP events.

        `secrets` are the contents of the Decryption Secrets Blocks before them: (type, bytes).
        """
        self._learn(secrets)
        self._count(packets)
        self._several = self._several or self.capture not in (None, packets.capture)
        self.capture = packets.capture
        events = self.reassembler.feed(packets)
        if self.processes is not None:
            self.processes.note(events)
        self._decode(self.websocket.feed(self.tls.feed(events)))
        return events

    def wait(self, ts_ns: int) -> StreamBatch:
        """No packets come before this time: stop waiting for missing segments until then.

        Returns the resulting TCP events.
        """
        events = self.reassembler.wait(ts_ns)
        if len(events):
            self._decode(self.websocket.feed(self.tls.feed(events)))
        return events

    def finish_some(self) -> StreamBatch | None:
        """End some conversations, where there are very many: what their rows take can be taken
        before `finish`, which is to be called behind it; None where there are few.
        """
        self.tracker.begin_finish()
        events = self.reassembler.finish_some(CONVERSATIONS_AT_ONCE)
        if events is not None:
            self._decode(self.websocket.feed(self.tls.feed(events)))
        return events

    def finish(self) -> StreamBatch:
        """End of packets: end every conversation; returns the last TCP events.

        Streams that wait for a time continue first, as they would with later packets. A caller that
        reads events calls `wait` before.
        """
        self.wait(LATEST_NS)
        self.tracker.begin_finish()
        events = self.reassembler.finish()
        self._decode(self.websocket.finish(self.tls.finish(events)))
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
        if self.tracker.link_recorder is not None:
            hits |= self.tracker.link_recorder.hits
        if self._given_early:
            hits["rows that wait"] = self._given_early
        self.log.add_limits(hits, self.capture)
        return events

    def take(self) -> Batch:
        """The oldest rows, settled or not; see `amqpsniff.tables.batches`."""
        if not self._held:
            self._hold()
        early = self._held.full and not self._finished
        taken = self._held.pop()
        frames, messages, *_ = taken
        if early:
            waiting = frames.pending if frames.wanted else 0
            self._given_early += waiting + (messages.pending if messages.wanted else 0)
        return (frames.give(), messages.give(), *taken[2:])

    def take_open(self) -> Iterator[Batch]:
        """Every batch of rows; their rows still change as replies come.

        Columns that change are `amqpsniff.tables.batches.SETTLED`; rows that may are `waiting`.
        """
        if self.decoder.rows:
            self._hold()
        while self._held:
            yield self._held.pop()

    def settled(self) -> Iterator[Batch]:
        """Every batch of rows that is ready."""
        while self.ready:
            yield self.take()

    def rest(self) -> Iterator[Batch]:
        """Every batch of rows; at least one."""
        yield self.take()
        while self._held or self.decoder.rows:
            yield self.take()

    def records(self) -> dict[str, Collection[dict[str, Any]]]:
        """Wanted rows of `connections`, `channels` and `links` since the last call."""
        connections, channels, links = self.tracker.drain()
        if self.processes is not None:
            connections = list(connections)
            for row in connections:
                self.processes.fill(row)
        return {"connections": connections, "channels": channels, "links": links}

    def record_batches(self, makers: Iterable[Maker]) -> Iterator[tuple[str, Any]]:
        """The same as record batches, as (table, batch), for the tables of the makers."""
        records = self.records()
        for maker in makers:
            if records.get(maker.table):
                yield maker.table, maker.make(records[maker.table])

    def findings(self, others: Iterable[Finding] = ()) -> list[Finding]:
        """Findings so far, in order; each is returned once.

        `others`, the findings of the capture readers, can be their causes.
        """
        return self.log.take(others)

    def outcomes(self) -> dict[str, tuple[int, Any]]:
        """Messages by outcome, as (number, `Histogram` of the times); for a pipeline with a census.

        Outcomes that no message has are left out.
        """
        settler = self.tracker.settler
        ended = zip(OUTCOMES, settler.endings(), settler.histograms or (), strict=True)
        return {name: (number, spread) for name, number, spread in ended if number}

    def replies(self) -> dict[str, Any]:
        """A `Histogram` of the times of replies by the request's method, with a census."""
        return dict(self.tracker.reply_matcher.histograms or {})

    def _learn(self, secrets: Iterable[tuple[int, bytes]]) -> None:
        for kind, content in secrets:
            self.secrets.add(kind, content)

    def _count(self, packets: PacketBatch) -> None:
        totals = self.totals
        totals.packets += len(packets)
        times: Sequence[int] = (packets.ts_ns[packets.begin], packets.ts_ns[packets.end - 1])
        if min(times) <= 0:  # no time: those between may have one
            times = packets.ts_ns[packets.begin : packets.end]
        times = [time for time in times if time > 0]
        if totals.packets == len(packets):
            self._only = packets.capture
        totals.set_back_ns += packets.set_back_ns
        if self._only != packets.capture:
            self._only, totals.ends_ns = None, None
        elif times:
            totals.ends_ns = (totals.ends_ns or times)[0], times[-1]
        for time in times:
            totals.first_ns = time if totals.first_ns is None else min(totals.first_ns, time)
            totals.last_ns = time if totals.last_ns is None else max(totals.last_ns, time)

    def _decode(self, events: StreamBatch) -> None:
        if self.plan.on_stream is not None:
            self.plan.on_stream(events)
        self.decoder.feed(events, self.capture)
        for slot in events.resets:
            self.tracker.on_reset(self.decoder.connection(slot))
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
        self.totals.unmeasured = self.tracker.unmeasured
        self.totals.doubled = self.tracker.doubled.count
        bounds = self.tracker.settler.bounds
        if bounds is not None and bounds.facts()[0]:
            self.totals.confirm_bounds = bounds
        if self.decoder.moments is not None:
            self.decoder.moments.clear()
        plan = self.plan
        if plan.census is not None:
            plan.census.look(*rows, peers, captures, self.decoder.other_methods)
        self.totals.connections += len(ended)
        for connection, _ in ended:
            if plan.census is not None:
                plan.census.end(connection, connection.session)
            if plan.on_connection_end is not None:
                plan.on_connection_end(connection)
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
        """Count and report the gaps in the rows of a connection that ends."""
        totals = self.totals
        conversation = connection.conversation
        if not connection.began:
            totals.midstream += 1
            seen = "connection.start" in getattr(connection.session, "handshake", ())
            detail = "only what came before connection.start is missing" if seen else ""
            self._add_finding("midstream", detail, connection)
        totals.one_sided += 0 in conversation.packets
        if not conversation.impaired:
            return
        totals.retransmissions += sum(conversation.retransmissions)
        gaps, lost = conversation.holes
        if gaps:
            totals.gaps += gaps
            totals.lost_bytes += lost
            self._add_finding(
                "tcp-gap", f"{octets(lost)} in {gaps} hole{'s' * (gaps > 1)}", connection
            )

    def _add_finding(self, code: str, detail: str, connection: Any) -> None:
        """Add a finding about a connection as a whole."""
        conversation = connection.conversation
        start_ns = conversation.start_ns if conversation.start_ns > 0 else None
        place = (connection.capture, conversation.first_packet_number, start_ns, *connection.name())
        self.log.add(Finding(code, detail, *place))

    def _tcp_finding(
        self, code: str, conversation: Any, number: int, ts_ns: int, detail: str
    ) -> Finding:
        place = (conversation.connection_id, conversation.a, conversation.b)
        capture = self.reassembler.captures[number >> NUMBER_BITS]
        number &= NUMBER_MASK
        return Finding(code, detail, capture, number, ts_ns if ts_ns > 0 else None, *place)


def run(
    packets: CaptureSet, pipeline: Pipeline, before: Callable[[PacketBatch], None] | None = None
) -> Iterator[tuple[PacketBatch | None, StreamBatch]]:
    """Read packets to their end through a pipeline.

    Yields each batch of packets with its TCP events; then None with the events that waited for a
    time, and None with those of the end, in parts if they are very many. `before` is called with
    each batch before it is fed.
    """
    for batch in packets:
        if before is not None:
            before(batch)
        if pipeline.processes is not None:
            pipeline.processes.read(batch, packets.file())
        yield batch, pipeline.feed(batch, packets.take_secrets())
    yield None, pipeline.wait(LATEST_NS)
    while (events := pipeline.finish_some()) is not None:
        yield None, events
    yield None, pipeline.finish()


def drain(
    steps: Iterable[tuple[PacketBatch | None, StreamBatch]],
    pipeline: Pipeline,
    makers: Sequence[Maker],
    at_rest: Callable[[PacketBatch | None], bool] = lambda batch: False,
) -> Iterator[tuple[str, Any]]:
    """Record batches of what `run` reads through a pipeline, as (table, batch), without findings.

    Rows are yielded once they are final. `at_rest` is called at each step; if it returns True, all
    waiting rows are yielded.
    """
    for batch, _ in steps:
        if pipeline.tracker.rows >= MAX_RECORDS:
            yield from pipeline.record_batches(makers)
        yield from _row_batches(makers, pipeline.rest() if at_rest(batch) else pipeline.settled())
    yield from _row_batches(makers, pipeline.rest())
    yield from pipeline.record_batches(makers)


def _row_batches(makers: Sequence[Maker], batches: Iterable[Batch]) -> Iterator[tuple[str, Any]]:
    for taken in batches:
        for maker in makers:
            if maker.table in ("frames", "messages"):
                batch = maker.make(taken)
                if batch.num_rows:
                    yield maker.table, batch
                del batch
        del taken  # nothing of a batch is kept while the next is made
