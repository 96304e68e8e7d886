"""pcapng files: sections of blocks, each block framed by its length at both ends.

What carries packets is scanned in `pcapng_blocks`; section headers, interface descriptions,
statistics and decryption secrets are read here. Each section has its own byte order and interfaces;
a section's length field is not used. Lengths that are no multiple of four are taken as rounded up,
as some writers mean them. Simple Packet Blocks have no time. Blocks that Wireshark counts as
records although they are no packets take a packet number and no row, so numbers equal Wireshark's.

Damage costs as little as can be known. A packet that contradicts its block, or whose interface was
not described, is passed over and takes a number. A block whose two lengths differ is read where
another block begins behind it, and so is a packet whose own length says where its block ends.
Behind anything else blocks are searched for. A section without its header, or with an interface
description that cannot be read, is left out from there on: what its packets are is not known.

Blocks are read in C where they carry packets, and else one by one, which takes some microseconds.
So what is repeated byte for byte is read once: an interface description, a section without packets.

Options of packets are left to `PcapngSection.packet_options`. Not read: drop counts of the obsolete
Packet Block, names, custom data.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html; numbering and rounding
measured on tshark 4.0.17.
"""

from __future__ import annotations

from array import array

from amqpsniff.capture.formats import number, pcapng_byte_order
from amqpsniff.capture.packets import PacketBatch, PacketRows
from amqpsniff.capture.pcapng_blocks import (
    BLOCK,
    CAPTURED,
    DECRYPTION_SECRETS,
    FULL,
    INTERFACE_DESCRIPTION,
    INTERFACE_STATISTICS,
    LENGTH,
    MAX_BLOCK_BYTES,
    MAX_FOUND_BYTES,
    MORE,
    NO_INTERFACE,
    SECTION_HEADER,
    TRAILER,
    begins_block,
    find_block,
    scan_blocks,
)
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
        self._told: set[int] = set()
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
        lost = [one for one in self.statistics if one.dropped or one.dropped_by_system]
        if lost:
            texts = [one.text() for one in lost[:MAX_INTERFACES_NAMED]]
            more = [f"and {len(lost) - len(texts)} more"] if len(lost) > len(texts) else []
            self.report("interface-dropped", "; ".join(texts + more))
        return batch

    def _read(self, block: bytes, rows: PacketRows, final: bool) -> tuple[int, int, int]:
        count = 0
        # position, bytes needed, why it stopped, kind of the block there, last packet number
        state = array("q", [0, 12, MORE, 0, self.packets])
        if self._offset == 0 and len(block) < 12:
            return 0, 0, 12
        if self._offset == 0 and number(block[:4], "little") != SECTION_HEADER:
            raise NotACapture(f"{self.capture}: not pcapng: it begins with {block[:4].hex()}")
        while not self.ended:
            if self._lost:
                if not find_block(block, self._order, len(self.interfaces), state, final):
                    break
                if not self._found(state[0]):
                    break
            big = self._order == "big"
            count = scan_blocks(block, big, self._table, self.interfaces, state, count, rows)
            why = state[2]
            if why == FULL:
                rows.grow()
                continue
            self._passed(rows, count, state[4])
            if why == MORE and final and len(block) - state[0] >= 12:
                state[2] = LENGTH  # a block past the file's end
            elif why == MORE:
                break
            if why == BLOCK:
                used = self._block(block, state[0], state)
                state[4] = self.packets
            else:
                kept, used = self._mend(block, state, rows, count, final)
                count += kept
                self._passed(rows, count, state[4])
            if not (used or self._lost):
                break
            state[0] += used
        return count, state[0], state[1]

    def _mend(
        self, block: bytes, state: array[int], rows: PacketRows, count: int, final: bool
    ) -> tuple[int, int]:
        """Rows kept of the damaged block where the scan stands, and bytes used.

        Where the bytes do not say it yet, those needed are in `state`, and none is used.
        """
        position, _, why, kind, _ = state
        self._bare = (-1, 0)
        length = number(block[position + 4 : position + 8], self._order)
        padded = length + 3 & ~3
        if why in (CAPTURED, NO_INTERFACE):
            state[4] += 1
            self._skipped(why, position, padded)
            return 0, padded
        ends = [padded] if why == TRAILER else []
        if kind == ENHANCED_PACKET:
            if len(block) - position < 28 and not final:
                state[1] = 28
                return 0, 0
            head = block[position + 8 : position + 28]
            index, upper, lower, seen, whole = (
                number(head[at : at + 4], self._order) for at in range(0, 20, 4)
            )
            least = 32 + (seen + 3 & ~3)
            if index >= len(self.interfaces) or seen > min(whole, MAX_FOUND_BYTES):
                ends = []
            elif why == LENGTH or least <= padded:
                ends.append(least)
            else:
                ends = [least]
        if ends and len(block) - position < max(ends) + 12 and not final:
            state[1] = max(ends) + 12
            return 0, 0
        cut = why == LENGTH and 12 <= length <= MAX_BLOCK_BYTES
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
                rows.captured[count] = seen
                rows.original[count] = whole
                rows.link_type[count] = self.interfaces[index].link_type
            elif kind == INTERFACE_DESCRIPTION:
                self._interface(block[position + 8 : position + end - 4], position)
            self._damaged(position, _DAMAGE[why], 0, "it was read, and so is what follows")
            return int(kind == ENHANCED_PACKET), end
        if cut:
            return 0, 0
        if kind == INTERFACE_DESCRIPTION:
            self._order = ""
        self._lose(position, _DAMAGE[why])
        return 0, 1

    def _ends(self, block: bytes, position: int, end: int, last: bool) -> bool:
        """True if a block at `position` ends `end` bytes further on, with the file if `last`."""
        after = position + end
        if after > len(block):
            return False
        trailer = number(block[after - 4 : after], self._order)
        if trailer == end or begins_block(block, after, self._order == "big"):
            return True
        return last and after == len(block)

    def _skipped(self, why: int, position: int, octets: int) -> None:
        """Report once that packets are skipped for a reason."""
        if why not in self._told:
            self._told.add(why)
            rest = "it is passed over, and so are others like it"
            self._damaged(position, _DAMAGE[why], octets, rest)

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
        elif self.sections[-1].interfaces:
            self.sections.append(PcapngSection(self.packets, order, []))
        for code, value in options(block[position + 24 : position + padded - 4], order):
            if code == OPT_COMMENT:
                self._comment(value)
        if padded == 28:
            self._bare = (self._offset + position, self.packets)
        return padded

    def _no_section(self, position: int, what: str) -> int:
        """Search for the next section; bytes used of this one."""
        self._bare = (-1, 0)
        self._end_section()
        self._order = ""
        self._lose(position, what)
        return 1

    def _end_section(self) -> None:
        if self.sections and self.sections[-1].interfaces is self.interfaces:
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
        row = self._table[-5:]
        end = position + length
        while block.startswith(described, end) and len(self.interfaces) < MAX_INTERFACES:
            self.interfaces.append(self.interfaces[-1].repeated())
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

    def _limit(self, what: str, where: str) -> None:
        """Report once that what is kept of a file has a limit."""
        if what not in self._limits:
            self._limits.add(what)
            self.report("capture-damaged", f"{what} {where} are not kept; all packets are read")
