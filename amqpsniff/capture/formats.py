"""Formats of files, identified by their first bytes: supported captures, and others by name.

Names and suffixes are ignored: rotated and compressed captures may have any.
"""

from __future__ import annotations

from pathlib import Path

from amqpsniff.errors import CaptureError, NotACapture

# Bytes that are enough to tell what can be read, and to describe what cannot.
MAGIC_BYTES = 12
DESCRIBED_BYTES = 512

PCAP, PCAPNG, GZIP, ZSTD = "pcap", "pcapng", "gzip", "zstd"

# Magic number of a pcap file -> nanoseconds in a unit of the fraction, bytes of a record header.
PCAP_MAGIC_NUMBERS = {
    0xA1B2C3D4: (1000, 16),
    0xA1B23C4D: (1, 16),
    0xA1B2CD34: (1000, 24),
}
PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
# After the magic number, which reads the same in both byte orders, and a length.
PCAPNG_BYTE_ORDER_MAGIC = 0x1A2B3C4D
GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# A skippable frame may come first: sixteen magic numbers from 0x184D2A50, little-endian.
ZSTD_SKIPPABLE_END = b"\x2a\x4d\x18"

_EDITCAP = 'convert it with "editcap -F pcapng FILE OUT"'
_TSHARK = 'extract packets with "tshark -r FILE -w OUT" if Wireshark reads it'
_UNPACK = "unpack it first"
NOTHING = "give a pcap or pcapng file"

MANIFEST = "_manifest.json"
"""The file by which a folder is one of tables that a batch has written."""

