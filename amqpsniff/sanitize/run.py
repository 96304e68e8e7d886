"""Two readings of a capture: one to identify its bytes, one to write its packets again.

What was decrypted of TLS is made safe and written as plain TCP (`decrypted`).

The first decodes, and puts the safe form of each frame at its offset in the stream
(`SafeStreams`). The second follows the same conversations in the same order and fills each packet
from there. A packet's payload takes no other way, so bytes that were not understood are filler.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import IO, Any

from amqpsniff.capture import CaptureFile, CaptureSet, PacketBatch, is_regular, open_capture
from amqpsniff.capture.pcapng_interface import IF_NAME, Interface, Option
from amqpsniff.capture.pcapng_writer import Interfaces, PcapngWriter
from amqpsniff.decode import claims
from amqpsniff.errors import read_twice
from amqpsniff.findings import Finding
from amqpsniff.link_types import LINK_RAW
from amqpsniff.options import Options
from amqpsniff.pipeline import Pipeline, Totals, run
from amqpsniff.plan import Plan
from amqpsniff.sanitize.addresses import AddressPseudonyms
from amqpsniff.sanitize.decrypted import DecryptedStreams, End, Packet, end_of
from amqpsniff.sanitize.frames import AMQP10_CLAIMS, HEADER_BYTES, Cleaner
from amqpsniff.sanitize.policy import SanitizeOptions
from amqpsniff.sanitize.records import RecordCleaner
from amqpsniff.sanitize.streams import SafeStreams
from amqpsniff.tcp.packet_writer import PacketRewriter
from amqpsniff.tcp.reassembly import Reassembler
from amqpsniff.tcp.stream import POSITION_FIELDS

Ends = frozenset[End]
"""Both ends of a connection."""


@dataclass
class Sanitized:
    """The outcome of sanitizing.

    Attributes:
        totals: Counts of the reading.
        packets: Packets written.
        dropped: Packets left out.
        written_bytes: Bytes written.
        frames: Frames that were read, and may hold more than filler.
        names_forgotten: There were too many names, so that some are filler.
        headers_unseen: Names of headers in the options that no message has.
        found: What is wrong with the file.
    """

    totals: Totals
    packets: int = 0
    dropped: int = 0
    written_bytes: int = 0
    frames: int = 0
    names_forgotten: bool = False
    headers_unseen: tuple[str, ...] = ()
    found: tuple[Finding, ...] = ()


def sanitize(
    path: str | os.PathLike[str],
    sink: IO[bytes],
    options: SanitizeOptions | None = None,
    decoding: Options | None = None,
) -> Iterator[Sanitized]:
    """Write a capture that is safe to share, as pcapng, to a binary file.

    Gives the progress, always the same object, from time to time and at the end. TLS that keys open
    is written as plain TCP; other TLS is filler.
    Raises CaptureError when the capture cannot be read, UsageError when it can be read only once.
    """
    chosen = options or SanitizeOptions()
    decrypted = DecryptedStreams(keep_bodies=chosen.keep_bodies)
    with SafeStreams() as streams, closing(decrypted):
        first = _First(chosen, decoding or Options(), streams, decrypted)
        with CaptureSet([os.fspath(path)]) as packets:
            if not is_regular(os.fspath(path)):
                raise read_twice("sanitize", str(path))
            for _ in run(packets, first.pipeline):
                first.take()
                yield first.done
            first.finish()
            first.done.found = tuple(packets.findings)
        streams.seal()
        decrypted.seal()
        second = _Second(chosen, first, streams, decrypted, sink)
        with open_capture(path) as packets:
            for batch in packets:
                second.feed(packets, batch)
                yield first.done
            second.finish(packets)
        yield first.done


class _First:
    """The first reading: what bytes are."""

    def __init__(
        self,
        options: SanitizeOptions,
        decoding: Options,
        streams: SafeStreams,
        decrypted: DecryptedStreams,
    ) -> None:
        self.decoding = decoding
        self.ends: set[Ends] = set()
        self._ended_serials: list[int] = []
        plan = Plan((), on_connection_end=self._ended, on_stream=decrypted.add, claims=True)
        self.pipeline = Pipeline(decoding, plan)
        decrypted.unwrapped = self.pipeline.websocket.unwrapped
        self.starts = self.pipeline.reassembler.keep_starts()
        self.done = Sanitized(self.pipeline.totals)
        self._cleaner = Cleaner(options)
        self._records = RecordCleaner(self._cleaner.values)
        self._streams = streams
        self._decrypted = decrypted
        self._keep_bodies = options.keep_bodies

    def finish(self) -> None:
        for span in self._records.finish():
            self._streams.put(*span)
        values = self._cleaner.values
        self.done.names_forgotten = values.names.forgotten
        self.done.headers_unseen = tuple(sorted(map(bytes.decode, values.unseen)))

    def _ended(self, connection: Any) -> None:
        self.ends.add(_ends_of(connection.conversation))
        self._ended_serials.append(connection.conversation.serial)

    def take(self) -> None:
        """Make what the pipeline claims by now safe."""
        self._take_records()
        for claim in self.pipeline.decoder.take_claims():
            half = (claim.conversation, claim.direction)
            streams = self._streams
            if claim.conversation in self._decrypted:
                streams = self._decrypted.data
            clean = self._cleaner.clean(claim)
            streams.put(*half, claim.offset, clean)
            if claim.kind == claims.PROXY:  # it comes before it is clear that TLS opens
                self._decrypted.data.put(*half, claim.offset, clean)
            if claim.kind in AMQP10_CLAIMS:
                for offset, octets in self._cleaner.amqp10.mended():
                    streams.mend(*half, offset, octets)
            self.done.frames += claim.kind <= claims.PROTOCOL_HEADER or claim.kind == claims.AMQP10
            if self._keep_bodies and claim.kind == claims.BODY:
                streams.let_through(*half, claim.offset + HEADER_BYTES, claim.size)
        for serial in self._ended_serials:
            self._cleaner.amqp10.end(serial)
        self._ended_serials.clear()

    def _take_records(self) -> None:
        claims, ended = self.pipeline.tls.take_claims()
        for claim in claims:
            for span in self._records.clean(claim):
                self._streams.put(*span)
        for conversation in ended:
            tls, ports = conversation.tls, self.decoding.ports
            if tls.suspicion(conversation.ports[1 - tls.client_of(conversation)], ports):
                self.ends.add(_ends_of(conversation))


class _Second:
    """The second reading: packets."""

    def __init__(
        self,
        options: SanitizeOptions,
        first: _First,
        streams: SafeStreams,
        decrypted: DecryptedStreams,
        sink: IO[bytes],
    ) -> None:
        addresses = AddressPseudonyms() if options.addresses else None
        self._done = first.done
        self._streams = streams
        self._decrypted = decrypted
        self._included = first.ends if options.drop_foreign else None
        ports = first.decoding.ports or None
        self._reassembler = Reassembler(ports, positions=True, starts=first.starts)
        self._rewriter = PacketRewriter(addresses)
        self._writer = PcapngWriter(sink)
        self._interfaces = Interfaces(self._writer, safe_options)
        self._number = 0

    def feed(self, capture: CaptureFile, batch: PacketBatch) -> None:
        self._interfaces.look(capture)
        if self._decrypted:
            self._interfaces.of_link(LINK_RAW)
        events = self._reassembler.feed(batch)
        payloads = self._payloads(batch, events)
        for row in range(batch.begin, batch.end):
            start, payload = payloads.get(row, (-1, None))
            octets = batch.packet(row)
            rewritten = self._rewriter.rewrite(
                octets, batch.link_type[row], batch.original[row], payload, start
            )
            if self._included is not None and self._rewriter.ends() not in self._included:
                self._done.dropped += 1
                continue
            self._count(batch.number[row])
            plain = self._plain(batch, row, octets)
            if plain is not None:
                interface = self._interfaces.of_link(LINK_RAW)
                for packet, original in plain:
                    self._writer.packet(interface, batch.ts_ns[row], packet, original)
                    self._done.packets += 1
                continue
            interface = self._interfaces.number(capture, batch, row)
            self._writer.packet(interface, batch.ts_ns[row], bytes(rewritten), batch.original[row])
            self._done.packets += 1

    def _plain(self, batch: PacketBatch, row: int, octets: bytes) -> Iterator[Packet] | None:
        """What is written in place of a packet of a conversation that was decrypted."""
        number, original = batch.number[row], batch.original[row]
        return self._decrypted.packets(number, octets, original, self._rewriter)

    def finish(self, capture: CaptureFile) -> None:
        self._interfaces.look(capture)
        self._count(capture.packets + 1)
        self._interfaces.finish()
        self._done.written_bytes = self._writer.octets

    def _count(self, number: int) -> None:
        """Go on to a packet's number: records that are no packets, and have one, are between."""
        if self._included is None:
            for _ in range(self._number + 1, number):
                self._writer.record()
        self._number = number

    def _payloads(self, batch: PacketBatch, events: Any) -> dict[int, tuple[int, bytearray]]:
        """By row: the begin of the payload in its packet, and its safe bytes."""
        payloads = {}
        positions: Any = self._reassembler.take_positions()
        for at in range(0, len(positions), POSITION_FIELDS):
            row, half, offset, start, captured, _ = positions[at : at + POSITION_FIELDS]
            captured_payload = batch.octets[start : start + captured]
            serial = events.conversations[half >> 1].serial
            payload = self._streams.read(serial, half & 1, offset, captured_payload)
            payloads[row] = (start - batch.start[row], payload)
        return payloads


def _ends_of(conversation: Any) -> Ends:
    return frozenset(map(end_of, (conversation.a, conversation.b)))


_PLAIN = re.compile(r"(?:any|lo|en|eth|ens|enp|eno|wlan|wlp|bond|br|docker|tun|tap|veth|bridge)"
                    r"[\ds]{0,6}\d?")  # fmt: skip


def safe_options(interface: Interface) -> list[Option]:
    """The options of an interface that may stay: a name that systems give (`eth0`, `any`).

    Other names may identify a person or the machine. Options of a section about machine, program
    and user, comments, and names of hosts are not written to begin with.
    """
    plain = _PLAIN.fullmatch(interface.name)
    return [(IF_NAME, interface.name.encode())] if plain else []
