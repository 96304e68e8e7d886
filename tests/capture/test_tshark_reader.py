"""Captures that only tshark can read give the rows of the same packets in a format of ours."""

from __future__ import annotations

import gc
import gzip
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.capture.formats import LINK_TYPES
from amqpsniff.capture.open import AUTO, OWN, TSHARK, opened
from amqpsniff.capture.packets import NO_TIME
from amqpsniff.capture.tshark_reader import Segments, TsharkCapture, found_tshark
from amqpsniff.errors import NotACapture, TsharkError, UsageError
from amqpsniff.tcp import Reassembler
from tests.capture import build
from tests.conftest import SAMPLES
from tests.processes import children
from tests.tcp.wire import Packet, batch, tcp
from tests.thorough import some
from tests.waiting import PATIENCE

inet = pytest.importorskip("scapy.layers.inet", reason="scapy is not installed")
inet6 = pytest.importorskip("scapy.layers.inet6", reason="scapy is not installed")

BLOCK = 1 << 16
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark")

SAMPLE = SAMPLES / "bunny.pcapng"
PLAIN = SAMPLES / "kombu.pcap.gz"


def rows(path: Path, **options: Any) -> list[dict[str, Any]]:
    found = amqpsniff.open(path, **options).table("frames").to_pylist()
    return [{name: value for name, value in row.items() if name != "capture"} for row in found]


def converted(form: str, source: Path, folder: Path) -> Path:
    path = folder / f"x.{form}"
    command = ["editcap", "-F", form, str(source), str(path)]
    subprocess.run(command, check=True, timeout=PATIENCE, capture_output=True)
    return path


@needs_tshark
@pytest.mark.tshark
@pytest.mark.parametrize("form", ["k12text", *some(["snoop", "netmon2", "5views", "nettl"])])
def test_formats(form: str, tmp_path: Path) -> None:
    path = converted(form, SAMPLE, tmp_path)
    with pytest.raises(NotACapture):
        rows(path, reader=OWN)
    ours, theirs = rows(SAMPLE), rows(path)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        names = ("packet_number", "client", "stream_offset", "method", "arguments")
        assert [one[name] for name in names] == [other[name] for name in names]
        if form != "k12text":
            assert one["ts_ns"] == other["ts_ns"]
    capture = amqpsniff.open(path)
    capture.table("frames")
    (said,) = (one for one in capture.passes.found if one.code == "capture-through-tshark")
    assert "; read through tshark" in said.detail


@needs_tshark
@pytest.mark.tshark
@pytest.mark.parametrize("source", [SAMPLE, SAMPLES / "midstream.pcap", SAMPLES / "snapped.pcap"])
def test_asked_for(source: Path) -> None:
    """Numbers, times and rows are those of our own reader, cut packets included."""
    assert rows(source, reader=TSHARK) == rows(source)


