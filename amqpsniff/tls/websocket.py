# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""WebSocket taken off a conversation: the payloads of its frames are the bytes of AMQP.

A client requests it with an HTTP request that names a subprotocol of AMQP, the server answers 101,
and both go on in frames (RFC 6455 §5.2). Those of a client are masked. Control frames stand between
others and are left out, fragments follow one another. Behind a hole that is larger than the frame
under way a segment is taken for the next boundary if a plausible frame begins it. Compressed
messages (RFC 7692) are not unpacked: one byte may stand for a thousand.

Where the snap length, or a hole, took the end of a request or an answer, the client's first frame
shows them: the protocol header in it comes behind both.

One that was joined later is recognized by a side's first frame with a whole frame of AMQP in it.

Stream offsets count unwrapped bytes.
"""

from __future__ import annotations

import re

import cython

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_HEAD_BYTES = 8192
"""Longest head of a request or answer, what servers commonly allow."""

MAX_EVENTS = 64
"""Events of a conversation that wait until its server has answered."""

MAX_FRAME_BYTES = 1 << 28
"""Largest frame that is believed behind a hole, as of AMQP 1.0."""

_REQUEST = re.compile(rb"GET [^\r\n]+ HTTP/1\.1\r\n")
_ANSWER = re.compile(rb"HTTP/1\.1 101[ \r]")
_STATUS = b"HTTP/1.1 101"
_END = b"\r\n\r\n"
_AMQP = b"AMQP"
_UPGRADE = re.compile(rb"\r\nupgrade:[^\r\n]*websocket", re.IGNORECASE)
_SUBPROTOCOL = re.compile(
    rb"\r\nsec-websocket-protocol:(?:[^\r\n]*[ ,\t])?amqp(?:wsb10)?[ ,\t\r]", re.IGNORECASE
)
"""`amqp` is that of OASIS's binding, `AMQPWSB10` an older one of Azure."""

FEW_BYTES = 64
"""Bytes of a payload that are unmasked one by one."""

_MAX_LEFT = cython.declare(cython.longlong, (1 << 63) - 1)
_CONTROL = cython.declare(cython.int, 0x08)
_RESERVED = cython.declare(cython.int, 0x70)
_OPCODES = frozenset((0, 1, 2, 8, 9, 10))


class Way:
    """One direction: `data` and `gap` give its payloads to `sink`, an object like `stage.Rows`.

    Args:
        index: Which half-stream of its conversation it is.
        masked: Whether its frames have to be masked.
        joined: It continues in frames from an offset that is set later, without a head.
    """

    def __init__(self, sink: Any, index: int, masked: bool, joined: bool = False) -> None:
        self.sink = sink
        self.index = index
        self.masked = masked
        self.offset = -1 if joined else 0
        self.lost = joined
        self._in_head = not joined
        self._pending = b""
        self._payload_left = 0
        self._mask = b""
        self._skipped = False

    def data(self, octets: bytes, number: int, ts_ns: int) -> None:
        """The next bytes of the direction."""
        if self.lost:
            if not self._is_plausible(octets):
                self._miss(len(octets), number, ts_ns)
                return
            self.lost = False
        if not self._payload_left:
            octets = self._pending + octets
            self._pending = b""
        at: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t = len(octets)
        payload_left: cython.longlong = self._payload_left
        count: cython.longlong
        size: cython.Py_ssize_t
        i: cython.Py_ssize_t
        mask: bytes = self._mask
        skipped: cython.bint = self._skipped
        if self._in_head:
            at = octets.find(_END)
            if at < 0:
                self._pending = octets
                return
            self._in_head = False
            at += len(_END)
        clear = bytearray()
        while at < end:
            if payload_left == 0:
                if end - at < 2:
                    break
                size = octets[at + 1] & 0x7F
                payload_left = size if size < 126 else 0
                size = 2 if size < 126 else 4 if size == 126 else 10
                mask = octets[at + size : at + size + 4] if octets[at + 1] & 0x80 else b""
                if end - at < size or (octets[at + 1] & 0x80 and len(mask) < 4):
                    payload_left = 0
                    break
                if size > 2:
                    payload_left = int.from_bytes(octets[at + 2 : at + size], "big") & _MAX_LEFT
                skipped = octets[at] & _CONTROL
                at += size + len(mask)
            count = min(payload_left, end - at)
            if count and not skipped:
                if not mask:
                    clear += octets[at : at + count]
                elif count < FEW_BYTES:
                    for i in range(count):
                        clear.append(octets[at + i] ^ mask[i & 3])
                else:
                    clear += _unmasked(octets[at : at + count], mask)
            payload_left -= count
            at += count
            if payload_left and mask and count & 3:
                mask = mask[count & 3 :] + mask[: count & 3]
        self._payload_left, self._mask, self._skipped = payload_left, mask, skipped
        if at < end:
            self._pending = octets[at:]
        if clear:
            self.sink.put(self.index, bytes(clear), self.offset, number, ts_ns)
            self.offset += len(clear)

    def gap(self, missing: int, number: int, ts_ns: int) -> None:
        """Bytes that the capture has not."""
        inside = min(missing, self._payload_left)
        self._payload_left -= inside
        if self._mask and inside % 4:
            self._mask = self._mask[inside % 4 :] + self._mask[: inside % 4]
        if inside and not self._skipped:
            self._miss(inside, number, ts_ns)
        if missing > inside:
            self.lost = True
            self._payload_left, self._pending, self._in_head = 0, b"", False
            self._miss(missing - inside, number, ts_ns)

    def pass_head(self) -> None:
        """The head is over, and its end was not captured: the next bytes begin with a frame."""
        self._in_head, self.lost = False, True

    def _miss(self, count: int, number: int, ts_ns: int) -> None:
        self.sink.miss(self.index, count, self.offset, number, ts_ns)
        self.offset += count

    def _is_plausible(self, octets: bytes) -> bool:
        """True if a frame begins so, as one side of a conversation writes them."""
        head = _announced(octets)
        return (
            head is not None
            and octets[0] & _RESERVED == 0
            and octets[0] & 0x0F in _OPCODES
            and bool(octets[1] & 0x80) == self.masked
            and head <= MAX_FRAME_BYTES
        )


