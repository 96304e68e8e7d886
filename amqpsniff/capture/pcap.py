# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Savefiles of libpcap: a header of 24 bytes, then records.

Five magic numbers are known, each in both byte orders: microseconds, nanoseconds, and the modified
format whose record headers have 24 bytes instead of 16. Records carry a time, the captured length
and the original length; versions before 2.3 wrote the two lengths the other way round, and 2.3 did
so sometimes. Lengths are believed up to `MAX_PACKET_BYTES` and whatever the header's snap length
says: writers get that one wrong. A record of nothing but zeros at the epoch is not a packet but the
zero-filled tail a crash leaves. A file header where a record should be is that of another file,
that was appended: its records are read too.

After a record that cannot be, the search goes byte by byte. There is no mark to look for, so a
record has to prove itself: it has a possible time, within 30 days of the last one, and possible
lengths, and so has the next after it, or the file ends with it.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html; record order by version and
link-type bits as libpcap reads them.
"""

from __future__ import annotations

from array import array

import cython
from cython.cimports.amqpsniff.byteorder import checked_u32, u32_in

from amqpsniff.capture.formats import PCAP_MAGIC_NUMBERS, number, pcap_byte_order
from amqpsniff.capture.packets import PacketRows
from amqpsniff.capture.reader import Reader
from amqpsniff.errors import NotACapture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# tcpdump, dumpcap and Wireshark capture and accept at most 262,144 bytes a packet; four times
# that leaves room for snap lengths set by hand. Above it a length is taken for damage: it would
# otherwise make a reader wait for, and hold, up to 4 GiB.
MAX_PACKET_BYTES = 1 << 20

FILE_HEADER_BYTES = 24

# Every record begins with a time, its fraction, and two lengths.
_NUMBERS_BYTES = cython.declare(cython.Py_ssize_t, 16)

# The link-type field: type in the low 26 bits; bit 26 says that the top four bits hold the length
# of the frame check sequence, in units of 16 bits. Nobody needs it: what stands behind the bytes
# that an IP header counts is no payload (tests/tcp/test_headers.py).
LINK_TYPE_MASK = 0x03FFFFFF

# A capture does not pause longer than that just where its file is damaged.
_NEAR_S = cython.declare(cython.longlong, 30 * 86400)

# Whether the two lengths of a record are the other way round.
LENGTHS_IN_ORDER, LENGTHS_SWAPPED, LENGTHS_MAYBE_SWAPPED = 0, 1, 2

# The magic numbers as they stand in a file of one byte order and of the other. Above 2^31 a number
# that is written in the code is a Python object to Cython, one that is declared is not.
_MICROSECONDS = cython.declare(cython.longlong, 0xA1B2C3D4)
_MICROSECONDS_SWAPPED = cython.declare(cython.longlong, 0xD4C3B2A1)
_NANOSECONDS = cython.declare(cython.longlong, 0xA1B23C4D)
_NANOSECONDS_SWAPPED = cython.declare(cython.longlong, 0x4D3CB2A1)
_MODIFIED = cython.declare(cython.longlong, 0xA1B2CD34)
_MODIFIED_SWAPPED = cython.declare(cython.longlong, 0x34CDB2A1)

# Why the scan stopped.
_MORE = cython.declare(cython.longlong, 0)
_FULL = cython.declare(cython.longlong, 1)
_TOO_LONG = cython.declare(cython.longlong, 2)
_ZEROS = cython.declare(cython.longlong, 3)
_SHORTENED = cython.declare(cython.longlong, 4)
_FILE_HEADER = cython.declare(cython.longlong, 5)


class PcapReader(Reader):
    """Reads a libpcap savefile."""

    format = "pcap"

    def __init__(self, capture: str) -> None:
        super().__init__(capture)
        self._needed = FILE_HEADER_BYTES
        self._settings: array[int] | None = None

    def _read(self, block: bytes, rows: PacketRows, final: bool) -> tuple[int, int, int]:
        before = self.packets
        # position, bytes needed, why it stopped
        state = array("q", [0, 0, _MORE])
        if self._settings is None:
            if len(block) < FILE_HEADER_BYTES:
                return 0, 0, FILE_HEADER_BYTES
            self._begin(block, state)
        count = 0
        while True:
            if self._lost:
                if not _find(block, self._settings, state, self._near_s, final):
                    break
                if not self._resume(state[0]):
                    break
            count = _scan(block, self._settings, state, before, count, rows, final)
            reason = state[2]
            if reason == _FULL:
                rows.grow()
                continue
            self._passed(rows, count, before + count)
            if reason == _MORE or (reason == _FILE_HEADER and len(block) - state[0] < state[1]):
                break
            if reason == _SHORTENED:
                at = rows.start[count - 1] - self._settings[2]
                claim = f"a record claims {state[1]} bytes of a packet of"
                self._damaged(
                    at,
                    f"{claim} {rows.captured[count - 1]}",
                    0,
                    "it was read to where the next begins",
                )
            elif reason == _FILE_HEADER:
                self._damaged(state[0], "another pcap file begins", 0, "it was read as well")
                self._begin(block, state)
            else:
                long = f"a packet of {state[1]} bytes (limit {MAX_PACKET_BYTES})"
                self._lose(
                    state[0], long if reason == _TOO_LONG else "a record of nothing but zeros"
                )
                state[0] += 1
        return count, state[0], state[1]

    @property
    def _near_s(self) -> int:
        """The time of the last packet in seconds; -1 before the first."""
        return -1 if self._last_ns is None else self._last_ns // 10**9

    def _begin(self, block: bytes, state: array[int]) -> None:
        """Read a file header where the scan stands."""
        at = state[0]
        self._settings = self._header(block[at : at + FILE_HEADER_BYTES])
        state[0] += FILE_HEADER_BYTES

    def _header(self, octets: bytes) -> array[int]:
        order = pcap_byte_order(octets)
        if not order:
            raise NotACapture(f"{self.capture}: not a pcap file: it begins with {octets[:4].hex()}")
        unit_ns, record_bytes = PCAP_MAGIC_NUMBERS[number(octets[:4], order)]
        major = number(octets[4:6], order)
        minor = number(octets[6:8], order)
        link_type = number(octets[20:24], order) & LINK_TYPE_MASK
        self._link(link_type)
        swap = LENGTHS_IN_ORDER
        if major == 2 and minor <= 3:
            swap = LENGTHS_MAYBE_SWAPPED if minor == 3 else LENGTHS_SWAPPED
        return array("q", [order == "big", unit_ns, record_bytes, link_type, swap])


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_magic(value: cython.longlong) -> cython.bint:
    """True if a number is the magic number of a pcap file in one of the byte orders."""
    return (
        value == _MICROSECONDS
        or value == _MICROSECONDS_SWAPPED
        or value == _NANOSECONDS
        or value == _NANOSECONDS_SWAPPED
        or value == _MODIFIED
        or value == _MODIFIED_SWAPPED
    )


@cython.cfunc
@cython.exceptval(-2, check=True)
def _record_at(
    octets: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    settings: cython.longlong[::1],
    near_s: cython.longlong,
) -> cython.longlong:
    """Captured length of a record that may begin here, near a time in seconds; -1 if none can."""
    big: cython.bint = settings[0] != 0
    seconds: cython.longlong = checked_u32(octets, at, big)
    length: cython.longlong = checked_u32(octets, at + 8, big)
    original_bytes: cython.longlong = checked_u32(octets, at + 12, big)
    limit: cython.longlong = MAX_PACKET_BYTES
    swapped: cython.longlong
    if near_s >= 0 and not -_NEAR_S <= seconds - near_s <= _NEAR_S:
        return -1
    if checked_u32(octets, at + 4, big) * settings[1] >= 1000000000:
        return -1
    if settings[4] != 0 and (settings[4] == 1 or length > original_bytes):
        swapped = length
        length = original_bytes
        original_bytes = swapped
    return length if 0 < length <= original_bytes <= limit else -1


def _find(
    octets: cython.const[cython.uchar][::1],
    settings: cython.longlong[::1],
    state: cython.longlong[::1],
    near_s: cython.longlong,
    final: cython.bint,
) -> bool:
    """True if records or a file header begin again in the bytes; `state` is where, as in a scan.

    If they do not, `state` has the position where the search continues and the bytes it needs;
    `final` says that no bytes follow. The time of the last packet is `near_s`, -1 without one.
    """
    header: cython.Py_ssize_t = settings[2]
    big: cython.bint = settings[0] != 0
    at: cython.Py_ssize_t = state[0]
    end: cython.Py_ssize_t = len(octets)
    file_header: cython.Py_ssize_t = FILE_HEADER_BYTES
    needed: cython.longlong = FILE_HEADER_BYTES
    seconds: cython.longlong
    after: cython.Py_ssize_t
    length: cython.longlong
    is_found: cython.bint = False
    while end - at >= file_header or (final and end - at >= header):
        seconds = checked_u32(octets, at, big)
        if near_s >= 0 and not -_NEAR_S <= seconds - near_s <= _NEAR_S and not _is_magic(seconds):
            at += 1  # as nearly everywhere in what is no record
            continue
        if (
            _is_magic(seconds)
            and end - at >= file_header
            and octets[at + 4] + octets[at + 5] == 2
            and checked_u32(octets, at + 8, big) == 0
            and checked_u32(octets, at + 12, big) == 0
        ):
            is_found = True
            break
        length = _record_at(octets, at, settings, near_s)
        if length >= 0:
            after = at + header + length
            if end - after >= header:
                if _record_at(octets, after, settings, seconds) >= 0:
                    is_found = True
                    break
            elif not final:
                needed = header + length + header
                break
            elif after == end:
                is_found = True
                break
        at += 1
    state[0] = at
    state[1] = needed
    return is_found


def _scan(
    octets: cython.const[cython.uchar][::1],
    settings: cython.longlong[::1],
    state: cython.longlong[::1],
    packets: cython.longlong,
    row: cython.Py_ssize_t,
    rows: Any,
    final: cython.bint,
) -> cython.Py_ssize_t:
    """Fill rows from `row` on until bytes, rows or sense end; returns the next row.

    `settings` are: big-endian, nanoseconds in a unit, bytes of a record's header, link type, order
    of lengths. `state` is the position, the bytes needed from there on, and why the scan stopped.
    """
    numbers: cython.longlong[::1] = rows.number
    ts_ns: cython.longlong[::1] = rows.ts_ns
    start: cython.longlong[::1] = rows.start
    captured: cython.longlong[::1] = rows.captured
    original: cython.longlong[::1] = rows.original
    link_type: cython.longlong[::1] = rows.link_type
    big: cython.bint = settings[0] != 0
    unit_ns: cython.longlong = settings[1]
    header: cython.Py_ssize_t = settings[2]
    link: cython.longlong = settings[3]
    swap: cython.longlong = settings[4]
    limit: cython.longlong = MAX_PACKET_BYTES
    capacity: cython.Py_ssize_t = len(numbers)
    end: cython.Py_ssize_t = len(octets)
    position: cython.Py_ssize_t = state[0]
    needed: cython.longlong = header
    reason: cython.longlong = _MORE
    seconds: cython.longlong
    fraction: cython.longlong
    length: cython.longlong
    original_bytes: cython.longlong
    swapped: cython.longlong
    after: cython.Py_ssize_t

    if position < 0 or header < _NUMBERS_BYTES:
        raise IndexError("records outside a buffer")
    while end - position >= header:
        if row == capacity:
            reason = _FULL
            break
        seconds = u32_in(octets, position, big)
        fraction = u32_in(octets, position + 4, big)
        length = u32_in(octets, position + 8, big)
        original_bytes = u32_in(octets, position + 12, big)
        if swap != 0 and (swap == 1 or length > original_bytes):
            swapped = length
            length = original_bytes
            original_bytes = swapped
        if length > original_bytes and original_bytes <= limit:
            # Longer than the packet was: believed unless the next record contradicts it.
            if end - position < header + original_bytes + header and not final:
                needed = header + original_bytes + header
                break
            after = position + header + original_bytes
            if (after == end and final) or (
                end - after >= header and _record_at(octets, after, settings, seconds) >= 0
            ):
                needed = length
                length = original_bytes
                reason = _SHORTENED
        if length > limit:
            reason = _TOO_LONG
            needed = length
            break
        if original_bytes == 0 and length == 0:
            if seconds == 0 and fraction == 0:
                reason = _ZEROS
                break
            if _is_magic(seconds):
                reason = _FILE_HEADER
                needed = FILE_HEADER_BYTES
                break
        if end - position < header + length:
            needed = header + length
            break
        numbers[row] = packets + row + 1
        ts_ns[row] = seconds * 1000000000 + fraction * unit_ns
        start[row] = position + header
        captured[row] = length
        original[row] = original_bytes
        link_type[row] = link
        row += 1
        position += header + length
        if reason == _SHORTENED:
            break

    state[0] = position
    state[1] = needed
    state[2] = reason
    return row
