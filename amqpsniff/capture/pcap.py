# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Savefiles of libpcap: a header of 24 octets, then records.

Five magic numbers are known, each in both byte orders: microseconds, nanoseconds, and the modified
format whose record headers have 24 octets instead of 16. Records carry a time, the captured length
and the original length; versions before 2.3 wrote the two lengths the other way round, and 2.3 did
so sometimes. Lengths are believed up to `MAX_PACKET_OCTETS` and whatever the header's snap length
says: writers get that one wrong. A record of nothing but zeros at the epoch is not a packet but the
zero-filled tail a crash leaves.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html; record order by version and
link-type bits as libpcap reads them.
"""

from __future__ import annotations

from array import array

import cython

from amqpsniff.capture.formats import PCAP_MAGIC_NUMBERS, number, pcap_byte_order
from amqpsniff.capture.packets import PacketRows
from amqpsniff.capture.reader import Reader
from amqpsniff.errors import NotACapture

# tcpdump, dumpcap and Wireshark capture and accept at most 262,144 octets a packet; four times
# that leaves room for snap lengths set by hand. Above it a length is taken for damage: it would
# otherwise make a reader wait for, and hold, up to 4 GiB.
MAX_PACKET_OCTETS = 1 << 20

FILE_HEADER_OCTETS = 24

# The link-type field: type in the low 26 bits; bit 26 says that the top four bits hold the length
# of the frame check sequence, in units of 16 bits. Nobody needs it: what stands behind the octets
# that an IP header counts is no payload (tests/tcp/test_headers.py).
LINK_TYPE_MASK = 0x03FFFFFF

# Whether the two lengths of a record are the other way round.
LENGTHS_IN_ORDER, LENGTHS_SWAPPED, LENGTHS_MAYBE_SWAPPED = 0, 1, 2

# Why the scan stopped.
_MORE: cython.longlong = 0
_FULL: cython.longlong = 1
_TOO_LONG: cython.longlong = 2
_ZEROS: cython.longlong = 3


class PcapReader(Reader):
    """Reads a libpcap savefile."""

    format = "pcap"

    def __init__(self, capture: str) -> None:
        super().__init__(capture)
        self._needed = FILE_HEADER_OCTETS
        self._settings: array[int] | None = None

    def _read(self, block: bytes, rows: PacketRows) -> tuple[int, int, int]:
        position = 0
        if self._settings is None:
            self._settings = self._header(block[:FILE_HEADER_OCTETS])
            position = FILE_HEADER_OCTETS
        count = 0
        # position, octets needed, why it stopped
        state = array("q", [position, 0, _FULL])
        while True:
            count = _scan(block, self._settings, state, self.packets, count, rows)
            if state[2] != _FULL:
                break
            rows.grow()
        self._passed(rows, count, self.packets + count)
        if state[2] == _TOO_LONG:
            self._damaged(state[0], f"a packet of {state[1]} octets (limit {MAX_PACKET_OCTETS})")
        elif state[2] == _ZEROS:
            self._damaged(state[0], "a record of nothing but zeros")
        return count, state[0], state[1]

    def _header(self, octets: bytes) -> array[int]:
        order = pcap_byte_order(octets)
        if not order:
            raise NotACapture(f"{self.capture}: not a pcap file: it begins with {octets[:4].hex()}")
        unit_ns, record_octets = PCAP_MAGIC_NUMBERS[number(octets[:4], order)]
        major = number(octets[4:6], order)
        minor = number(octets[6:8], order)
        link_type = number(octets[20:24], order) & LINK_TYPE_MASK
        self.link_types.append(link_type)
        swap = LENGTHS_IN_ORDER
        if major == 2 and minor <= 3:
            swap = LENGTHS_MAYBE_SWAPPED if minor == 3 else LENGTHS_SWAPPED
        return array("q", [order == "big", unit_ns, record_octets, link_type, swap])


@cython.cfunc
@cython.inline
@cython.boundscheck(False)
@cython.exceptval(-1, check=True)
def _u32(
    octets: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, big: cython.bint
) -> cython.longlong:
    """A number; checks the four octets at once, which is twice as quick as one by one."""
    if at < 0 or at + 4 > len(octets):
        raise IndexError("a number outside a buffer")
    if big:
        return (
            cython.cast(cython.longlong, octets[at]) << 24
            | octets[at + 1] << 16
            | octets[at + 2] << 8
            | octets[at + 3]
        )
    return (
        octets[at]
        | octets[at + 1] << 8
        | octets[at + 2] << 16
        | cython.cast(cython.longlong, octets[at + 3]) << 24
    )


@cython.cfunc
def _scan(
    octets: cython.const[cython.uchar][::1],
    settings: cython.longlong[::1],
    state: cython.longlong[::1],
    packets: cython.longlong,
    row: cython.Py_ssize_t,
    rows: object,
) -> cython.Py_ssize_t:
    """Fill rows from `row` on until octets, rows or sense end; returns the next row."""
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
    limit: cython.longlong = MAX_PACKET_OCTETS
    capacity: cython.Py_ssize_t = len(numbers)
    end: cython.Py_ssize_t = len(octets)
    position: cython.Py_ssize_t = state[0]
    needed: cython.longlong = header
    why: cython.longlong = _MORE
    seconds: cython.longlong
    fraction: cython.longlong
    length: cython.longlong
    whole: cython.longlong
    swapped: cython.longlong

    while end - position >= header:
        if row == capacity:
            why = _FULL
            break
        seconds = _u32(octets, position, big)
        length = _u32(octets, position + 8, big)
        whole = _u32(octets, position + 12, big)
        if swap != 0 and (swap == 1 or length > whole):
            swapped = length
            length = whole
            whole = swapped
        if length > limit:
            why = _TOO_LONG
            needed = length
            break
        fraction = _u32(octets, position + 4, big)
        if seconds == 0 and fraction == 0 and whole == 0 and length == 0:
            why = _ZEROS
            break
        if end - position < header + length:
            needed = header + length
            break
        numbers[row] = packets + row + 1
        ts_ns[row] = seconds * 1000000000 + fraction * unit_ns
        start[row] = position + header
        captured[row] = length
        original[row] = whole
        link_type[row] = link
        row += 1
        position += header + length

    state[0] = position
    state[1] = needed
    state[2] = why
    return row