def _unmasked(octets: bytes, mask: bytes) -> bytes:
    """Bytes that a mask of four was laid over."""
    count = len(octets)
    repeated_mask = (mask * (count // 4 + 1))[:count]
    value = int.from_bytes(octets, "big") ^ int.from_bytes(repeated_mask, "big")
    return value.to_bytes(count, "big")


def _announced(octets: bytes) -> int | None:
    """Bytes of the payload of the frame that these begin with; None if its header is not whole."""
    available = len(octets)
    if available < 2:
        return None
    short = octets[1] & 0x7F
    size = 2 + {126: 2, 127: 8}.get(short, 0)
    if available < size + (4 if octets[1] & 0x80 else 0):
        return None
    return int.from_bytes(octets[2:size], "big") if short > 125 else short


class WebSocketFlow:
    """A conversation that begins with an HTTP request of its half-stream `client`, or is `joined`.

    `undecided` are its events until the server has answered, null from then on.
    """

    def __init__(self, sink: Any, client: int, joined: bool = False) -> None:
        self.client = client
        self.ways = tuple(Way(sink, index, index == client, joined) for index in (0, 1))
        self.undecided: list[tuple[tuple[int, ...], bytes | None]] | None = None if joined else []
        self._heads = [b"", b""]
        self._cut = [False, False]

    def decide(self, event: tuple[int, ...], octets: bytes | None) -> bool | None:
        """Take another event; true if it is WebSocket, false if not, None while that is open."""
        assert self.undecided is not None
        self.undecided.append((event, octets))
        side = event[1] & 1
        if len(self.undecided) > MAX_EVENTS:
            return False
        if octets is None:
            self._cut[side] = True
        elif any(self._cut) and side == self.client and _payload(octets)[:4] == _AMQP:
            self._pass_heads()
            return True
        else:
            self._heads[side] += octets
        request, answer = self._heads[self.client], self._heads[1 - self.client]
        end, answered = request.find(_END), answer.find(_END)
        if max(len(request), len(answer)) > MAX_HEAD_BYTES and min(end, answered) < 0:
            return False
        if any(self._cut):
            return None if answer[: len(_STATUS)] == _STATUS[: len(answer)] else False
        if end < 0:
            return None
        if not is_upgrade(request[: end + 2]):
            return False
        if answered >= 0:
            return _ANSWER.match(answer) is not None
        if answer:
            return None
        return True if len(request) > end + len(_END) else None  # only one side was captured

    def _pass_heads(self) -> None:
        """Leave out the events of heads that were cut: the last one is the first frame."""
        assert self.undecided is not None
        *before, last = self.undecided
        self.undecided = [event for event in before if not self._cut[event[0][1] & 1]] + [last]
        for way, cut in zip(self.ways, self._cut, strict=True):
            if cut:
                way.pass_head()


def is_upgrade(head: bytes) -> bool:
    """True if an HTTP request is for WebSocket with AMQP in it."""
    matched = _REQUEST.match(head) and _UPGRADE.search(head) and _SUBPROTOCOL.search(head)
    return matched is not None and bool(matched)


def is_joined(octets: bytes) -> bool:
    """True if a binary frame begins so, with a whole frame of AMQP in it."""
    payload = _payload(octets)
    size = int.from_bytes(payload[3:7], "big")
    if payload[:1] in _FRAME_TYPES and payload[7 + size : 8 + size] == b"\xce":
        return True
    size = int.from_bytes(payload[:4], "big")
    return 8 <= size <= len(payload) and payload[4] == 2 and payload[5] < 2  # of AMQP 1.0


def _payload(octets: bytes) -> bytes:
    """The payload of a binary frame at the beginning of these bytes, or its captured part."""
    head = _announced(octets)
    if head is None or octets[:1] != BINARY:
        return b""
    masked = octets[1] & 0x80
    at = 2 + {126: 2, 127: 8}.get(octets[1] & 0x7F, 0)
    mask, payload = (octets[at : at + 4], octets[at + 4 :]) if masked else (b"", octets[at:])
    payload = payload[:head]
    return _unmasked(payload, mask) if mask else payload


BINARY = b"\x82"
"""The first byte of a message of binary data in one frame."""

_FRAME_TYPES = (b"\x01", b"\x02", b"\x03", b"\x08")
"""Methods, headers, bodies and heartbeats of AMQP 0-9-1."""
