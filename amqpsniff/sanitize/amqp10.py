"""Frames of AMQP 1.0: the bytes of the safe capture for each claim of one.

The performative is cleaned by the rules of its fields. The payload of a transfer is a piece of a
message, whose sections may go on in later transfers of the link. A section that is not whole is
filler, until its last byte is there: then it is cleaned as a whole, and its earlier bytes are
mended. Data is only counted. What ends early, or is larger than the bounds, stays filler.

Who sends tokens is known from the attach of the link; of a link from before the capture, from the
request itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from amqpsniff.decode import claims
from amqpsniff.decode.claims import Claim
from amqpsniff.sanitize.policy import (
    BODY,
    DECLARATION,
    FILL,
    HEADERS,
    INSIDE,
    REQUEST,
    TEXT,
    fill,
    filler,
)
from amqpsniff.sanitize.typed_values import SYMBOLS, TypedCleaner
from amqpsniff.sanitize.values import ValueCleaner
from amqpsniff.spec.amqp10 import (
    CBS_NODE,
    ENCODINGS,
    MANAGEMENT_NODE,
    PERFORMATIVES,
    TOKEN_OPERATION,
    TOKEN_PATH,
)

HEADER_BYTES = 8

MAX_SECTION_BYTES = 1024 * 1024
"""Largest section that is cleaned as a whole; of a larger one only the head is kept."""

MAX_HELD_BYTES = 64 * 1024 * 1024
"""Bytes of sections that are not whole, over all connections; those beyond stay filler."""

MAX_LINKS = 4096
"""Links, and messages under way, remembered of a direction: beyond, links count as secret and
messages stay filler. A hostile peer may attach without end."""

MAX_FIELDS = 16
"""Fields that are looked at: no composite has more."""

MAX_HEAD_BYTES = 512
"""Longest beginning of a section: a descriptor, and a constructor with its size."""

_CODES = {row.code for row in PERFORMATIVES}
_WIDTHS = {row.code: row.width for row in ENCODINGS if row.category != "fixed"}
_FIXED = {row.code: row.width for row in ENCODINGS if row.category == "fixed"}
_TEXTS = {row.code for row in ENCODINGS if row.type in ("symbol", "string", "binary")}
_UNSIGNED = {row.code for row in ENCODINGS if row.type in ("uint", "ulong", "ushort", "ubyte")}
_ATTACH, _TRANSFER, _DETACH, _INIT = 0x12, 0x14, 0x16, 0x41
_COORDINATOR = 0x30
_BODIES = frozenset((0x75, 0x76, 0x77))
_BINARIES = frozenset((0xA0, 0xB0))
_LISTS = frozenset((0x70, 0x73))
_SECTION_ACTIONS = dict.fromkeys((0x71, 0x72, 0x74, 0x78), HEADERS)
_MANAGING = (CBS_NODE.encode(), b"$management")
_DECLARING = MANAGEMENT_NODE.encode()
_PROPERTIES = 0x73

Span = tuple[int, bytes]
"""A stream offset, and the bytes at it."""


@dataclass
class _Link:
    """The messages of a link: `manages` at a node that manages, `declares` at RabbitMQ's, `secret`
    tokens.
    """

    manages: bool = False
    declares: bool = False
    secret: bool = False
    transactional: bool = False


@dataclass
class _Message:
    """A message under way; `pieces` are the offsets and sizes of a section that is not whole.

    `needed`: size of the next section, if it is known. `data_left`: bytes of a data section that
    are still to come. `secret`: the message itself shows that it carries a token.
    """

    number: int
    link: _Link
    pending: bytearray = field(default_factory=bytearray)
    pieces: list[tuple[int, int]] = field(default_factory=list)
    needed: int = 0
    data_left: int = 0
    next: int = -1
    unread: bool = False
    secret: bool = False


@dataclass
class _Direction:
    """One direction of a connection."""

    links: dict[int, _Link] = field(default_factory=dict)
    messages: dict[int, _Message] = field(default_factory=dict)
    current: _Message | None = None
    mechanism: bytes = b""


class Amqp10Cleaner:
    """Cleans frames of AMQP 1.0.

    Args:
        values: Cleans texts, and knows the options.
        keep_bodies: Keep bodies, except tokens.
    """

    def __init__(self, values: ValueCleaner, *, keep_bodies: bool) -> None:
        self._typed = TypedCleaner(values)
        self._keep_bodies = keep_bodies
        self._directions: dict[tuple[int, int], _Direction] = {}
        self._held_bytes = 0
        self._mended: list[Span] = []

    def clean(self, claim: Claim) -> bytes:
        """The bytes from the claim's offset on; `mended` has changes of earlier bytes."""
        direction = self._directions.setdefault((claim.conversation, claim.direction), _Direction())
        octets = bytearray(claim.payload)
        if claim.kind == claims.AMQP10_PAYLOAD:
            if direction.current is None:
                return filler(len(octets))
            self._payload(direction.current, octets, 0, claim.offset)
            return bytes(octets)
        direction.current = None
        self._frame(direction, octets, claim)
        return bytes(octets)

    def mended(self) -> Iterator[Span]:
        """Bytes put before that stand otherwise by now."""
        yield from self._mended
        self._mended.clear()

    def end(self, conversation: int) -> None:
        """A conversation is over."""
        for direction in (0, 1):
            state = self._directions.pop((conversation, direction), None)
            for message in state.messages.values() if state else ():
                self._forget(message)

    # frames

    def _frame(self, direction: _Direction, octets: bytearray, claim: Claim) -> None:
        end = len(octets)
        if end < HEADER_BYTES:
            fill(octets, 0, end)
            return
        begin = 4 * octets[4]
        fill(octets, HEADER_BYTES, min(begin, end))
        is_whole = int.from_bytes(octets[:4], "big") == end
        if begin < HEADER_BYTES or begin + 1 >= end or octets[begin] != 0:
            fill(octets, min(max(begin, HEADER_BYTES), end), end)
            return
        before = bytes(octets)
        code, at = self._typed.descriptor(octets, begin + 1, end)
        if not 0 <= at < end:
            fill(octets, max(at, begin) if at >= 0 else begin, end)
            return
        if code not in _CODES:
            self._typed.value(octets, at, end, FILL)
            return
        fields = _Fields(before, at, end)
        key = int.from_bytes(octets[6:8], "big") | (fields.number(code == _ATTACH) << 16)
        if code == _INIT:
            direction.mechanism = fields.text(0)
        self._typed.mechanism = direction.mechanism
        at = self._typed.fields(octets, at, end, code)
        if code == _ATTACH:
            self._attach(direction, key, fields)
        elif code == _DETACH:
            direction.links.pop(key, None)
        elif code == _TRANSFER and at >= 0:
            self._transfer(direction, key, fields, octets, at, claim.offset, is_whole)
            return
        if at >= 0:
            fill(octets, at, end)

    def _attach(self, direction: _Direction, key: int, fields: _Fields) -> None:
        """Remember the address of a link."""
        if len(direction.links) >= MAX_LINKS:
            direction.links.pop(key, None)
            return
        (_, source), (code, target) = fields.terminus(5), fields.terminus(6)
        direction.links[key] = _Link(
            manages=source.endswith(_MANAGING) or target.endswith(_MANAGING),
            declares=_DECLARING in (source, target),
            secret=source.endswith(_MANAGING[0]) or target.endswith(_MANAGING[0]),
            transactional=code == _COORDINATOR,
        )

    def _transfer(
        self,
        direction: _Direction,
        key: int,
        fields: _Fields,
        octets: bytearray,
        at: int,
        offset: int,
        is_whole: bool,
    ) -> None:
        """A transfer, whose payload begins at `at` of the frame."""
        message = direction.messages.get(key)
        number = fields.number(1)
        if message is None or (number >= 0 and number != message.number):
            if message is not None:
                self._forget(message)
            link = direction.links.get(key) or _Link(secret=len(direction.links) >= MAX_LINKS)
            message = _Message(number, link)
            message.unread = len(direction.messages) >= MAX_LINKS
            if not message.unread:
                direction.messages[key] = message
        message.next = offset + at
        self._payload(message, octets, at, offset + at)
        if fields.truth(5) and not fields.truth(9):
            direction.current = None if is_whole else message
            return
        direction.messages.pop(key, None)
        direction.current = None if is_whole else message
        if is_whole:
            self._forget(message)

    # payloads

    def _forget(self, message: _Message) -> None:
        """A message is over: its incomplete section stays filler."""
        self._held_bytes -= len(message.pending)
        message.pending.clear()
        message.pieces.clear()

    def _payload(self, message: _Message, octets: bytearray, at: int, offset: int) -> None:
        """Clean more of a message, the bytes from `at` on; the first is at `offset`."""
        count = len(octets) - at
        if message.next >= 0 and offset > message.next:
            lost_bytes = offset - message.next
            covered = min(lost_bytes, message.data_left)
            message.data_left -= covered
            message.unread = message.unread or covered < lost_bytes or bool(message.pending)
        message.next = offset + count
        if message.data_left > 0 and count:
            covered = min(message.data_left, count)
            message.data_left -= covered
            self._data(message, octets, at, at + covered)
            at, offset, count = at + covered, offset + covered, count - covered
        if message.unread or count == 0:
            fill(octets, at, len(octets))
            return
        room = min(2 * MAX_SECTION_BYTES, MAX_HELD_BYTES - self._held_bytes + len(message.pending))
        if len(message.pending) + count > room:
            message.unread = True
            fill(octets, at, len(octets))
            return
        begin = len(message.pending)
        message.pending += octets[at:]
        message.pieces.append((offset, count))
        self._held_bytes += count
        fill(octets, at, len(octets))
        if len(message.pending) < message.needed:
            return
        safe = bytearray(message.pending)
        stop = self._sections(message, safe)
        octets[at : at + max(stop - begin, 0)] = safe[begin:stop] if stop > begin else b""
        self._scatter(message, safe, stop)

    def _scatter(self, message: _Message, safe: bytearray, stop: int) -> None:
        """Mend the earlier bytes of sections that are whole, up to `stop`, and keep the rest."""
        at = 0
        pieces, message.pieces = message.pieces, []
        for index, (offset, count) in enumerate(pieces):
            cleaned = min(max(stop - at, 0), count)
            if cleaned and index < len(pieces) - 1:
                self._mended.append((offset, bytes(safe[at : at + cleaned])))
            if cleaned < count:
                message.pieces.append((offset + cleaned, count - cleaned))
            at += count
        self._held_bytes -= stop
        del message.pending[:stop]
        if message.unread:
            self._forget(message)

    def _sections(self, message: _Message, octets: bytearray) -> int:
        """Clean the sections that are whole; the position behind them.

        `needed` is the number of bytes that the next one has.
        """
        at, end = 0, len(octets)
        while at < end and not message.unread:
            message.needed = 0
            head = bytes(octets[at : at + MAX_HEAD_BYTES])
            code, body_at = _descriptor(head)
            extent = _extent(head, body_at) if body_at > 0 else 0
            if extent < 0 or body_at < 0:
                message.unread = True  # no section begins so
            elif extent == 0:
                message.unread = len(head) >= MAX_HEAD_BYTES
                break
            elif code in _BODIES and (head[body_at] in _BINARIES or extent > MAX_SECTION_BYTES):
                start = at + body_at + 1 + _WIDTHS.get(head[body_at], 0)
                stop = min(at + body_at + extent, end)
                self._data(message, octets, start, stop)
                message.data_left = body_at + extent - (stop - at)
                at = stop
            elif extent > MAX_SECTION_BYTES:
                message.unread = True
            elif at + body_at + extent > end:
                message.needed = body_at + extent
                break
            else:
                self._section(message, octets, at, body_at, at + body_at + extent, code)
                at += body_at + extent
        if message.unread:
            fill(octets, at, end)
            return end
        return at

    def _section(
        self, message: _Message, octets: bytearray, at: int, body_at: int, end: int, code: int
    ) -> None:
        """Clean a section that is whole and no data; its constructor is behind `body_at` bytes."""
        link = message.link
        action = _SECTION_ACTIONS.get(code, FILL)
        if code in _BODIES:
            if self._keep_bodies and not (link.secret or message.secret):
                return
            action = INSIDE if link.transactional else BODY
            if link.declares and not message.secret:
                action = TEXT if octets[at + body_at] in _TEXTS else DECLARATION
        elif action == HEADERS:
            if TOKEN_OPERATION in octets[at:end]:
                link.manages = link.secret = True
            action = REQUEST if link.manages else HEADERS
        elif code == _PROPERTIES and TOKEN_PATH in octets[at:end]:
            message.secret = True
        self._typed.descriptor(octets, at + 1, at + body_at)
        self._typed.declares = link.declares
        if code in _LISTS:
            self._typed.fields(octets, at + body_at, end, code)
        else:
            self._typed.value(octets, at + body_at, end, action)

    def _data(self, message: _Message, octets: bytearray, at: int, end: int) -> None:
        if not self._keep_bodies or message.link.secret or message.secret:
            fill(octets, at, end)


