# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""pcapng files: sections of blocks, each block framed by its length at both ends.

A scan in C runs over whole blocks and fills rows from the three kinds that carry packets. It stops
at section headers, interface descriptions, statistics and decryption secrets, which are read one by
one, and at damage, and steps over every other kind. Each section has its own byte order and
interfaces; a section's length field is not used. Lengths that are no multiple of four are taken as
rounded up, as some writers mean them. Simple Packet Blocks have no time. Blocks that Wireshark
counts as records although they are no packets take a packet number and no row, so numbers equal
Wireshark's.

Damage loses as few packets as possible. A packet that contradicts its block, or whose interface was
not described, is passed over and takes a number. A block whose two lengths differ is read where
another block begins behind it, and so is a packet whose own length says where its block ends.
Behind anything else blocks are searched for. There is no mark to look for, so a block has to prove
itself: it has the same length at both ends and holds what its kind asks for. A section without its
header, or with an interface description that cannot be read, is left out from there on: what its
packets are is not known.

A block that is read by itself takes some microseconds. So repeated bytes are read
once: an interface description, a section without packets.

Packets of a live run are many, so `enhanced_packets` writes a batch of them at once, as blocks that
the scan reads; the blocks between them are those of `pcapng_writer`.

Options of packets are left to `PcapngSection.packet_options`. Not read: drop counts of the obsolete
Packet Block, names, custom data.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html; numbering and rounding
measured on tshark 4.0.17.
"""

from __future__ import annotations

from array import array

import cython
from cython.cimports.amqpsniff.byteorder import checked_u32

from amqpsniff.capture.formats import number, pcapng_byte_order
from amqpsniff.capture.packets import NO_TIME, PacketBatch, PacketRows
from amqpsniff.capture.pcapng_interface import (
    ENHANCED_PACKET,
    OPT_COMMENT,
    Interface,
    InterfaceStatistics,
    PcapngSection,
    add_statistics,
    options,
)
from amqpsniff.capture.reader import Reader
from amqpsniff.errors import NotACapture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Wireshark's own limit; a damaged length would otherwise make a reader wait for, and hold, 4 GiB.
MAX_BLOCK_BYTES = 1 << 24

# Blocks that a search believes: a packet is no longer (see `pcap`), and for a wrong one it waits.
MAX_FOUND_BYTES = 1 << 20

# The least packet of a Simple Packet Block that a search believes is an Ethernet header: small
# numbers in a row look like such a block without a packet.
MIN_SIMPLE_BYTES = 32

SECTION_HEADER = 0x0A0D0D0A
INTERFACE_DESCRIPTION = 1
INTERFACE_STATISTICS = 5
DECRYPTION_SECRETS = 0xA

# Records to Wireshark but not packets: systemd journal entries, custom blocks, sysdig events.
NUMBERED = frozenset((9, 0xBAD, 0x40000BAD, 0x204, 0x208, 0x216, 0x217, 0x221, 0x222))
READ = frozenset((INTERFACE_DESCRIPTION, INTERFACE_STATISTICS, DECRYPTION_SECRETS)) | NUMBERED

# What a row of the interface table holds for the scan: link type, nanoseconds in a unit, upper half
# of a time from which 64 bits are not enough, offset in nanoseconds, snap length.
_MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_PER_INTERFACE = cython.declare(cython.Py_ssize_t, 5)

# Why the scan stopped.
MORE, FULL, BLOCK, LENGTH, TRAILER, CAPTURED, NO_INTERFACE = range(7)

# Real sections have a handful; a file of nothing but interface descriptions must not fill memory.
MAX_INTERFACES = 1 << 16

# Interfaces one finding names; the rest are counted.
MAX_INTERFACES_NAMED = 8

# Of a file that was put together of others there are as many; more are read and not remembered, nor
# are those that follow when as many interfaces are as a single section may have.
MAX_SECTIONS = 1 << 12

# Key logs of long runs reach some megabytes; a file of nothing but secrets must not fill memory.
MAX_SECRETS_BYTES = 1 << 26

# Comments are a person's remarks: more than this is no remark.
MAX_COMMENT_BYTES = 1 << 20

_DAMAGE = {
    LENGTH: "a block with an impossible length",
    TRAILER: "a block whose two lengths differ",
    CAPTURED: "a packet longer than its block",
    NO_INTERFACE: "a packet of an interface that was not described",
}


class PcapngReader(Reader):
    """Reads a pcapng file; `interfaces` are those of the present section, by index.

    `sections` are those begun so far; those beyond `MAX_SECTIONS` or `MAX_INTERFACES` are one, the
    last, without interfaces.
    """

    format = "pcapng"

    def __init__(self, capture: str) -> None:
        super().__init__(capture)
        self.interfaces: list[Interface] = []
        self.sections: list[PcapngSection] = []
        self._order = ""
        self._table = array("q")
        self._statistics: dict[str, InterfaceStatistics] = {}
        self._secret_bytes = 0
        self._comment_bytes = 0
        self._kept_interfaces = 0
        self._limits: set[str] = set()
        self._skips_reported: set[int] = set()
        self._needed = 12
        # offset and packets before it of a section with nothing but interfaces so far; -1 for none
        self._bare = (-1, 0)

    @property
    def statistics(self) -> list[InterfaceStatistics]:
        """Counts of every interface that has any, by name, over all sections ended so far."""
        return list(self._statistics.values())

    def finish(self, *, explained: bool = False) -> PacketBatch | None:
        """Say that the file is over; also reports packets that the capturing side lost."""
        batch = super().finish(explained=explained)
        self._end_section()
        dropping = [
            counts for counts in self.statistics if counts.dropped or counts.dropped_by_system
        ]
        if dropping:
            texts = [counts.text() for counts in dropping[:MAX_INTERFACES_NAMED]]
            rest = [f"and {len(dropping) - len(texts)} more"] if len(dropping) > len(texts) else []
            self.report("interface-dropped", "; ".join(texts + rest))
        return batch

    def _read(self, block: bytes, rows: PacketRows, final: bool) -> tuple[int, int, int]:
        count = 0
        # position, bytes needed, reason of the stop, kind of the block, last packet number
        state = array("q", [0, 12, MORE, 0, self.packets])
        if self._offset == 0 and len(block) < 12:
            return 0, 0, 12
        if self._offset == 0 and number(block[:4], "little") != SECTION_HEADER:
            raise NotACapture(f"{self.capture}: not pcapng: it begins with {block[:4].hex()}")
        while not self.ended:
            if self._lost:
                if not _find_block(block, self._order, len(self.interfaces), state, final):
                    break
                if not self._resume(state[0]):
                    break
            big = self._order == "big"
            count = _scan_blocks(block, big, self._table, self.interfaces, state, count, rows)
            reason = state[2]
            if reason == FULL:
                rows.grow()
                continue
            self._passed(rows, count, state[4])
            if reason == MORE and final and len(block) - state[0] >= 12:
                state[2] = LENGTH  # a block past the file's end
            elif reason == MORE:
                break
            if reason == BLOCK:
                used = self._block(block, state[0], state)
                state[4] = self.packets
            else:
                added, used = self._mend(block, state, rows, count, final)
                count += added
                self._passed(rows, count, state[4])
            if not (used or self._lost):
                break
            state[0] += used
        return count, state[0], state[1]

    def _mend(
        self, block: bytes, state: array[int], rows: PacketRows, count: int, final: bool
    ) -> tuple[int, int]:
        """Rows kept of the damaged block where the scan stands, and bytes used.

        If more bytes are needed to decide, their number is in `state`, and no bytes are used.
        """
        position, _, reason, kind, _ = state
        self._bare = (-1, 0)
        length = number(block[position + 4 : position + 8], self._order)
        padded = length + 3 & ~3
        if reason in (CAPTURED, NO_INTERFACE):
            state[4] += 1
            self._skipped(reason, position, padded)
            return 0, padded
        ends = [padded] if reason == TRAILER else []
        if kind == ENHANCED_PACKET:
            if len(block) - position < 28 and not final:
                state[1] = 28
                return 0, 0
            head = block[position + 8 : position + 28]
            index, upper, lower, captured_bytes, original_bytes = (
                number(head[at : at + 4], self._order) for at in range(0, 20, 4)
            )
            min_bytes = 32 + (captured_bytes + 3 & ~3)
            if index >= len(self.interfaces) or captured_bytes > min(
                original_bytes, MAX_FOUND_BYTES
            ):
                ends = []
            elif reason == LENGTH or min_bytes <= padded:
                ends.append(min_bytes)
            else:
                ends = [min_bytes]
        if ends and len(block) - position < max(ends) + 12 and not final:
            state[1] = max(ends) + 12
            return 0, 0
        cut = reason == LENGTH and 12 <= length <= MAX_BLOCK_BYTES
        for end in ends:
            if not self._ends(block, position, end, final and not cut):
                continue
            if kind == ENHANCED_PACKET:
                if count == rows.capacity:
                    rows.grow()
                state[4] += 1
                rows.number[count] = state[4]
                rows.ts_ns[count] = self.interfaces[index].instant(upper, lower)
                rows.start[count] = position + 28
                rows.captured[count] = captured_bytes
                rows.original[count] = original_bytes
                rows.link_type[count] = self.interfaces[index].link_type
            elif kind == INTERFACE_DESCRIPTION:
                self._interface(block[position + 8 : position + end - 4], position)
            self._damaged(position, _DAMAGE[reason], 0, "it was read, and so is what follows")
            return int(kind == ENHANCED_PACKET), end
        if cut:
            return 0, 0
        if kind == INTERFACE_DESCRIPTION:
            self._order = ""
        self._lose(position, _DAMAGE[reason])
        return 0, 1

    def _ends(self, block: bytes, position: int, end: int, last: bool) -> bool:
        """True if a block at `position` ends `end` bytes further on, with the file if `last`."""
        after = position + end
        if after > len(block):
            return False
        trailer = number(block[after - 4 : after], self._order)
        if trailer == end or _begins_block(block, after, self._order == "big"):
            return True
        return last and after == len(block)

    def _skipped(self, reason: int, position: int, octets: int) -> None:
        """Report once that packets are skipped for a reason."""
        if reason not in self._skips_reported:
            self._skips_reported.add(reason)
            consequence = "it is passed over, and so are others like it"
            self._damaged(position, _DAMAGE[reason], octets, consequence)

    def _block(self, block: bytes, position: int, state: array[int]) -> int:
        """Read the block at `position`; bytes used, 0 when it is not whole."""
        kind = state[3]
        if kind == SECTION_HEADER:
            return self._section(block, position, state)
        length = state[1]
        body = block[position + 8 : position + length - 4]
        if kind == INTERFACE_DESCRIPTION:
            if not self._interface(body, position):
                return 1
            return length + self._repeated(block, position, length)
        self._bare = (-1, 0)
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
        begin, packets = self._bare
        begin -= self._offset
        if 0 <= begin < position and packets == self.packets:
            before, end = block[begin:position], position
            while block.startswith(before, end):
                end += len(before)
            if end > position:
                return end - position
        self._bare = (-1, 0)
        order = pcapng_byte_order(block[position : position + 12])
        if not order:
            if self._offset + position == 0:
                raise NotACapture(f"{self.capture}: not pcapng: it has no byte-order magic")
            return self._no_section(position, "a section header without its byte-order magic")
        length = number(block[position + 4 : position + 8], order)
        padded = length + 3 & ~3
        if not 28 <= length <= MAX_BLOCK_BYTES:
            return self._no_section(position, _DAMAGE[LENGTH])
        state[1] = padded
        if len(block) - position < padded:
            return 0
        if number(block[position + padded - 4 : position + padded], order) != length:
            return self._no_section(position, _DAMAGE[TRAILER])
        major = number(block[position + 12 : position + 14], order)
        if major != 1:
            return self._no_section(position, f"a section of unknown version {major}")
        self._end_section()
        self._order = order
        if len(self.sections) < MAX_SECTIONS and self._kept_interfaces < MAX_INTERFACES:
            self.sections.append(PcapngSection(self.packets, order, self.interfaces))
        elif self.sections[len(self.sections) - 1].interfaces:
            self.sections.append(PcapngSection(self.packets, order, []))
        for code, value in options(block[position + 24 : position + padded - 4], order):
            if code == OPT_COMMENT:
                self._comment(value)
        if padded == 28:
            self._bare = (self._offset + position, self.packets)
        return padded

    def _no_section(self, position: int, damage: str) -> int:
        """Search for the next section; bytes used of this one."""
        self._bare = (-1, 0)
        self._end_section()
        self._order = ""
        self._lose(position, damage)
        return 1

    def _end_section(self) -> None:
        sections = self.sections
        if sections and sections[len(sections) - 1].interfaces is self.interfaces:
            self._kept_interfaces += len(self.interfaces)
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
            if len(body) < 8:
                self._no_section(position, "a cut interface description")
            else:
                self._end_at(position, f"more than {MAX_INTERFACES} times an interface description")
            return False
        interface = Interface(body, self._order, len(self.interfaces))
        self.interfaces.append(interface)
        self._link(interface.link_type)
        plain_below = interface.plain_below
        self._table.extend(
            (
                interface.link_type,
                interface.multiplier,
                plain_below,
                interface.offset_ns if plain_below else 0,
                interface.snap_bytes,
            )
        )
        return True

    def _repeated(self, block: bytes, position: int, length: int) -> int:
        """Take the interface just read as often as its block is repeated; bytes of those blocks."""
        described = block[position : position + length]
        interface = self.interfaces[len(self.interfaces) - 1]
        row = self._table[len(self._table) - _PER_INTERFACE :]
        end = position + length
        while block.startswith(described, end) and len(self.interfaces) < MAX_INTERFACES:
            interface = interface.repeated()
            self.interfaces.append(interface)
            self._table.extend(row)
            end += length
        return end - position - length

    def _secret(self, body: bytes) -> None:
        length = number(body[4:8], self._order)
        self._secret_bytes += len(body)
        if len(body) < 8 or self._secret_bytes > MAX_SECRETS_BYTES:
            self._limit("decryption secrets", f"past {MAX_SECRETS_BYTES} bytes")
            return
        self.secrets.append((number(body[0:4], self._order), body[8 : 8 + length]))

    def _comment(self, value: bytes) -> None:
        self._comment_bytes += len(value) + 1
        if self._comment_bytes > MAX_COMMENT_BYTES:
            self._limit("comments", f"past {MAX_COMMENT_BYTES} bytes")
            return
        self.comments.append(value.decode("utf-8", "replace"))

    def _limit(self, things: str, where: str) -> None:
        """Report once that some things of a file are not kept: they reached their limit."""
        if things not in self._limits:
            self._limits.add(things)
            self.report("capture-damaged", f"{things} {where} are not kept; all packets are read")


@cython.cfunc
@cython.exceptval(-2, check=True)
def _block_at(
    octets: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    big: cython.bint,
    interface_count: cython.longlong,
    end: cython.Py_ssize_t,
) -> cython.longlong:
    """Bytes that a block takes which may begin here; 0 where none does, -1 where some are missing.

    `interface_count` is the number of interfaces, `end` the end of the bytes.
    """
    kind: cython.longlong = checked_u32(octets, at, big)
    if not (kind == 10 or (0 < kind < 7 and kind != 4)):
        return 0
    length: cython.longlong = checked_u32(octets, at + 4, big)
    if length & 3 or not 20 <= length <= MAX_FOUND_BYTES:
        return 0
    if end - at < length:
        return -length
    if checked_u32(octets, at + length - 4, big) != length:
        return 0
    index: cython.longlong = checked_u32(octets, at + 8, big)
    if kind == 6 or kind == 2:
        if kind == 2:
            index = index >> 16 if big else index & 0xFFFF
        if (
            length < 32
            or index >= interface_count
            or checked_u32(octets, at + 20, big) > length - 32
        ):
            return 0
    elif kind == 5:
        if length < 24 or index >= interface_count:
            return 0
    elif kind == 3 and (interface_count == 0 or length < MIN_SIMPLE_BYTES):
        return 0
    return length


@cython.cfunc
@cython.exceptval(-1, check=True)
def _find_block(
    octets: cython.const[cython.uchar][::1],
    order: str,
    interface_count: cython.longlong,
    state: cython.longlong[::1],
    final: cython.bint,
) -> cython.bint:
    """True if blocks begin again in the bytes; `state` is where, as in a scan.

    If they do not, `state` has the position where the search continues and the bytes it needs;
    `final` says that no bytes follow. Without a byte order only the header of a section is looked
    for; `interface_count` is the number of interfaces of the present one.
    """
    big: cython.bint = order == "big"
    inside: cython.bint = order != ""
    at: cython.Py_ssize_t = state[0]
    end: cython.Py_ssize_t = len(octets)
    needed: cython.longlong = 12
    length: cython.longlong
    magic: cython.longlong
    is_found: cython.bint = False
    while end - at >= 12:
        if octets[at] == 0x0A and checked_u32(octets, at, big) == 0x0A0D0D0A:
            magic = checked_u32(octets, at + 8, big)
            if magic == 0x1A2B3C4D or magic == 0x4D3C2B1A:
                is_found = True
                break
        if inside:
            length = _block_at(octets, at, big, interface_count, end)
            if length > 0:
                is_found = True
                break
            if length < 0 and not final:
                needed = -length
                break
        at += 1
    state[0] = at
    state[1] = needed
    return is_found


@cython.cfunc
@cython.exceptval(-1, check=True)
def _begins_block(
    octets: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, big: cython.bint
) -> cython.bint:
    """True if the twelve bytes from `at` on may be the begin of a block of a known kind."""
    if at + 12 > len(octets):
        return False
    kind: cython.longlong = checked_u32(octets, at, big)
    length: cython.longlong = checked_u32(octets, at + 4, big)
    if kind == 0x0A0D0D0A:
        return True
    return (0 < kind < 7 or kind in READ) and 12 <= length <= MAX_BLOCK_BYTES


@cython.cfunc
@cython.exceptval(-1, check=True)
def _scan_blocks(
    octets: cython.const[cython.uchar][::1],
    big: cython.bint,
    table: cython.longlong[::1],
    interfaces: list[Any],
    state: cython.longlong[::1],
    row: cython.Py_ssize_t,
    rows: Any,
) -> cython.Py_ssize_t:
    """Fill rows from `row` on until bytes, rows or sense end, or a block is to be read.

    `table` has numbers of each interface. `state` is the position, the bytes needed from there on
    (the size of a block that is whole), the reason why the scan stopped, the kind of the block at
    the position, the last packet's number. Returns the next row.
    """
    numbers: cython.longlong[::1] = rows.number
    ts_ns: cython.longlong[::1] = rows.ts_ns
    start: cython.longlong[::1] = rows.start
    captured: cython.longlong[::1] = rows.captured
    original: cython.longlong[::1] = rows.original
    link_type: cython.longlong[::1] = rows.link_type
    capacity: cython.Py_ssize_t = len(numbers)
    end: cython.Py_ssize_t = len(octets)
    interface_count: cython.longlong = len(interfaces)
    limit: cython.longlong = MAX_BLOCK_BYTES
    no_time: cython.longlong = NO_TIME
    position: cython.Py_ssize_t = state[0]
    last: cython.longlong = state[4]
    needed: cython.longlong = 12
    reason: cython.longlong = MORE
    kind: cython.longlong = 0
    length: cython.longlong
    padded: cython.longlong
    header: cython.Py_ssize_t
    index: cython.longlong
    entry: cython.Py_ssize_t
    upper: cython.longlong
    lower: cython.longlong
    captured_bytes: cython.longlong
    original_bytes: cython.longlong
    moment: cython.longlong

    while end - position >= 12:
        kind = checked_u32(octets, position, big)
        if kind == 0x0A0D0D0A:
            needed = 12
            reason = BLOCK
            break
        length = checked_u32(octets, position + 4, big)
        if length < 12 or length > limit:
            reason = LENGTH
            break
        padded = (length + 3) // 4 * 4
        if end - position < padded:
            needed = padded
            break
        if checked_u32(octets, position + padded - 4, big) != length:
            reason = TRAILER
            break
        if kind == 6 or kind == 2:
            if row == capacity:
                reason = FULL
                break
            header = 28
            if length < 32:
                reason = CAPTURED
                break
            index = checked_u32(octets, position + 8, big)
            if kind == 2:
                index = index >> 16 if big else index & 0xFFFF
            captured_bytes = checked_u32(octets, position + 20, big)
            original_bytes = checked_u32(octets, position + 24, big)
            if index >= interface_count:
                reason = NO_INTERFACE
                break
            if captured_bytes > length - 32:
                reason = CAPTURED
                break
            entry = index * _PER_INTERFACE
            upper = checked_u32(octets, position + 12, big)
            lower = checked_u32(octets, position + 16, big)
            if upper < table[entry + 2]:
                moment = (upper << 32 | lower) * table[entry + 1] + table[entry + 3]
            else:
                moment = interfaces[index].instant(upper, lower)
        elif kind == 3:
            if row == capacity:
                reason = FULL
                break
            header = 12
            if length < 16:
                reason = CAPTURED
                break
            if interface_count == 0:
                reason = NO_INTERFACE
                break
            entry = 0
            moment = no_time
            original_bytes = checked_u32(octets, position + 8, big)
            captured_bytes = length - 16
            captured_bytes = min(captured_bytes, original_bytes)
            if table[4] != 0:
                captured_bytes = min(captured_bytes, table[4])
        else:
            if kind in READ:
                needed = padded
                reason = BLOCK
                break
            position += padded
            continue
        last += 1
        numbers[row] = last
        ts_ns[row] = moment
        start[row] = position + header
        captured[row] = captured_bytes
        original[row] = original_bytes
        link_type[row] = table[entry]
        row += 1
        position += padded

    state[0] = position
    state[1] = needed
    state[2] = reason
    state[3] = kind
    state[4] = last
    return row


@cython.cfunc
@cython.inline
def _put(target: cython.uchar[::1], at: cython.Py_ssize_t, value: cython.ulonglong) -> cython.int:
    target[at] = value & 0xFF
    target[at + 1] = value >> 8 & 0xFF
    target[at + 2] = value >> 16 & 0xFF
    target[at + 3] = value >> 24 & 0xFF
    return 0


def enhanced_packets(batch: Any, indices: cython.longlong[::1], out: Any) -> cython.longlong:
    """Write a batch as Enhanced Packet Blocks to a bytearray that has room; gives their bytes.

    `indices` are the places of each row's interface in the section. Times are written in ns.
    """
    octets: cython.const[cython.uchar][::1] = batch.octets
    target: cython.uchar[::1] = out
    source = memoryview(batch.octets)
    sink = memoryview(out)
    ts_ns: cython.longlong[::1] = batch.ts_ns
    starts: cython.longlong[::1] = batch.start
    captured: cython.longlong[::1] = batch.captured
    original: cython.longlong[::1] = batch.original
    first: cython.Py_ssize_t = batch.begin
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t
    octet: cython.Py_ssize_t
    length: cython.longlong
    moment: cython.ulonglong
    for row in range(first, batch.end):
        size = captured[row]
        length = 32 + (size + 3) // 4 * 4
        moment = ts_ns[row] if ts_ns[row] > 0 else 0
        _put(target, at, 6)
        _put(target, at + 4, length)
        _put(target, at + 8, indices[row - first])
        _put(target, at + 12, moment >> 32)
        _put(target, at + 16, moment & _MASK32)
        _put(target, at + 20, size)
        _put(target, at + 24, original[row])
        at += 28
        if size <= 64:
            for octet in range(size):
                target[at + octet] = octets[starts[row] + octet]
        else:
            sink[at : at + size] = source[starts[row] : starts[row] + size]
        at += size
        while at % 4:
            target[at] = 0
            at += 1
        _put(target, at, length)
        at += 4
    return at