@needs_tshark
@pytest.mark.tshark
def test_secrets_inside_are_found(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    source = SAMPLES / "tls12.pcapng"
    assert rows(source, reader=TSHARK) == rows(source)
    assert rows(source)


@needs_tshark
@pytest.mark.tshark
@pytest.mark.parametrize("form", some(["nokiapcap", "rh6_1pcap", "suse6_3pcap"]))
def test_kinds_of_pcap_with_other_records(form: str, tmp_path: Path) -> None:
    path = converted(form, SAMPLE, tmp_path)
    assert rows(path, reader=OWN) == []
    assert rows(path) == rows(SAMPLE) != []


@needs_tshark
@pytest.mark.tshark
@pytest.mark.parametrize("octets", some([120, 30, 60, 2000]))
def test_a_pcap_that_is_cut_is_not_given_to_tshark(octets: int, tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes((SAMPLES / "pika_mix.pcap").read_bytes()[:octets])
    capture = amqpsniff.open(path)
    capture.table("frames")
    assert [one.code for one in capture.passes.found if one.code.startswith("capture-")] == [
        "capture-truncated"
    ]


@needs_tshark
@pytest.mark.tshark
def test_compressed_formats(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(converted("snoop", SAMPLE, tmp_path).read_bytes()))
    assert rows(path) == rows(SAMPLE)
    capture = amqpsniff.open(path)
    capture.table("frames")
    (said,) = (one for one in capture.passes.found if one.code == "capture-through-tshark")
    assert said.detail.startswith("inside its gzip compression it is a snoop capture; ")


def wireless(octets: bytes) -> bytes:
    """An IP packet in a data frame of IEEE 802.11."""
    return b"\x08\0\0\0" + bytes(18) + b"\0\0" + b"\xaa\xaa\3\0\0\0\x08\0" + octets


def tunnelled(octets: bytes) -> bytes:
    """An IP packet in GTP-U, in UDP, in IP."""
    inner = b"\x30\xff" + len(octets).to_bytes(2, "big") + bytes(4) + octets
    udp = b"\x08\x68\x08\x68" + (8 + len(inner)).to_bytes(2, "big") + b"\0\0" + inner
    length = (20 + len(udp)).to_bytes(2, "big")
    return (
        b"\x45\0" + length + bytes(4) + b"\x40\x11\0\0" + bytes((192, 0, 2, 1, 192, 0, 2, 2)) + udp
    )


@needs_tshark
@pytest.mark.tshark
def test_rare_links_and_tunnels(tmp_path: Path) -> None:
    plain = [
        tcp(1000, b"AMQP\0\0\x09\x01", flags=24),
        tcp(1008, b"\x08\0\0\0\0\0\0\xce", flags=24),
    ]
    header = build.pcap_header(link=228)
    clear = tmp_path / "clear.pcap"
    clear.write_bytes(header + b"".join(build.pcap_record("<", 5, 6, one) for one in plain))
    link = tmp_path / "wireless.pcap"
    packets = b"".join(build.pcap_record("<", 5, 6, wireless(one)) for one in plain)
    link.write_bytes(build.pcap_header(link=105) + packets)
    assert rows(link, reader=OWN) == []
    assert rows(link) == rows(clear) != []
    tunnel = tmp_path / "tunnel.pcap"
    packets = b"".join(build.pcap_record("<", 5, 6, tunnelled(one)) for one in plain)
    tunnel.write_bytes(build.pcap_header(link=228) + packets)
    assert rows(tunnel, reader=TSHARK) == rows(clear)


TUNNELS = {
    "IPv6 in IPv4": (4, 41, 6),
    "IPv4 in IPv6": (6, 4, 4),
    "IPv4 in IPv4": (4, 4, 4),
    "IPv6 in IPv6": (6, 41, 6),
    "Teredo": (4, 17, 6),
    "an ICMP message": (4, 1, 4),
    "an ICMPv6 message": (6, 58, 6),
}
"""The version of the outer packet, the protocol in it, and the version of the inner packet."""


@needs_tshark
@pytest.mark.tshark
def test_addresses_are_those_of_the_innermost_packet(tmp_path: Path) -> None:
    """Whichever version of IP is in which; a segment that ICMP complains of is none."""
    capture, wanted = build.pcap_header(link=101), []
    for port, (outer, protocol, inner) in enumerate(TUNNELS.values(), 40_000):
        segment = inet.TCP(sport=port, dport=5672, flags="PA") / b"AMQP\0\0\x09\x01"
        octets = bytes(_ip(inner) / segment)
        before: Any = {
            17: inet.UDP(sport=3544, dport=3544), 1: inet.ICMP(type=3, code=4),
            58: inet6.ICMPv6PacketTooBig(),
        }.get(protocol)  # fmt: skip
        layers = _ip(outer, outside=True, protocol=protocol)
        packet = bytes(layers / octets if before is None else layers / before / octets)
        capture += build.pcap_record("<", port, 6, packet)
        if protocol not in (1, 58):
            wanted.append(f"10.1.1.1:{port}" if inner == 4 else f"[fd00::1]:{port}")
    path = tmp_path / "tunnels.pcap"
    path.write_bytes(capture)
    assert [row["client"] for row in rows(path, reader=TSHARK)] == wanted
    fields = ("-T", "fields", "-e", "_ws.col.Source", "-e", "_ws.col.Destination")
    told = subprocess.check_output(
        ("tshark", "-r", path, "-n", "-Y", "tcp && !icmp && !icmpv6", *fields), text=True
    )
    assert told.splitlines() == [
        "10.1.1.1\t10.1.1.2" if name[0] == "1" else "fd00::1\tfd00::2" for name in wanted
    ]


def _ip(version: int, *, outside: bool = False, protocol: int = 6) -> Any:
    if version == 4:
        net = "192.168.0" if outside else "10.1.1"
        return inet.IP(src=f"{net}.1", dst=f"{net}.2", proto=protocol)
    net = "fc00" if outside else "fd00"
    return inet6.IPv6(src=f"{net}::1", dst=f"{net}::2", nh=protocol)


PKTAP = b"l\0\0\0\1\0\0\0\x0c" + bytes(99)


def test_link_types_are_those_that_tcp_reads() -> None:
    """A link type is ours when one of the ways of writing a packet on it leads to its IP header."""
    packet = tcp(1000, b"AMQP\0\0\x09\x01")
    before = (
        b"", b"\2\0\0\0", b"\0\0\0\2", bytes(12) + b"\x08\0", bytes(14) + b"\x08\0",
        b"\x08\0" + bytes(18), b"\x0f\0\x08\0", b"\x11\0\0\0\0\0\0\x21", b"\xff\3\0\x21",
        b"\0\xff\3\0\x21", b"\0\0\1\x40", b"\2\0\0\0\x34\0\x09\0", PKTAP,
    )  # fmt: skip
    found = set()
    for link in range(300):
        for head in (*before, bytes(40)):
            octets = head + (
                packet if head != bytes(40) else b"\x60" + bytes(5) + b"\6" + bytes(60)
            )
            stage = Reassembler()
            stage.feed(batch([Packet(octets, link_type=link)]))
            if stage.counters["segments"]:
                found.add(link)
    assert found | {229} == LINK_TYPES


def fake(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tshark that is a shell script, in a folder of its own, first on the path."""
    path = folder / name / "tshark"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")


VERSION = '[ "$1" = --version ] && { echo "TShark (Wireshark) 4.0.17."; exit; }'


def test_missing_or_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyshark")
    snoop = tmp_path / "x.snoop"
    snoop.write_bytes(b"snoop\0\0\0\0\0\0\2\0\0\0\4" + bytes(40))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotACapture, match=r"a snoop capture; .*tshark is not installed"):
        amqpsniff.open(snoop).table("frames")
    with pytest.raises(TsharkError, match="tshark is not installed"):
        amqpsniff.open(SAMPLE, reader=TSHARK).table("frames")
    assert rows(SAMPLE)
    fake(tmp_path, "old", 'echo "TShark (Wireshark) 1.2.3"', monkeypatch)
    with pytest.raises(TsharkError, match=r"tshark 1\.2\.3 at .* is too old"):
        amqpsniff.open(SAMPLE, reader=TSHARK).table("frames")
    fake(tmp_path, "other", "echo hello", monkeypatch)
    with pytest.raises(TsharkError, match="is not tshark"):
        amqpsniff.open(SAMPLE, reader=TSHARK).table("frames")
    with pytest.raises(UsageError, match="no reader `other`"):
        amqpsniff.open(SAMPLE, reader="other")


@needs_tshark
@pytest.mark.tshark
def test_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.snoop"
    path.write_bytes(b"snoop\0\0\0 and then nothing of the kind" + bytes(40))
    with pytest.raises(NotACapture, match=r"a snoop capture, and tshark \S+ does not read it"):
        amqpsniff.open(path).table("frames")
    text = tmp_path / "notes.txt"
    text.write_text("not a capture\n" * 10)
    with pytest.raises(NotACapture, match=r"it is ASCII text, and tshark .* does not read it"):
        amqpsniff.open(text).table("frames")


MP3 = (b"\xff\xfb\x90\0" + bytes(413)) * 5
"""Frames of 128 kbit/s, as long as their headers say."""


@needs_tshark
@pytest.mark.tshark
@pytest.mark.parametrize(
    ("octets", "what"),
    [
        (MP3, "ff fb 90 00"),
        (b"ID3\3\0\0\0\0\0\x0a" + bytes(10) + MP3, "49 44 33 03"),
        ((b"\x47\x40\x11\x10" + bytes(184)) * 40, "47 40 11 10"),
        (b"MThd\0\0\0\6\0\0\0\1\0\x60MTrk\0\0\0\4\0\xff\x2f\0", "4d 54 68 64"),
        (gzip.compress(MP3), "inside its gzip compression it begins with ff fb"),
        (b'{"a":1}\n', "ASCII text"),
        (b'<?xml version="1.0"?><a/>', "ASCII text"),
        (b"0000  41 4d 51 50 00 00 09 01\n", "ASCII text"),
        (b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "ASCII text"),
        (b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", "a GIF image"),
        (bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffd9"), "a JPEG image"),
        (b"\xd4\xc3", "2 bytes"),
        (gzip.compress(b"[1]"), "inside its gzip compression it is ASCII text"),
    ],
    ids="mp3 id3 mpeg-ts midi mp3.gz json xml dump pem gif jpeg short gzip".split(),
)
def test_a_file_as_packets(octets: bytes, what: str, tmp_path: Path) -> None:
    """Such files tshark shows as a packet each, or as many; they are no captures for that."""
    path = tmp_path / "x"
    path.write_bytes(octets)
    with pytest.raises(NotACapture, match=f"not a capture: .*{what}"):
        amqpsniff.open(path).table("frames")
    with pytest.raises(NotACapture, match="no TCP in it; give a pcap or pcapng file"):
        amqpsniff.open(path, reader=TSHARK).table("frames")


@needs_tshark
@pytest.mark.tshark
def test_a_capture_of_one_packet(tmp_path: Path) -> None:
    """One packet, even without a time, is a capture when it is in one."""
    path = tmp_path / "one.pcapng"
    path.write_bytes(build.section() + build.interface() + build.simple("<", bytes(60)))
    assert rows(path, reader=TSHARK) == []


@needs_tshark
@pytest.mark.tshark
def test_cut_short(tmp_path: Path) -> None:
    """What was before the cut is read, and tshark's words are a finding."""
    path = converted("snoop", SAMPLE, tmp_path)
    path.write_bytes(path.read_bytes()[:9000])
    capture = amqpsniff.open(path)
    assert capture.table("frames").num_rows
    assert "capture-truncated" in {one.code for one in capture.passes.found}


@needs_tshark
@pytest.mark.tshark
def test_folders(tmp_path: Path) -> None:
    """Known formats in a folder are read through tshark, other files are passed over."""
    converted("snoop", SAMPLE, tmp_path)
    (tmp_path / "notes.txt").write_text("nothing")
    capture = amqpsniff.open(tmp_path)
    assert [Path(name).name for name in capture.names] == ["x.snoop"]
    shutil.copy(SAMPLES / "node.pcap", tmp_path)
    both = amqpsniff.open(tmp_path)
    expected = len(rows(SAMPLE)) + len(rows(SAMPLES / "node.pcap"))
    assert both.table("frames").num_rows == expected


def test_nothing_hangs_and_children_are_reaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyshark")
    before = children(os.getpid())
    fake(tmp_path, "stuck", f'{VERSION}\ntrap "" TERM\nwhile :; do sleep 9; done', monkeypatch)
    with pytest.raises(NotACapture, match="said and did nothing"):
        TsharkCapture(str(SAMPLE), "wanted", silence_s=0.2)
    assert children(os.getpid()) == before


@needs_tshark
@pytest.mark.tshark
def test_a_pass_that_is_let_go_ends_its_child(tmp_path: Path) -> None:
    path = str(converted("snoop", SAMPLES / "node.pcap", tmp_path))
    before = children(os.getpid())
    file = opened(path, 4096, AUTO)
    next(file)
    assert children(os.getpid()) != before
    file.close()
    assert children(os.getpid()) == before
    assert next(file, None) is None
    dropped = opened(path, 4096, AUTO)
    assert children(os.getpid()) != before
    del dropped
    gc.collect()
    assert children(os.getpid()) == before


@needs_tshark
@pytest.mark.tshark
def test_it_is_asked_once() -> None:
    assert found_tshark() is found_tshark()


def test_times_that_64_bits_do_not_hold() -> None:
    """They are none, as where we read the capture ourselves."""
    segments = Segments("x")
    packet = b"raw:ip:tcp\t10.0.0.1\t10.0.0.2\t\t\t1\t5672\t1\t1\t16\t9\t0\t\n"
    batch = segments.feed(b"1\t18446744073709.551600000\t" + packet + b"2\t1.5\t" + packet)
    assert batch is not None
    assert list(batch.ts_ns) == [NO_TIME, 1_500_000_000]