class _Fields:
    """The fields of a performative before it was cleaned, by index."""

    def __init__(self, octets: bytes, at: int, end: int) -> None:
        self._fields = _items(octets[at:end])

    def _field(self, index: int) -> bytes:
        return self._fields[index] if index < len(self._fields) else b""

    def number(self, index: int) -> int:
        """An unsigned number; -1 for another value."""
        octets = self._field(index)
        return int.from_bytes(octets[1:], "big") if octets and octets[0] in _UNSIGNED else -1

    def truth(self, index: int) -> bool:
        """True if the field is the truth value true."""
        return self._field(index) in (b"\x41", b"\x56\1")

    def text(self, index: int) -> bytes:
        """A text; empty for another value."""
        return _text(self._field(index))

    def terminus(self, index: int) -> tuple[int, bytes]:
        """The descriptor of a source or target and its address; empty without one."""
        octets = self._field(index)
        code, at = _descriptor(octets)
        items = _items(octets[at:]) if at > 0 else []
        return code, _text(items[0]) if items else b""


def _text(octets: bytes) -> bytes:
    """The text of a value; empty for one of another type."""
    return octets[1 + _WIDTHS[octets[0]] :] if octets and octets[0] in _TEXTS else b""


def _descriptor(octets: bytes) -> tuple[int, int]:
    """The code of a value's descriptor, and the position of its constructor: 0 for too few bytes,
    -1 without one. The code is -1 for a descriptor that is not the standard's.
    """
    if len(octets) < 2 or octets[0]:
        return -1, -1 if octets and octets[0] else 0
    extent = _extent(octets, 1)
    if extent <= 0 or 1 + extent >= len(octets):
        return -1, min(extent, 0)
    if octets[1] in _UNSIGNED:
        return int.from_bytes(octets[2 : 1 + extent], "big"), 1 + extent
    return SYMBOLS.get(_text(octets[1 : 1 + extent]), -1), 1 + extent


