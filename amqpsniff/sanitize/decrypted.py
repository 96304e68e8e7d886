"""Conversations whose TLS opened, written as TCP without TLS.

The decrypted bytes of a direction are a stream of their own, made safe as one in clear is. Each
packet of such a conversation becomes one with the bytes that were decrypted with it: the same ends,
time and flags. Its sequence numbers count decrypted bytes from the initial number on, so lost bytes
stay lost. A packet that only repeats bytes, or carries a handshake, has no payload.
Packets begin with their IP header: MAC addresses and tunnels are not written.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Collection, Iterator
from ipaddress import ip_address
from typing import IO, Any

from amqpsniff.decode.preamble import header_bytes
from amqpsniff.packet_numbers import NUMBER_MASK
from amqpsniff.sanitize.streams import SafeStreams
from amqpsniff.tcp.codes import DATA, GAP, OPEN
from amqpsniff.tcp.packet_writer import PacketRewriter
from amqpsniff.tcp.stream import StreamBatch

End = tuple[bytes, int]
"""One end of a connection: address and port."""

_FIN, _SYN, _ACK = 1, 2, 16
_URG = 32
_MAX_WINDOW = 0xFFFF
_SEQUENCE = 0xFFFFFFFF
_PROXY_BEGINS = (b"P", b"\r")
"""First bytes of a proxy's header, as text and in binary."""

_LOST = -1
"""In place of a place: the bytes are not in the capture."""

Packet = tuple[bytes, int]
"""What is written of a packet, and how long it was."""


