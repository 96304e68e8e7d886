"""The base of the readers of pcap and pcapng: bytes in, in any pieces, batches of packets out.

A reader is fed the bytes of one capture file in order, cut anywhere. Every `feed` returns the
packets that are complete by then, over the very block that was fed, or over that block joined to
the rest of the one before. Bytes of an unfinished record are held until it is complete and are
joined once, so that many small pieces cost no more than a large one. A reader does no I/O.

Record boundaries follow from lengths, so after an invalid record the position of the next is
unknown. The reader returns the valid part of such a record; then it searches for the next beginning
of records, and continues there. Packet numbers continue: they differ from Wireshark's, which stops
there. All packets before the damage are returned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from amqpsniff.capture.packets import NO_TIME, PacketBatch, PacketRows
from amqpsniff.findings import Finding

# A file can be nothing but damage; more than this is counted.
MAX_TOLD = 16

# Bytes of an unpacked capture that are searched for records in all, which takes 1 s. Two megabytes
# of gzip unpack to two gigabytes of zeros; damage in a capture that goes on costs kilobytes.
MAX_SEARCHED_BYTES = 64 << 20

# As many as there are numbers for them in pcapng; a pcap file that was put together of others has
# room for more.
MAX_LINK_TYPES = 1 << 16


class Lost(NamedTuple):
    """Damage after which records are searched for: its kind, and its position in the file."""

    damage: str
    offset: int


class Reader(ABC):
    """An incremental reader of one capture file; `PcapReader` and `PcapngReader` know the formats.

    `findings`, `link_types` (LINKTYPE_ values in order of first declaration), `secrets` (pairs of
    secrets type and bytes) and `comments` grow while it is fed. `packets` counts packets so far,
    `ended`: the file is over and further bytes are ignored; `unpacked`, set by the caller: offsets
    in findings are not those of the file on disk.
    """

    format = ""

    def __init__(self, capture: str) -> None:
        self.capture = capture
        self.findings: list[Finding] = []
        self.link_types: list[int] = []
        self._links: set[int] = set()
        self.secrets: list[tuple[int, bytes]] = []
        self.comments: list[str] = []
        self.packets = 0
        self.ended = False
        self.unpacked = False
        self._last_ns: int | None = None
        self._pieces: list[bytes] = []
        self._held_bytes = 0
        self._needed = 1
        self._offset = 0
        self._lost: Lost | None = None
        self._damages = 0
        self._untold_bytes = 0
        self._searched = 0

    def feed(self, octets: bytes) -> PacketBatch | None:
        """Packets that these bytes of the file complete, or None."""
        if self.ended or not octets:
            return None
        self._pieces.append(bytes(octets))
        self._held_bytes += len(octets)
        if self._held_bytes < self._needed:
            return None
        return self._read_pieces(final=False)

    def _read_pieces(self, *, final: bool) -> PacketBatch | None:
        """Packets of the held bytes; `final`: no others follow."""
        block = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        rows = PacketRows(len(block))
        count, position, self._needed = self._read(block, rows, final)
        self._offset += position
        if self._lost:
            self._is_too_far(self._lost, 0)
        self._held_bytes = 0 if self.ended else len(block) - position
        self._pieces = [block[position:]] if self._held_bytes else []
        if not count:
            return None
        return rows.batch(self.capture, block, count)

    def give_back(self) -> int:
        """Forget the bytes of an unfinished record and return their number.

        For a caller that can feed them again, together with those that follow: joining costs more.
        """
        byte_count, self._held_bytes, self._pieces = self._held_bytes, 0, []
        self._needed = 1
        return byte_count

    def finish(self, *, explained: bool = False) -> PacketBatch | None:
        """End of the file; bytes of an unfinished record become a finding.

        With `explained` they do not: another finding already has the reason. Returns the last
        packets, if only the file's end completes them.
        """
        batch = None
        if self._held_bytes and not self.ended and not explained:
            batch = self._read_pieces(final=True)
        if self._lost:
            self._report_loss(self._lost, "nothing after it can be")
            self._lost = None
        elif self._held_bytes and not self.ended and not explained:
            self.report(
                "capture-truncated",
                f"the file ends inside a record: {self._held_bytes} bytes of it are there, "
                f"{self._place(0)}, where at least {self._needed} are needed; "
                "everything before it was read",
            )
        if self._damages > MAX_TOLD:
            damage = f"the file is damaged in {self._damages - MAX_TOLD} more places"
            self.report("capture-damaged", f"{damage} ({self._untold_bytes} bytes skipped)")
        self.ended = True
        self._pieces = []
        self._held_bytes = 0
        return batch

    def report(self, code: str, detail: str) -> None:
        """Add a finding at the last packet read."""
        number = self.packets or None
        self.findings.append(Finding(code, detail, self.capture, number, self._last_ns))

    def _link(self, link_type: int) -> None:
        """Packets of a link type may come."""
        if link_type not in self._links and len(self._links) < MAX_LINK_TYPES:
            self._links.add(link_type)
            self.link_types.append(link_type)

    def _lose(self, position: int, damage: str) -> None:
        """Search for records: an impossible one is at this position of the present block."""
        self._lost = Lost(damage, self._offset + position)

    def _resume(self, position: int) -> bool:
        """Continue where records begin again; False if that is farther than is searched."""
        assert self._lost is not None
        if self._is_too_far(self._lost, position):
            return False
        offset = self._offset + position
        skipped = offset - self._lost.offset
        self._searched += skipped
        outcome = f"and again from offset {offset} on ({skipped} bytes skipped)"
        self._report_loss(self._lost, outcome, skipped)
        self._lost = None
        return True

    def _is_too_far(self, lost: Lost, position: int) -> bool:
        """End a capture that unpacks to more bytes without records than are searched."""
        searched = self._searched + self._offset + position - lost.offset
        if not self.unpacked or searched <= MAX_SEARCHED_BYTES:
            return False
        self._lost = None
        self.ended = True
        self._report_loss(
            lost, f"nothing after it is, for {MAX_SEARCHED_BYTES} bytes held no record"
        )
        return True

    def _damaged(self, position: int, damage: str, octets: int, outcome: str) -> None:
        """Report damage of this size, after which the next record was found."""
        detail = f"{damage} {self._place(position)}; {outcome} ({octets} bytes skipped)"
        self._count(detail, octets)

    def _end_at(self, position: int, damage: str) -> None:
        """End the file before its end."""
        self.ended = True
        self._report_loss(Lost(damage, self._offset + position), "nothing after it is")

    def _report_loss(self, lost: Lost, outcome: str, octets: int = 0) -> None:
        location = self._place(lost.offset - self._offset)
        self._count(f"{lost.damage} {location}; everything before it was read, {outcome}", octets)

    def _count(self, detail: str, octets: int) -> None:
        """Report damage of this size, unless the file had too much of it before."""
        self._damages += 1
        if self._damages <= MAX_TOLD:
            self.report("capture-damaged", detail)
        else:
            self._untold_bytes += octets

    def _place(self, position: int) -> str:
        unpacked = " of the unpacked capture" if self.unpacked else ""
        return f"at offset {self._offset + position}{unpacked}"

    def _passed(self, rows: PacketRows, count: int, number: int) -> None:
        """Remember the last of the packets read so far, for findings to name."""
        self.packets = number
        if count:
            last_ns = rows.ts_ns[count - 1]
            self._last_ns = None if last_ns == NO_TIME else last_ns

    @abstractmethod
    def _read(self, block: bytes, rows: PacketRows, final: bool) -> tuple[int, int, int]:
        """Rows filled, bytes used, and bytes needed from there on for the next record.

        `final`: no bytes follow the block's.
        """