def _extent(octets: bytes, at: int) -> int:
    """Size of the value at `at`; 0 if too few bytes are there to know, -1 for an invalid value."""
    begin = at
    while at < len(octets) and octets[at] == 0:  # described, a descriptor that is not
        inner = _extent(octets, at + 1) if octets[at + 1 : at + 2] != b"\0" else -1
        if inner <= 0:
            return inner
        at += 1 + inner
    if at >= len(octets):
        return 0
    if octets[at] in _FIXED:
        return at + 1 + _FIXED[octets[at]] - begin
    width = _WIDTHS.get(octets[at])
    if width is None:
        return -1
    if at + 1 + width > len(octets):
        return 0
    return at + 1 + width + int.from_bytes(octets[at + 1 : at + 1 + width], "big") - begin


def _items(octets: bytes) -> list[bytes]:
    """The items of a list that are whole."""
    items: list[bytes] = []
    width = {0xC0: 1, 0xD0: 4}.get(octets[0]) if octets else None
    if width is None:
        return items
    count = int.from_bytes(octets[1 + width : 1 + 2 * width], "big")
    at = 1 + 2 * width
    while len(items) < min(count, MAX_FIELDS) and at < len(octets):
        extent = _extent(octets, at)
        if extent <= 0 or at + extent > len(octets):
            break
        items.append(octets[at : at + extent])
        at += extent
    return items
