"""What tshark reads from a capture is what we read: numbers, times, lengths, link types."""

import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

from amqpsniff.capture import open_capture
from amqpsniff.capture.packets import NO_TIME
from amqpsniff.errors import NotACapture
from tests.capture import build
from tests.conftest import SHARED, own_captures
from tests.thorough import some

pytestmark = [
    pytest.mark.tshark,
    pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark"),
]

# Wireshark's numbers for link types (WTAP_ENCAP_) -> LINKTYPE_.
LINK_TYPES = {1: 1, 7: 101, 15: 0, 25: 113, 129: 228, 130: 229, 184: 2, 210: 276}

FIELDS = ("frame.number", "frame.time_epoch", "frame.cap_len", "frame.len", "frame.encap_type")

# Captures that tshark reads and we do not.
NOT_READ = {"seladb__PcapPlusPlus__solaris.snoop"}

# Damaged captures that tshark 4.6 reads nothing of, and 4.0 reads up to the damage.
REFUSED = {"rshk__python-pcapng__pcapng-truncated-test006.ntar"}

Seen = tuple[int, int | None, int, int, int]


def _paths() -> list[Path]:
    formats = sorted((SHARED / "captures" / "public" / "formats").glob("*"))
    return [*formats, *some(list(own_captures().values()))]


def tshark(path: Path) -> list[Seen]:
    fields = [word for field in FIELDS for word in ("-e", field)]
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", *fields]
    # Nothing above the link layer is wanted.
    command += ["--disable-protocol", "ip,ipv6"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    rows: list[Seen] = []
    for line in run.stdout.splitlines():
        number, time, captured, original, encapsulation = line.split("\t")
        if not encapsulation:
            continue  # a custom block or journal entry: it has a number and is no packet
        ts_ns = int(Decimal(time) * 10**9) if time else None
        if ts_ns is not None and abs(ts_ns) >= 2**63:
            ts_ns = None  # a writer's mistake, past the year 2262
        link_type = LINK_TYPES[int(encapsulation)]
        rows.append((int(number), ts_ns, int(captured), int(original), link_type))
    return rows


def ours(path: Path) -> list[Seen]:
    return [
        (
            row.number,
            None if row.ts_ns == NO_TIME else row.ts_ns,
            len(row.octets),
            row.original,
            row.link_type,
        )
        for row in build.rows(open_capture(path))
    ]


@pytest.mark.parametrize("path", _paths(), ids=lambda path: path.name)
def test_captures(path: Path) -> None:
    if path.name in NOT_READ:
        with pytest.raises(NotACapture, match="editcap"):
            open_capture(path)
        return
    theirs = tshark(path)
    if not theirs and path.name in REFUSED:
        pytest.skip("this version of tshark refuses the file as a whole")
    assert ours(path) == theirs


@pytest.mark.parametrize(
    ("order", "magic"),
    [("<", build.MICROSECONDS), (">", build.NANOSECONDS), (">", build.MODIFIED)],
)
def test_pcap(order: str, magic: int, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(build.pcap(order, 20, magic=magic))
    assert ours(path) == tshark(path)


@pytest.mark.parametrize("minor", [2, 3])
def test_old_versions(minor: int, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(
        build.pcap_header(minor=minor)
        + build.pcap_record("<", 1, 2, b"0123456789", 10)
        + b"\1\0\0\0\2\0\0\0\x14\0\0\0\x0a\0\0\0"
        + b"0123456789"
    )
    assert ours(path) == tshark(path)


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng(order: str, tmp_path: Path) -> None:
    """Sections of both byte orders, custom blocks, offsets, times before 1970."""
    path = tmp_path / "capture"
    path.write_bytes(build.pcapng(order))
    assert ours(path) == tshark(path)


def test_time_units(tmp_path: Path) -> None:
    """Units that tshark computes without overflow: up to nanoseconds, and 2^-30 seconds."""
    path = tmp_path / "capture"
    octets = b""
    for value in (0, 3, 6, 9, 0x80, 0x80 + 10, 0x80 + 20, 0x80 + 30):
        octets += build.section() + build.interface("<", (9, bytes([value])))
        for count in (0, 1, 1_700_000_000, 5_123_456_789):
            octets += build.enhanced("<", count, b"x" * 60)
    path.write_bytes(octets)
    assert ours(path) == tshark(path)


def test_where_tshark_is_known_to_differ(tmp_path: Path) -> None:
    """Zeros after a crash: to tshark, packets of no bytes in 1970. To us, the end of the file."""
    path = tmp_path / "capture"
    path.write_bytes(build.pcap("<", 2) + bytes(64))
    assert len(tshark(path)) == 6
    assert ours(path) == tshark(path)[:2]
