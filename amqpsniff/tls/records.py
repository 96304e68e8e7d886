# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""One direction of a TLS conversation cut into records, also where bytes of it are missing.

A record's header has its length, so the place is kept by arithmetic while a hole lies inside
records whose headers were captured; a record with a hole in it is handed on in pieces. When the
place is lost, the next record is found by looking for something like a header and having the record
behind it opened: only one that opens is believed.

Source: RFC 8446 §5.1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cython

HEADER = 5
CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, DATA = 20, 21, 22, 23
MAX_PAYLOAD = (1 << 14) + 2048
"""The longest payload of a record: RFC 5246 §6.2.3."""

CUTTING, SEARCHING, DEAF = 0, 1, 2
"""At a known place; looking for the next record; ignoring all bytes."""


class RecordClaim(NamedTuple):
    """A whole record of one direction of one conversation, for code that rewrites its bytes.

    Records are claimed in their order as long as nothing of a direction is lost. `conversation` is
    the serial number of the conversation and `direction` that of its half-stream; `offset` is the
    stream offset of the record's `header` of five bytes. `payload` is None where it is encrypted,
    or may be.
    """

    conversation: int
    direction: int
    offset: int
    header: bytes
    payload: bytes | None


class FirstRecord(NamedTuple):
    """The first encrypted record: size, end in the stream, packet, bytes of the other way."""

    size: int
    end: int
    number: int
    ts_ns: int
    heard: int