class DecryptedStreams:
    """Decrypted streams: `add` events of the first reading, then `seal`, then write `packets`.

    Args:
        keep_bodies: Keep the decrypted bytes, for those that pass unchanged.

    Attributes:
        data: The decrypted bytes, as they stand in the safe capture.
        unwrapped: Serial numbers of conversations without their WebSocket: they are
            treated in the same way.
    """

    def __init__(self, *, keep_bodies: bool) -> None:
        self.data = SafeStreams()
        self.unwrapped: Collection[int] = ()
        self._bodies: IO[bytes] | None = None
        if keep_bodies:
            self._bodies = tempfile.TemporaryFile()  # noqa: SIM115 (closed with us)
        self._written_bytes = 0
        self._pieces = array("q")  # packet, serial * 2 + direction, offset, length, place of bytes
        self._order: list[int] = []
        self._ends: dict[int, tuple[End, End]] = {}
        self._starts: dict[int, int] = {}
        self._conversations: dict[frozenset[End], list[tuple[int, int]]] = {}
        self._next: dict[int, int] = {}
        self._last: dict[int, int] = {}
        self._at = 0

    def __contains__(self, conversation: int) -> bool:
        """True if bytes of a conversation were decrypted."""
        return conversation in self._ends

    def __bool__(self) -> bool:
        return bool(self._ends)

    def add(self, batch: StreamBatch) -> None:
        """Take the decrypted bytes among events that the decoder is fed."""
        kinds, halves, conversations = batch.kind, batch.half, batch.conversations
        for row in range(batch.count):
            kind = kinds[row]
            half = halves[row]
            conversation = conversations[half >> 1]
            if kind == OPEN and self._conversations:
                self._forget(conversation, batch.number[row] & NUMBER_MASK)
            if kind != DATA and kind != GAP:
                continue
            octets = b""
            if kind == DATA:
                block = batch.octets if batch.source[row] < 0 else batch.extra[batch.source[row]]
                octets = block[batch.start[row] : batch.start[row] + batch.length[row]]
            if conversation.tls is not None or conversation.serial in self.unwrapped:
                if octets:
                    self._note_ends(conversation)
            elif octets[:1] not in _PROXY_BEGINS or header_bytes(octets) != len(octets):
                continue
            number = batch.number[row] & NUMBER_MASK
            stream = conversation.serial * 2 + (half & 1)
            file_offset = self._written_bytes if kind == DATA else _LOST
            piece = (number, stream, batch.stream_offset[row], batch.length[row], file_offset)
            self._pieces.extend(piece)
            if self._bodies is not None:
                self._bodies.write(octets)
                self._written_bytes += len(octets)

    def _note_ends(self, conversation: Any) -> None:
        """Remember the ends of a conversation that opens."""
        serial = conversation.serial
        if serial not in self._ends:
            ends = self._ends[serial] = (end_of(conversation.a), end_of(conversation.b))
            for direction, start in enumerate(conversation.starts):
                self._starts[serial * 2 + direction] = 1 if start is None else start
            first = conversation.first_packet_number & NUMBER_MASK
            self._conversations.setdefault(frozenset(ends), []).append((first, serial))

    def _forget(self, conversation: Any, number: int) -> None:
        """Another conversation begins: later packets are not of an earlier one between its ends."""
        periods = self._conversations.get(
            frozenset((end_of(conversation.a), end_of(conversation.b)))
        )
        if periods is not None:
            periods.append((number, -1))

    def seal(self) -> None:
        """End of events: packets can be written."""
        self.data.seal()
        pieces = self._pieces
        self._order = sorted(range(0, len(pieces), 5), key=pieces.__getitem__)
        for at in range(0, len(pieces), 5):
            stream, end = pieces[at + 1], pieces[at + 2] + pieces[at + 3]
            self._last[stream] = max(self._last.get(stream, 0), end)

    def packets(
        self, number: int, octets: bytes, original: int, rewriter: PacketRewriter
    ) -> Iterator[Packet] | None:
        """The packets to write in place of one, which the rewriter has just read.

        None if it is not of a decrypted conversation. Numbers rise from call to call.
        """
        parts = list(self._take(number))
        if parts:
            return self._carrying(parts, octets, len(octets) < original, rewriter)
        ends = rewriter.ends()
        serial = -1
        for first, candidate in self._conversations.get(ends, ()) if ends else ():
            if first <= number:
                serial = candidate
        if serial < 0:
            return None
        stream = serial * 2 + (rewriter.source != self._ends[serial][0])
        return iter((self._segment(stream, None, b"", 0, octets, rewriter),))

    def _take(self, number: int) -> Iterator[tuple[int, int, int, int]]:
        """The pieces that a packet completed: stream, offset, length, offset in the file."""
        pieces, order = self._pieces, self._order
        while self._at < len(order) and pieces[order[self._at]] <= number:
            at = order[self._at]
            self._at += 1
            if pieces[at] == number and pieces[at + 1] >> 1 in self._ends:
                yield pieces[at + 1], pieces[at + 2], pieces[at + 3], pieces[at + 4]

    def _carrying(
        self,
        parts: list[tuple[int, int, int, int]],
        octets: bytes,
        is_cut: bool,
        rewriter: PacketRewriter,
    ) -> Iterator[Packet]:
        """One packet, or one for each run of bytes if some between are lost."""
        stream, begin, payload, missing = *parts[0][:2], b"", 0
        for piece_stream, offset, length, file_offset in parts:
            missing = length if file_offset == _LOST and is_cut else 0
            if file_offset == _LOST:
                continue
            if payload and (piece_stream, offset) != (stream, begin + len(payload)):
                yield self._segment(stream, begin, payload, 0, octets, rewriter)
                payload = b""
            if not payload:
                stream, begin = piece_stream, offset
            payload += self._safe(piece_stream, offset, length, file_offset)
        first = begin if payload or missing else None
        yield self._segment(stream, first, payload, missing, octets, rewriter)

    def _safe(self, stream: int, offset: int, length: int, file_offset: int) -> bytes:
        """Decrypted bytes as they stand in the safe capture."""
        original = bytes(length)
        if self._bodies is not None:
            self._bodies.seek(file_offset)
            original = self._bodies.read(length)
        return bytes(self.data.read(stream >> 1, stream & 1, offset, original))

    def _segment(
        self,
        stream: int,
        offset: int | None,
        payload: bytes,
        missing: int,
        octets: bytes,
        rewriter: PacketRewriter,
    ) -> Packet:
        """A packet with these bytes, and some missing behind; without an offset it is empty."""
        flags, window = _ACK, _MAX_WINDOW
        header = octets[rewriter.tcp_at : rewriter.tcp_at + 16] if rewriter.is_tcp else b""
        if len(header) == 16:
            flags, window = header[13] & ~_URG, int.from_bytes(header[14:16], "big")
        reached, answered = self._next.get(stream, 0), self._next.get(stream ^ 1, 0)
        if offset is None:
            offset = self._last.get(stream, 0) if flags & _FIN else reached
        else:
            reached = self._next[stream] = max(reached, offset + len(payload) + missing)
        seq = self._starts[stream] + offset - (flags & _SYN != 0)
        if flags & _FIN:
            self._next[stream] = max(reached, offset) + 1
        ack = self._starts[stream ^ 1] + answered if flags & _ACK else 0
        first, second = self._ends[stream >> 1]
        ends = (second, first) if stream & 1 else (first, second)
        numbers = seq & _SEQUENCE, ack & _SEQUENCE
        packet = rewriter.segment(*numbers, flags, window, payload, missing, ends)
        return packet, len(packet) + missing

    def close(self) -> None:
        """Let go of the files."""
        self.data.close()
        if self._bodies is not None:
            self._bodies.close()


def end_of(text: str) -> End:
    """`address:port` as bytes and a number."""
    address, _, port = text.rpartition(":")
    return ip_address(address.strip("[]")).packed, int(port)
