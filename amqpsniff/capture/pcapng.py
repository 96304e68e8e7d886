# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""pcapng files: sections of blocks, each block framed by its length at both ends.

The scan runs over whole blocks and fills rows from the three kinds that carry packets. It stops at
section headers, interface descriptions, statistics and decryption secrets, which are read in plain
Python, and steps over every other kind. Each section has its own byte order and interfaces; a
section's length field is not used.

A block whose two lengths differ, or a packet block that contradicts itself, ends the file. Lengths
that are no multiple of four are taken as rounded up, as some writers mean them. Simple Packet
Blocks have no time. Blocks that Wireshark counts as records although they are no packets take a
packet number and no row, so numbers equal Wireshark's.

Not read: options of packets, drop counts of the obsolete Packet Block, names, custom data.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html; numbering and rounding
measured on tshark 4.0.17.
"""

from __future__ import annotations

from array import array

import cython

from amqpsniff.capture.formats import number, pcapng_byte_order
from amqpsniff.capture.interface import Interface, InterfaceStatistics, add_statistics, options
from amqpsniff.capture.packets import NO_TIME, PacketRows
from amqpsniff.capture.reader import Reader
from amqpsniff.capture.section import Section
from amqpsniff.errors import NotACapture

# Wireshark's own limit; a damaged length would otherwise make a reader wait for, and hold, 4 GiB.
MAX_BLOCK_OCTETS = 1 << 24

# Real sections have a handful; a file of nothing but interface descriptions must not fill memory.
MAX_INTERFACES = 1 << 16

# Interfaces one finding names; the rest are counted.
MAX_INTERFACES_NAMED = 8

# Of a file that was put together of others there are as many; more are read and not remembered.
MAX_SECTIONS = 1 << 12

# Key logs of long runs reach some megabytes; a file of nothing but secrets must not fill memory.
MAX_SECRETS_OCTETS = 1 << 26

# Comments are a person's remarks: more than this is no remark.
MAX_COMMENT_OCTETS = 1 << 20

SECTION_HEADER = 0x0A0D0D0A
INTERFACE_DESCRIPTION = 1
INTERFACE_STATISTICS = 5
DECRYPTION_SECRETS = 0xA

# Records to Wireshark but not packets: systemd journal entries, custom blocks, sysdig events.
NUMBERED = frozenset((9, 0xBAD, 0x40000BAD, 0x204, 0x208, 0x216, 0x217, 0x221, 0x222))
READ = frozenset((INTERFACE_DESCRIPTION, INTERFACE_STATISTICS, DECRYPTION_SECRETS)) | NUMBERED

OPT_COMMENT = 1

# What a row of the interface table holds for the scan: link type, nanoseconds in a unit, upper half
# of a time from which 64 bits are not enough, offset in nanoseconds, snap length.
_PER_INTERFACE: cython.Py_ssize_t = 5

# Why the scan stopped.
_MORE: cython.longlong = 0
_FULL: cython.longlong = 1
_BLOCK: cython.longlong = 2
_LENGTH: cython.longlong = 3
_TRAILER: cython.longlong = 4
_CAPTURED: cython.longlong = 5
_NO_INTERFACE: cython.longlong = 6

_DAMAGE = {
    3: "a block with an impossible length",
    4: "a block whose two lengths differ",
    5: "a packet longer than its block",
    6: "a packet of an interface that was not described",
}


class PcapngReader(Reader):
    """Reads a pcapng file; `interfaces` are those of the present section, by index.

    `sections` are those begun so far, but for those beyond `MAX_SECTIONS`.
    """

    format = "pcapng"

    def __init__(self, capture: str) -> None:
        super().__init__(capture)
        self.interfaces: list[Interface] = []
        self.sections: list[Section] = []
        self._order = ""
        self._table = array("q")
        self._statistics: dict[str, InterfaceStatistics] = {}
        self._secret_octets = 0
        self._comment_octets = 0
        self._limits: set[str] = set()
        self._needed = 12

    @property
    def statistics(self) -> list[InterfaceStatistics]:
        """Counts of every interface that has any, by name, over all sections ended so far."""
        return list(self._statistics.values())

    def finish(self, *, explained: bool = False) -> None:
        """Say that the file is over; also reports packets that the capturing side lost."""
        super().finish(explained=explained)
        self._end_section()
        lost = [one for one in self.statistics if one.dropped or one.dropped_by_system]
        if lost:
            texts = [one.text() for one in lost[:MAX_INTERFACES_NAMED]]
            more = [f"and {len(lost) - len(texts)} more"] if len(lost) > len(texts) else []
            self.report("interface-dropped", "; ".join(texts + more))

    def _read(self, block: bytes, rows: PacketRows) -> tuple[int, int, int]:
        count = 0
        # position, octets needed, why it stopped, kind of the block there, last packet number
        state = array("q", [0, 12, _FULL, 0, self.packets])
        if not self._order and number(block[:4], "little") != SECTION_HEADER:
            raise NotACapture(f"{self.capture}: not pcapng: it begins with {block[:4].hex()}")
        while True:
            big = self._order == "big"
            count = _scan(block, big, self._table, self.interfaces, state, count, rows)
            why = state[2]
            if why == _FULL:
                rows.grow()
                continue
            self._passed(rows, count, state[4])
            if why == _BLOCK:
                used = self._block(block, state[0], state)
                if used:
                    state[0] += used
                    state[4] = self.packets
                    continue
            elif why != _MORE:
                self._damaged(state[0], _DAMAGE[why])
            return count, state[0], state[1]

    def _block(self, block: bytes, position: int, state: array[int]) -> int:
        """Read the block at `position`; its length, or 0 when it is not whole or ends the file."""
        kind = state[3]
        if kind == SECTION_HEADER:
            return self._section(block, position, state)
        length = state[1]
        body = block[position + 8 : position + length - 4]
        if kind == INTERFACE_DESCRIPTION:
            return length if self._interface(body, position) else 0
        if kind == INTERFACE_STATISTICS:
            index = number(body[:4], self._order)
            if len(body) >= 12 and index < len(self.interfaces):
                self.interfaces[index].count(body, self._order)
        elif kind == DECRYPTION_SECRETS:
            self._secret(body)
        else:
            self.packets += 1
        return length

    def _section(self, block: bytes, position: int, state: array[int]) -> int:
        """Begin a section: its byte order, then its header as a whole."""
        order = pcapng_byte_order(block[position : position + 12])
        if not order:
            if not self._order:
                raise NotACapture(f"{self.capture}: not pcapng: it has no byte-order magic")
            self._damaged(position, "a section header without its byte-order magic")
            return 0
        length = number(block[position + 4 : position + 8], order)
        padded = length + 3 & ~3
        if not 28 <= length <= MAX_BLOCK_OCTETS:
            self._damaged(position, _DAMAGE[_LENGTH])
            return 0
        state[1] = padded
        if len(block) - position < padded:
            return 0
        if number(block[position + padded - 4 : position + padded], order) != length:
            self._damaged(position, _DAMAGE[_TRAILER])
            return 0
        major = number(block[position + 12 : position + 14], order)
        if major != 1:
            self._damaged(position, f"a section of unknown version {major}")
            return 0
        self._end_section()
        self._order = order
        if len(self.sections) < MAX_SECTIONS:
            self.sections.append(Section(self.packets, order, self.interfaces))
        for code, value in options(block[position + 24 : position + padded - 4], order):
            if code == OPT_COMMENT:
                self._comment(value)
        return padded

    def _end_section(self) -> None:
        for interface in self.interfaces:
            new = interface.statistics
            if new is None:
                continue
            if new.interface not in self._statistics and len(self._statistics) >= MAX_INTERFACES:
                self._limit("statistics", f"of more than {MAX_INTERFACES} interfaces")
                continue
            self._statistics[new.interface] = add_statistics(
                self._statistics.get(new.interface), new
            )
        self.interfaces = []
        self._table = array("q")

    def _interface(self, body: bytes, position: int) -> bool:
        if len(body) < 8 or len(self.interfaces) >= MAX_INTERFACES:
            what = "a cut" if len(body) < 8 else f"more than {MAX_INTERFACES} times an"
            self._damaged(position, f"{what} interface description")
            return False
        interface = Interface(body, self._order, len(self.interfaces))
        self.interfaces.append(interface)
        if interface.link_type not in self.link_types:
            self.link_types.append(interface.link_type)
        plain_below = interface.plain_below
        self._table.extend(
            (
                interface.link_type,
                interface.multiplier,
                plain_below,
                interface.offset_ns if plain_below else 0,
                interface.snap_octets,
            )
        )
        return True

    def _secret(self, body: bytes) -> None:
        length = number(body[4:8], self._order)
        self._secret_octets += len(body)
        if len(body) < 8 or self._secret_octets > MAX_SECRETS_OCTETS:
            self._limit("decryption secrets", f"past {MAX_SECRETS_OCTETS} octets")
            return
        self.secrets.append((number(body[0:4], self._order), body[8 : 8 + length]))

    def _comment(self, value: bytes) -> None:
        self._comment_octets += len(value) + 1
        if self._comment_octets > MAX_COMMENT_OCTETS:
            self._limit("comments", f"past {MAX_COMMENT_OCTETS} octets")
            return
        self.comments.append(value.decode("utf-8", "replace"))

    def _limit(self, what: str, where: str) -> None:
        """Report once that what is kept of a file has a limit."""
        if what not in self._limits:
            self._limits.add(what)
            self.report("capture-damaged", f"{what} {where} are not kept; all packets are read")


@cython.cfunc
@cython.inline
def _u32(
    octets: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, big: cython.bint
) -> cython.longlong:
    """A number, as in `pcap`: a call into another module would take longer than reading it."""
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
    big: cython.bint,
    table: cython.longlong[::1],
    interfaces: list,
    state: cython.longlong[::1],
    row: cython.Py_ssize_t,
    rows: object,
) -> cython.Py_ssize_t:
    """Fill rows from `row` on until octets, rows or sense end, or a block is to be read."""
    numbers: cython.longlong[::1] = rows.number
    ts_ns: cython.longlong[::1] = rows.ts_ns
    start: cython.longlong[::1] = rows.start
    captured: cython.longlong[::1] = rows.captured
    original: cython.longlong[::1] = rows.original
    link_type: cython.longlong[::1] = rows.link_type
    capacity: cython.Py_ssize_t = len(numbers)
    end: cython.Py_ssize_t = len(octets)
    known: cython.longlong = len(interfaces)
    limit: cython.longlong = MAX_BLOCK_OCTETS
    no_time: cython.longlong = NO_TIME
    position: cython.Py_ssize_t = state[0]
    last: cython.longlong = state[4]
    needed: cython.longlong = 12
    why: cython.longlong = _MORE
    kind: cython.longlong = 0
    length: cython.longlong
    padded: cython.longlong
    header: cython.Py_ssize_t
    index: cython.longlong
    entry: cython.Py_ssize_t
    upper: cython.longlong
    lower: cython.longlong
    seen: cython.longlong
    whole: cython.longlong
    moment: cython.longlong

    while end - position >= 12:
        kind = _u32(octets, position, big)
        if kind == 0x0A0D0D0A:
            needed = 12
            why = _BLOCK
            break
        length = _u32(octets, position + 4, big)
        if length < 12 or length > limit:
            why = _LENGTH
            break
        padded = (length + 3) // 4 * 4
        if end - position < padded:
            needed = padded
            break
        if _u32(octets, position + padded - 4, big) != length:
            why = _TRAILER
            break
        if kind == 6 or kind == 2:
            if row == capacity:
                why = _FULL
                break
            header = 28
            if length < 32:
                why = _LENGTH
                break
            index = _u32(octets, position + 8, big)
            if kind == 2:
                index = index >> 16 if big else index & 0xFFFF
            seen = _u32(octets, position + 20, big)
            whole = _u32(octets, position + 24, big)
            if index >= known:
                why = _NO_INTERFACE
                break
            if seen > length - 32:
                why = _CAPTURED
                break
            entry = index * _PER_INTERFACE
            upper = _u32(octets, position + 12, big)
            lower = _u32(octets, position + 16, big)
            if upper < table[entry + 2]:
                moment = (upper << 32 | lower) * table[entry + 1] + table[entry + 3]
            else:
                moment = interfaces[index].instant(upper, lower)
        elif kind == 3:
            if row == capacity:
                why = _FULL
                break
            header = 12
            if length < 16:
                why = _LENGTH
                break
            if known == 0:
                why = _NO_INTERFACE
                break
            entry = 0
            moment = no_time
            whole = _u32(octets, position + 8, big)
            seen = length - 16
            seen = min(seen, whole)
            if table[4] != 0:
                seen = min(seen, table[4])
        else:
            if kind in READ:
                needed = padded
                why = _BLOCK
                break
            position += padded
            continue
        last += 1
        numbers[row] = last
        ts_ns[row] = moment
        start[row] = position + header
        captured[row] = seen
        original[row] = whole
        link_type[row] = table[entry]
        row += 1
        position += padded

    state[0] = position
    state[1] = needed
    state[2] = why
    state[3] = kind
    state[4] = last
    return row
