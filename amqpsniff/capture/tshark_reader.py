"""A capture read through tshark: formats, link types and tunnels that are not read here.

For a format tshark writes the packets as pcapng into a pipe, which is read like any other; where
their link type is not one of ours, or tshark's reading is requested, it writes the TCP segments it
finds instead. Numbers are those of the file either way.

Of segments tshark writes a line of fields a packet (`FIELDS`), the last occurrence of each, which
in a tunnel is that of the innermost packet; which of IPv4 and IPv6 that is, the packet's protocols
say in their order. Each becomes an IP packet with a TCP header of its own and the payload, under
the number and time of the packet it was in; a packet without TCP becomes one without bytes. Not
carried over: IP options, TCP options, checksums.
"""

from __future__ import annotations

import os
import struct
import weakref
from array import array
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from ipaddress import ip_address
from subprocess import DEVNULL

from amqpsniff.capture.file import BLOCK_BYTES, STANDARD_INPUT, CaptureFile, is_regular
from amqpsniff.capture.formats import LINK_TYPES, NOTHING, head, is_wiresharks, shown
from amqpsniff.capture.packets import NO_TIME, PacketBatch
from amqpsniff.capture.poll import readable
from amqpsniff.capture.tshark import SILENCE_S, Run, Tshark, find
from amqpsniff.errors import CaptureError, NotACapture, TsharkError
from amqpsniff.findings import Finding
from amqpsniff.link_types import LINK_RAW

PATIENCE_S = 1e9
"""Seconds that a stream may be silent: for as long as it likes."""

NOT_READ = "isn't a capture file in a format"
"""tshark's message for a file of an unknown format."""

FIELDS = (
    "frame.number", "frame.time_epoch", "frame.protocols", "ip.src", "ip.dst", "ipv6.src",
    "ipv6.dst", "tcp.srcport", "tcp.dstport", "tcp.seq", "tcp.ack", "tcp.flags",
    "tcp.window_size_value", "tcp.len", "tcp.payload",
)  # fmt: skip

ARGUMENTS = (
    "-o", "tcp.relative_sequence_numbers:FALSE",
    "-o", "tcp.analyze_sequence_numbers:FALSE",
    "-o", "tcp.desegment_tcp_streams:FALSE",
    "--disable-protocol", "amqp",
    "--disable-protocol", "tls",
    "-n", "-T", "fields", "-E", "occurrence=l", "-E", "separator=/t",
    *(word for name in FIELDS for word in ("-e", name)),
)  # fmt: skip
"""Arguments of tshark."""

MAX_LINE_BYTES = 1 << 20
"""A packet has at most 256 KiB, twice as long in hexadecimal."""

_IPV4 = struct.Struct(">BBHHHBBH4s4s")
_IPV6 = struct.Struct(">IHBB16s16s")
_TCP = struct.Struct(">HHIIBBHHH")
_NS = 1_000_000_000
_NS_DIGITS = 9


def found_tshark() -> Tshark:
    """The installed tshark, whose version is checked once; raises TsharkError."""
    return _found(os.environ.get("PATH", ""))


@cache
def _found(_: str) -> Tshark:
    return find()


def _is_known(name: str) -> bool:
    """True if a file is a capture by its first bytes, not only because tshark shows it.

    tshark shows MP3, MPEG, images, JSON and what merely looks like a trace as packets too.
    """
    if is_wiresharks(head(name)):
        return True
    try:
        CaptureFile(name).close()
    except CaptureError:
        return False
    return True


def _refused(error: TsharkError) -> str:
    """Words for tshark's refusal of a file, with its reason if it gives one."""
    return "does not read it" + ("" if NOT_READ in str(error) else f" ({error})")


class _Pipe:
    """The pcapng that tshark makes of a capture, as a source of bytes."""

    regular = False

    def __init__(self, run: Run) -> None:
        self._run = run
        self.position = 0

    def read(self, octets: int) -> bytes:
        """The available bytes; waits for the first."""
        data = self._run.read(octets)
        self.position += len(data)
        return data

    def back(self, octets: int) -> None:
        """A pipe does not go back; never called if the source is not regular."""

    def at_rest(self) -> bool:
        """tshark is always about to give more."""
        return False

    def park(self) -> None:
        """A pipe is not opened again."""

    def close(self) -> None:
        """The run is ended by its owner."""


