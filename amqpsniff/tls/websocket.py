"""WebSocket taken off a conversation: the payloads of its frames are the bytes of AMQP.

A client asks for it with an HTTP request that names a subprotocol of AMQP, the server answers 101,
and both go on in frames (RFC 6455 §5.2). Those of a client are masked. Control frames stand between
others and are left out, fragments follow one another. Behind a hole that is larger than the frame
under way a segment is taken for the next boundary if a plausible frame begins it. Compressed
messages (RFC 7692) are passed over as missing.

Stream offsets count unwrapped bytes.
"""

from __future__ import annotations

import re
from typing import Any

MAX_HEAD_BYTES = 8192
"""Longest head of a request or answer, what servers commonly allow."""

MAX_EVENTS = 64
"""Events of a conversation that wait until its server has answered."""

MAX_FRAME_BYTES = 1 << 28
"""Largest frame that is believed behind a hole, as of AMQP 1.0."""

_REQUEST = re.compile(rb"GET [^\r\n]+ HTTP/1\.1\r\n")
_ANSWER = re.compile(rb"HTTP/1\.1 101[ \r]")
_END = b"\r\n\r\n"
_UPGRADE = re.compile(rb"\r\nupgrade:[^\r\n]*websocket", re.IGNORECASE)
_SUBPROTOCOL = re.compile(
    rb"\r\nsec-websocket-protocol:(?:[^\r\n]*[ ,\t])?amqp(?:wsb10)?[ ,\t\r]", re.IGNORECASE
)
"""`amqp` is that of OASIS's binding, `AMQPWSB10` an older one of Azure."""

_CONTROL, _COMPRESSED, _RESERVED = 0x08, 0x40, 0x70
_OPCODES = frozenset((0, 1, 2, 8, 9, 10))


class Way:
    """One direction: `data` and `gap` give its payloads to `sink`, an object like `stage.Rows`.

    Args:
        index: Which half-stream of its conversation it is.
        masked: Whether its frames have to be masked.
    """

    def __init__(self, sink: Any, index: int, masked: bool) -> None:
        self.sink = sink
        self.index = index
        self.masked = masked
        self.offset = 0
        self.lost = False
        self._in_head = True
        self._kept = b""
        self._left = 0
        self._mask = b""
        self._skipped = False

    def data(self, octets: bytes, number: int, ts_ns: int) -> None:
        """The next bytes of the direction."""
        if self.lost:
            if not self._is_plausible(octets):
                self._miss(len(octets), number, ts_ns)
                return
            self.lost = False
        if not self._left:
            octets = self._kept + octets
            self._kept = b""
        at = 0
        if self._in_head:
            end = octets.find(_END)
            if end < 0:
                self._kept = octets
                return
            self._in_head = False
            at = end + len(_END)
        pieces: list[bytes] = []
        while at < len(octets):
            if not self._left:
                size = self._open(octets, at)
                if not size:
                    self._kept = octets[at:]
                    break
                at += size
            count = min(self._left, len(octets) - at)
            if count:
                self._payload(octets[at : at + count], pieces)
            self._left -= count
            at += count
        self._give(pieces, number, ts_ns)

    def gap(self, missing: int, number: int, ts_ns: int) -> None:
        """Bytes that the capture has not."""
        known = min(missing, self._left)
        self._left -= known
        if self._mask and known % 4:
            self._mask = self._mask[known % 4 :] + self._mask[: known % 4]
        if known and not self._skipped:
            self._miss(known, number, ts_ns)
        if missing > known:
            self.lost = True
            self._left, self._kept, self._in_head = 0, b"", False
            self._miss(missing - known, number, ts_ns)

    def _open(self, octets: bytes, at: int) -> int:
        """Begin the frame whose header is at `at`; the bytes of the header, 0 where not whole."""
        head = _header(octets, at)
        if head is None:
            return 0
        size, self._left, self._mask = head
        self._skipped = bool(octets[at] & _CONTROL)
        return size

    def _payload(self, octets: bytes, pieces: list[bytes]) -> None:
        """More of the payload of the frame under way."""
        if self._mask:
            count = len(octets)
            mask = (self._mask * (count // 4 + 1))[:count]
            octets = (int.from_bytes(octets, "big") ^ int.from_bytes(mask, "big")).to_bytes(
                count, "big"
            )
            turn = count % 4
            self._mask = self._mask[turn:] + self._mask[:turn]
        if not self._skipped:
            pieces.append(octets)

    def _give(self, pieces: list[bytes], number: int, ts_ns: int) -> None:
        octets = b"".join(pieces)
        if octets:
            self.sink.put(self.index, octets, self.offset, number, ts_ns)
            self.offset += len(octets)

    def _miss(self, count: int, number: int, ts_ns: int) -> None:
        self.sink.miss(self.index, count, self.offset, number, ts_ns)
        self.offset += count

    def _is_plausible(self, octets: bytes) -> bool:
        """True if a frame begins so, as one side of a conversation writes them."""
        head = _header(octets, 0)
        return (
            head is not None
            and octets[0] & _RESERVED == 0
            and octets[0] & 0x0F in _OPCODES
            and bool(octets[1] & 0x80) == self.masked
            and head[1] <= MAX_FRAME_BYTES
        )


def _header(octets: bytes, at: int) -> tuple[int, int, bytes] | None:
    """Of the frame header at `at`: its bytes, those of the payload, the mask; None if not whole."""
    there = len(octets) - at
    if there < 2:
        return None
    short = octets[at + 1] & 0x7F
    size = 2 + {126: 2, 127: 8}.get(short, 0)
    masked = octets[at + 1] & 0x80
    if there < size + (4 if masked else 0):
        return None
    left = int.from_bytes(octets[at + 2 : at + size], "big") if short > 125 else short
    mask = octets[at + size : at + size + 4] if masked else b""
    return size + len(mask), left, mask


class WebSocketFlow:
    """A conversation that begins with an HTTP request of its half-stream `client`.

    `undecided` are its events until the server has answered, null from then on.
    """

    def __init__(self, sink: Any, client: int) -> None:
        self.client = client
        self.ways = tuple(Way(sink, index, index == client) for index in (0, 1))
        self.undecided: list[tuple[tuple[int, ...], bytes | None]] | None = []
        self._heads = [b"", b""]

    def decide(self, event: tuple[int, ...], octets: bytes | None) -> bool | None:
        """Take another event; true if it is WebSocket, false if not, None while that is open."""
        assert self.undecided is not None
        self.undecided.append((event, octets))
        side = event[1] & 1
        if octets is None or len(self.undecided) > MAX_EVENTS:
            return False
        self._heads[side] += octets
        request, answer = self._heads[self.client], self._heads[1 - self.client]
        end, answered = request.find(_END), answer.find(_END)
        if end < 0:
            return False if len(request) > MAX_HEAD_BYTES else None
        if not is_upgrade(request[: end + 2]):
            return False
        if answered >= 0:
            return _ANSWER.match(answer) is not None
        if answer:
            return False if len(answer) > MAX_HEAD_BYTES else None
        return True if len(request) > end + len(_END) else None  # only one side was captured


def is_upgrade(head: bytes) -> bool:
    """True if a request asks for WebSocket with AMQP in it."""
    asked = _REQUEST.match(head) and _UPGRADE.search(head) and _SUBPROTOCOL.search(head)
    return asked is not None and bool(asked)