# First bytes -> name of the format, and remedy.
_OTHERS = (
    (b"snoop\x00\x00\x00", "a snoop capture", _EDITCAP),
    (b"GMBU", "a Microsoft Network Monitor 2 capture", _EDITCAP),
    (b"RTSS", "a Microsoft Network Monitor 1 capture", _EDITCAP),
    (b"XCP\x00", "a NetXRay or Windows Sniffer capture", _EDITCAP),
    (b"TRSNIFF data", "a Sniffer capture", _EDITCAP),
    (b"btsnoop\x00", "a Bluetooth btsnoop capture", _EDITCAP),
    (b"\x1c\x00\x01\xac", "an IxVeriWave pcap variant", _EDITCAP),
    (b"\x1c\x00\x01\xab", "an IxVeriWave pcap variant", _EDITCAP),
    (b"+---------+---------------+----------+", "a K12 text capture", _EDITCAP),
    (b"\xaa\xaa\xaa\xaa", "a 5View capture", _EDITCAP),
    (b"\x01\x10\x4c\x00\x01\x05", "a Novell LANalyzer capture", _EDITCAP),
    (b"TR\x00\x64\x00", "an HP-UX nettl trace", _EDITCAP),
    (b"iptrace ", "an AIX iptrace capture", _EDITCAP),
    (b"ObserverPktBuffe", "a Viavi Observer capture", _EDITCAP),
    (b"\x04\x22\x4d\x18", "an lz4 archive", _UNPACK),
    (b"\xfd7zXZ\x00", "an xz archive", _UNPACK),
    (b"BZh", "a bzip2 archive", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (b"PK\x03\x04", "a zip archive", _UNPACK),
    (b"\x7fELF", "an ELF program", NOTHING),
    (b"MZ", "a Windows program", NOTHING),
    (b"%PDF", "a PDF document", NOTHING),
    (b"PAR1", "a Parquet file", NOTHING),
    (b"SQLite format 3\x00", "an SQLite database", NOTHING),
    (b"\x89PNG", "a PNG image", NOTHING),
    (b"\xff\xd8\xff", "a JPEG image", NOTHING),
    (b"GIF8", "a GIF image", NOTHING),
)
_TAR_MAGIC_AT = 257
"""Offset of a tar archive's magic number: its first entry's name comes before."""

_TEXT_ADVICE = 'give a pcap or pcapng file ("text2pcap" turns hex dumps into one)'


LINK_TYPES = frozenset(
    (0, 1, 9, 12, 14, 50, 51, 101, 104, 108, 113, 166, 204, 219, 228, 229, 239, 258, 276)
)
"""LINKTYPE_ values whose packets are read here; the others are tshark's."""


def is_wiresharks(octets: bytes) -> bool:
    """True if a file begins as a format that is not read here and that Wireshark reads."""
    return _match(octets)[1] == _EDITCAP


def may_be_wiresharks(octets: bytes) -> bool:
    """True if Wireshark may read a file that is not read here: no other known format begins so."""
    advice = _match(octets)[1]
    return any(octets) and advice in ("", _EDITCAP)


def is_packed_capture(path: str) -> bool:
    """True if a file is called a capture and is an archive, or compressed, and so not read."""
    return "cap" in Path(path).name.lower() and _match(head(path))[1] == _UNPACK


def _match(octets: bytes) -> tuple[str, str]:
    """Name and remedy for a file that begins like one of `_OTHERS`; empty for any other."""
    if octets.startswith(b"ustar", _TAR_MAGIC_AT):
        return "a tar archive", _UNPACK
    return next(
        (format_row[1:] for format_row in _OTHERS if octets.startswith(format_row[0])), ("", "")
    )


def head(name: str) -> bytes:
    """The first bytes of a file, enough to describe it; empty if it cannot be read."""
    try:
        with Path(name).open("rb") as file:
            return file.read(DESCRIBED_BYTES)
    except OSError:
        return b""


def recognise(octets: bytes) -> str:
    """`pcap`, `pcapng`, `gzip` or `zstd` by the first twelve bytes; "" for anything else."""
    if octets[:4] == PCAPNG_MAGIC and (len(octets) < 12 or pcapng_byte_order(octets)):
        return PCAPNG
    if octets[:2] == GZIP_MAGIC:
        return GZIP
    if octets[:4] == ZSTD_MAGIC or (octets[1:4] == ZSTD_SKIPPABLE_END and octets[0] >> 4 == 5):
        return ZSTD
    return PCAP if pcap_byte_order(octets) else ""


def pcap_byte_order(octets: bytes) -> str:
    """`little` or `big` when the bytes begin with the magic number of a pcap file, else ""."""
    for order in ("little", "big"):
        if number(octets[:4], order) in PCAP_MAGIC_NUMBERS:
            return order
    return ""


def pcapng_byte_order(octets: bytes) -> str:
    """`little` or `big` by the first twelve bytes of a pcapng section, else ""."""
    for order in ("little", "big"):
        if number(octets[8:12], order) == PCAPNG_BYTE_ORDER_MAGIC:
            return order
    return ""


def describe(octets: bytes) -> tuple[str, str]:
    """The kind of a file that is not read, by its first bytes, and what to do about it."""
    if not octets:
        return "it is empty", NOTHING
    name, advice = _match(octets)
    if name:
        return f"it is {name}", advice
    if not any(octets):
        return "it begins with zeros", NOTHING
    text = _text(octets)
    if text:
        return f"it is {text}", _TEXT_ADVICE
    if len(octets) < 4:
        return f"it has only {len(octets)} bytes", NOTHING
    return f"it begins with {octets[:8].hex(' ')}", _TSHARK


def _text(octets: bytes) -> str:
    try:
        text = octets.decode("utf-8")
    except UnicodeDecodeError as error:
        # A character may be cut where the bytes end.
        if error.start < len(octets) - 3 or error.start == 0:
            return ""
        text = octets[: error.start].decode("utf-8")
    if any(character < " " and character not in "\t\n\r\f\x1b" for character in text):
        return ""
    return "ASCII text" if text.isascii() else "UTF-8 text"


def shown(name: str) -> str:
    """A name that is safe in one line of a message, and visible there."""
    return name if name.isprintable() and name.strip() else repr(name)


def is_remote(name: str) -> bool:
    """True if a name is a URI and not a path on this machine."""
    return "://" in name


def missing(name: str) -> CaptureError:
    """The error for a name that does not exist."""
    if is_remote(name):
        return CaptureError(
            f"{shown(name)}: only `amqpsniff batch` reads URIs; download it and give the file"
        )
    return CaptureError(f"{shown(name)}: no such file or directory")


def number(octets: bytes, order: str, *, signed: bool = False) -> int:
    """An integer in a byte order, `little` or `big`."""
    return int.from_bytes(octets, "big" if order == "big" else "little", signed=signed)


def no_capture(capture: str, head: bytes, position: str = "") -> NotACapture:
    """The error for a file whose bytes, which begin with `head`, are no capture."""
    description, advice = describe(head[:DESCRIBED_BYTES])
    error = NotACapture(f"{shown(capture)}: not a capture: {position}{description}; {advice}")
    error.what = f"{position}{description}"
    return error


def inside(compression: str) -> str:
    """A prefix for a description: the compression that the bytes were in."""
    return f"inside its {compression} compression "