class TsharkCapture:
    """A `CaptureFile` that tshark reads.

    `why` is the reason in words. With `segments` it looks for TCP by itself from the beginning.
    Raises TsharkError without a tshark that can be used, NotACapture when that cannot read it.
    """

    compression = None

    def __init__(
        self,
        name: str,
        why: str,
        *,
        block_bytes: int = BLOCK_BYTES,
        segments: bool = False,
        silence_s: float = SILENCE_S,
    ) -> None:
        self.capture = name
        self.why = why
        self.silence_s = silence_s
        self.block_bytes = block_bytes
        try:
            self.tshark = found_tshark()
        except TsharkError as error:
            raise TsharkError(f"{shown(name)}: {error}") from None
        self.regular = is_regular(name)
        self.format = "tshark"
        self.findings: list[Finding] = []
        self.secrets: list[tuple[int, bytes]] = []
        self.comments: list[str] = []
        self.link_types: list[int] = []
        self._file: CaptureFile | None = None
        self._first: PacketBatch | None = None
        self._rows: Iterator[PacketBatch] = iter(())
        self._run: Run | None = None
        self._segments = Segments(name)
        self._closed = False
        if self.regular and not _is_known(name):
            self._expect_tcp()
        if segments or not self._convert():
            self._read_segments()
        detail = f"{self.why}; read through tshark {self.tshark.version_text}"
        self.findings.append(Finding("capture-through-tshark", detail, name))

    def _start(self, options: tuple[str, ...]) -> Run:
        """Start a tshark on the capture in place of the running one, if any."""
        if self._run is not None:
            self._run.close()
        stream = not self.regular
        buffering = ("-l",) if stream else ()
        run = Run(
            self.tshark,
            ["-r", self.capture, *options, *buffering],
            stdin=0 if self.capture == STANDARD_INPUT else DEVNULL,
            silence_s=PATIENCE_S if stream else self.silence_s,
        )
        weakref.finalize(self, run.close)
        self._run = run
        return run

    def _convert(self) -> bool:
        """Have the packets written as pcapng; whether that can be done and is of use."""
        run = self._start(("-F", "pcapng", "-w", "-"))
        try:
            file = CaptureFile(self.capture, block_bytes=self.block_bytes, source=_Pipe(run))
            self._first = next(file, None)
        except CaptureError:  # pcapng cannot hold it, or it is no capture
            return False
        if self._first is None or not LINK_TYPES & set(file.link_types):
            self._first = None
            return False
        self._file = file
        self.secrets, self.comments = file.secrets, file.comments
        self.link_types = file.link_types
        return True

    def _read_segments(self) -> None:
        """Have tshark look for TCP."""
        run = self._start(ARGUMENTS)
        self.link_types = [LINK_RAW]
        if self.regular:
            self._read_secrets()
        self._rows = self._batches(run)
        self._first = next(self._rows, None)

    def _expect_tcp(self) -> None:
        """Raise NotACapture if tshark finds no TCP in a file that only it takes for a capture."""
        run, segments = self._start(ARGUMENTS), Segments(self.capture)
        try:
            while octets := run.read(self.block_bytes):
                batch = segments.feed(octets)
                if batch is not None and any(batch.captured):
                    return
        except TsharkError as error:
            raise self._no_capture(_refused(error)) from None
        raise self._no_capture("finds no TCP in it")

    def _no_capture(self, trouble: str) -> NotACapture:
        return NotACapture(
            f"{shown(self.capture)}: not a capture: {self.why}, and tshark "
            f"{self.tshark.version_text} {trouble}; {NOTHING}"
        )

    def _read_secrets(self) -> None:
        """Read the data of a pcapng besides packets, which tshark does not write with segments."""
        # a format that only tshark reads has none
        with suppress(CaptureError), CaptureFile(self.capture) as file:
            if file.format == "pcapng":
                for _ in file:
                    pass
                self.secrets, self.comments = file.secrets, file.comments

    def _batches(self, run: Run) -> Iterator[PacketBatch]:
        while octets := self._read(run):
            batch = self._segments.feed(octets)
            if batch is not None:
                yield batch
        self._end(run)

    def _read(self, run: Run) -> bytes:
        try:
            return run.read(self.block_bytes)
        except TsharkError as error:
            self._fail(error)
            return b""

    def _fail(self, error: TsharkError) -> None:
        """tshark failed: the packets it gave are used, if it gave any."""
        if not self.packets:
            raise self._no_capture(_refused(error)) from None
        self.findings.append(Finding("capture-damaged", str(error), self.capture, self.packets))

    def _end(self, run: Run) -> None:
        """tshark has ended."""
        if run.cut_short:
            detail = "the file ends inside a packet, says tshark; everything before it was read"
            self.findings.append(
                Finding("capture-truncated", detail, self.capture, self.packets or None)
            )
        run.close()

    def at_rest(self) -> bool:
        """True if standard input, which tshark reads, has no more for now."""
        return self.capture == STANDARD_INPUT and not readable(0)

    @property
    def packets(self) -> int:
        """Number of the last packet read, 0 before the first."""
        return self._segments.packets if self._file is None else self._file.packets

    def __iter__(self) -> Iterator[PacketBatch]:
        return self

    def __next__(self) -> PacketBatch:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        if self._closed:
            raise StopIteration
        if self._file is None:
            return next(self._rows)
        self._file.block_bytes = self.block_bytes
        try:
            batch = next(self._file, None)
        except TsharkError as error:
            self._fail(error)
            batch = None
        if batch is None:
            self._closed = True
            self.findings += self._file.findings
            if self._run is not None:
                self._end(self._run)
            raise StopIteration
        return batch

    def __enter__(self) -> TsharkCapture:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End tshark; nothing is read after this."""
        self._closed = True
        self._first = None
        if self._run is not None:
            self._run.close()

    def park(self) -> None:
        """A pipe stays open."""


class Segments:
    """Turns the lines of tshark into batches of packets; `packets` is the last number so far."""

    def __init__(self, capture: str) -> None:
        self.capture = capture
        self.packets = 0
        self._partial_line = b""

    def feed(self, octets: bytes) -> PacketBatch | None:
        """The packets of the lines that these bytes complete, or None."""
        *lines, self._partial_line = (self._partial_line + octets).split(b"\n")
        if len(self._partial_line) > MAX_LINE_BYTES:
            self._partial_line = b""
        columns = [array("q") for _ in range(6)]
        pieces: list[bytes] = []
        at = 0
        for line in lines:
            fields = line.decode("ascii", "replace").split("\t")
            if len(fields) != len(FIELDS) or not fields[0].isdigit():
                continue
            self.packets = int(fields[0])
            packet, missing = _packet(fields)
            row = (self.packets, _time(fields[1]), at, len(packet), len(packet) + missing, LINK_RAW)
            for column, value in zip(columns, row, strict=True):
                column.append(value)
            pieces.append(packet)
            at += len(packet)
        if not pieces:
            return None
        return PacketBatch(self.capture, b"".join(pieces), 0, len(pieces), *columns)


def _time(text: str) -> int:
    """Nanoseconds of seconds with a fraction; `NO_TIME` without one, or past 64 bits."""
    seconds, _, fraction = text.partition(".")
    try:
        whole_ns = int(seconds) * _NS
        part = int(fraction[:_NS_DIGITS].ljust(_NS_DIGITS, "0"))
    except ValueError:
        return NO_TIME
    moment = whole_ns - part if seconds.startswith("-") else whole_ns + part
    return moment if NO_TIME < moment < -NO_TIME else NO_TIME


def _packet(fields: list[str]) -> tuple[bytes, int]:
    """An IP packet of the fields of a line, and how many bytes of it were not captured."""
    _, _, protocols, source, target, source6, target6, *tcp, hexed = fields
    four = [source_port for source_port in protocols.split(":") if source_port in ("ip", "ipv6")][
        -1:
    ] == ["ip"]
    try:
        ports_and_more = [int(field, 0) for field in tcp]
        payload = bytes.fromhex(hexed.replace(":", ""))
        ends = [
            ip_address(source_port).packed
            for source_port in ((source, target) if four else (source6, target6))
        ]
    except ValueError:
        return b"", 0
    source_port, target_port, seq, ack, flags, window, length = ports_and_more
    header = _TCP.pack(
        source_port, target_port, seq, ack, 0x50, flags & 0xFF, min(window, 0xFFFF), 0, 0
    )
    size = len(header) + max(length, len(payload))
    if four:
        ip = _IPV4.pack(0x45, 0, min(20 + size, 0xFFFF), 0, 0, 64, 6, 0, *ends)
    else:
        ip = _IPV6.pack(0x60000000, min(size, 0xFFFF), 6, 64, *ends)
    return ip + header + payload, max(0, length - len(payload))