@cython.cclass
class Direction:
    """Records that one side sends; `conversation` is given them.

    Attributes:
        offset: Bytes given on so far: where the next ones stand in the stream that was encrypted.
        protection: What opens its records; None while they are in clear.
        sequence: Number of the next record under the present keys.
        proven: Whether a record has opened with the present keys.
        secret: The traffic secret of the present keys, in TLS 1.3.
        later: Traffic secrets that come after it.
        encrypted: Whether its records are encrypted.
        messages: Bytes of handshake messages that are not whole.
        records: Records handed on; those that only add to a message are not.
        held: Bytes kept of a record that is not whole.
        end: Stream offset behind the bytes that were heard, as they were sent.
        record_offset: Stream offset of the record that is handed on.
        first: Its first encrypted record for which there were no keys yet, or None.
    """

    conversation = cython.declare(object, visibility="public")
    index = cython.declare(cython.longlong, visibility="public")
    mode = cython.declare(cython.longlong, visibility="public")
    offset = cython.declare(cython.longlong, visibility="public")
    protection = cython.declare(object, visibility="public")
    sequence = cython.declare(cython.longlong, visibility="public")
    proven = cython.declare(cython.bint, visibility="public")
    secret = cython.declare(object, visibility="public")
    encrypted = cython.declare(cython.bint, visibility="public")
    later = cython.declare(object, visibility="public")
    messages = cython.declare(object, visibility="public")
    records = cython.declare(cython.longlong, visibility="public")
    held = cython.declare(cython.longlong, visibility="public")
    end = cython.declare(cython.longlong, visibility="public")
    record_offset = cython.declare(cython.longlong, visibility="public")
    first = cython.declare(object, visibility="public")
    _buffer: Any
    _need: cython.longlong
    _pieces: Any
    _filled: cython.longlong
    _lost: cython.longlong

    def __init__(self, conversation: Any, index: int) -> None:
        self.conversation = conversation
        self.index = index
        self.mode = CUTTING
        self.offset = 0
        self.protection = None
        self.sequence = 0
        self.proven = False
        self.secret = b""
        self.encrypted = False
        self.later = []
        self.messages = bytearray()
        self.records = 0
        self.held = 0
        self.end = 0
        self.record_offset = 0
        self.first = None
        self._buffer = bytearray()
        self._need = HEADER
        self._pieces = None
        self._filled = 0
        self._lost = 0

    def silence(self) -> None:
        """Ignore all further bytes; claims have the records that can still be cut off."""
        if self.conversation.claims is not None and self.mode == CUTTING:
            return
        self.mode = DEAF
        self.held = 0
        self._buffer.clear()
        self._pieces = None

    def data(self, octets: bytes, number: int, ts_ns: int) -> None:
        """The next bytes."""
        self.end += len(octets)
        self._data(octets, number, ts_ns)
        self.held = len(self._buffer)

    def _data(self, octets: bytes, number: int, ts_ns: int) -> None:
        if self.mode == CUTTING and self._pieces is not None:
            octets = self._fill(octets, number, ts_ns)
        if self.mode == CUTTING and self._buffer:
            self._buffer += octets
            if len(self._buffer) < self._need:
                return
            octets = bytes(self._buffer)
            self._buffer.clear()
        while octets:  # a turn inside the one before it would nest as deep as records are astray
            if self.mode == CUTTING:
                octets = self._cut(octets, number, ts_ns)
            elif self.mode == SEARCHING:
                octets = self._search(octets, number, ts_ns)
            else:
                return

    def _cut(self, octets: bytes, number: int, ts_ns: int) -> bytes:
        """Cut records off bytes that begin with one; returns the bytes behind the last."""
        at: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t = len(octets)
        room: cython.Py_ssize_t = 0
        while end - at >= 5:
            kind: cython.int = octets[at]
            length: cython.Py_ssize_t = octets[at + 3] << 8 | octets[at + 4]
            if not (
                20 <= kind <= 23
                and octets[at + 1] == 3
                and octets[at + 2] <= 4
                and 0 < length <= MAX_PAYLOAD
            ):
                self._confused()
                return octets[at:]
            length += 5
            if end - at < length:
                self._need = length
                break
            if kind == 22 and length - 5 <= room:  # a message may come a byte a record
                self.messages += octets[at + 5 : at + length]
                room -= length - 5
                at += length
                continue
            self._need = length
            self.records += 1
            header, payload = octets[at : at + HEADER], octets[at + HEADER : at + length]
            self.record_offset = self.end - (end - at)
            self.conversation.record(self, header, payload, number, ts_ns)
            at += length
            if self.mode != CUTTING:
                return b""
            room = self._missing() - 1 if kind == 22 else 0
        else:
            self._need = HEADER
        self._buffer += octets[at:]
        return b""

    def _missing(self) -> int:
        """Bytes that a message in clear lacks; 0 where records have to be handed on one by one."""
        if self.encrypted or self.protection is not None or self.conversation.claims is not None:
            return 0
        have = len(self.messages)
        return 4 + int.from_bytes(self.messages[1:4], "big") - have if have >= 4 else 0

    def _confused(self) -> None:
        """The next bytes are no record."""
        if not self.records:
            self.conversation.deny()
        self._seek(0)

    def gap(self, missing: int, number: int, ts_ns: int) -> None:
        """The next `missing` bytes are not in the capture."""
        self.end += missing
        if self.mode == DEAF:
            return
        if self.mode == SEARCHING:
            self._lost += len(self._buffer) + missing
            self._buffer.clear()
            return
        if self._pieces is None and len(self._buffer) >= HEADER:
            self._pieces = [(0, bytes(self._buffer))]
            self._filled = len(self._buffer)
            self._buffer.clear()
        if self._pieces is not None:
            step = min(missing, self._need - self._filled)
            self._filled += step
            missing -= step
            self._end_pieces(number, ts_ns)
        if missing and self.mode == CUTTING:
            missing += len(self._buffer)
            self._buffer.clear()
            self._seek(missing)

    def _fill(self, octets: bytes, number: int, ts_ns: int) -> bytes:
        """Bytes of a record with a hole; those behind it."""
        assert self._pieces is not None
        count = min(len(octets), self._need - self._filled)
        self._pieces.append((self._filled, octets[:count]))
        self._filled += count
        self._end_pieces(number, ts_ns)
        return octets[count:]

    def _end_pieces(self, number: int, ts_ns: int) -> None:
        """Hand on a record with a hole once its end is reached."""
        if self._pieces is not None and self._filled >= self._need:
            pieces, self._pieces = self._pieces, None
            self.records += 1
            self.conversation.broken(self, self._need, pieces, number, ts_ns)
            self._need = HEADER

    def _seek(self, lost_bytes: int) -> None:
        """The place is lost; `lost` bytes were not read."""
        self._buffer.clear()
        self._pieces = None
        self._lost = lost_bytes
        self.mode = SEARCHING
        self.conversation.astray(self)

    def _search(self, octets: bytes, number: int, ts_ns: int) -> bytes:
        """Look for a record that opens; the bytes behind it."""
        self._buffer += octets
        octets_kept = bytes(self._buffer)
        at = 0
        while (at := _find_header(octets_kept, at)) >= 0:
            if len(octets_kept) - at < HEADER:
                break
            length = HEADER + (octets_kept[at + 3] << 8 | octets_kept[at + 4])
            if len(octets_kept) - at < length:
                break
            header, payload = octets_kept[at : at + HEADER], octets_kept[at + HEADER : at + length]
            if self.conversation.resume(self, header, payload, self._lost + at, number, ts_ns):
                self.mode = CUTTING
                self._buffer.clear()
                self._need = HEADER
                return octets_kept[at + length :]
            if self.mode == DEAF:
                return b""
            at += 1
        passed = len(octets_kept) if at < 0 else at
        self._lost += passed
        del self._buffer[:passed]
        return b""


def is_header(octets: bytes) -> bool:
    """True if bytes, five or fewer, may be a record's header."""
    return (
        CHANGE_CIPHER_SPEC <= octets[0] <= DATA
        and (len(octets) < 2 or octets[1] == 3)
        and (len(octets) < 3 or octets[2] <= 4)
        and (len(octets) < 4 or octets[3] <= MAX_PAYLOAD >> 8)
        and (len(octets) < HEADER or 0 < (octets[3] << 8 | octets[4]) <= MAX_PAYLOAD)
    )


def _find_header(octets: bytes, at: int) -> int:
    """Position of the next bytes like the header of a data record, or its beginning; or -1."""
    while (at := octets.find(DATA, at)) >= 0:
        if is_header(octets[at : at + HEADER]):
            return at
        at += 1
    return -1
