"""Savefiles: every magic number in both byte orders, lengths, damage."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpsniff.capture.pcap import MAX_PACKET_BYTES, PcapReader
from amqpsniff.errors import NotACapture
from tests.capture import build
from tests.capture.build import Row, pcap_header, pcap_record

UNITS = {build.MICROSECONDS: 1000, build.NANOSECONDS: 1, build.MODIFIED: 1000}


def read(octets: bytes) -> tuple[list[Row], PcapReader]:
    reader = PcapReader("capture")
    found = build.rows([reader.feed(octets), reader.finish()])
    return found, reader


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", UNITS)
def test_every_variant(order: str, magic: int) -> None:
    found, reader = read(build.pcap(order, magic=magic, link=113))
    assert found == [
        Row(n + 1, (100 + n) * 10**9 + n * UNITS[magic], bytes([n]) * n, n + 5, 113)
        for n in range(3)
    ]
    assert reader.findings == []
    assert reader.link_types == [113]
    assert reader.packets == 3


def test_times_are_exact_over_the_whole_range() -> None:
    last = 2**32 - 1
    octets = pcap_header(magic=build.NANOSECONDS) + pcap_record("<", last, 999_999_999, b"x")
    assert read(octets)[0][0].ts_ns == last * 10**9 + 999_999_999


def test_check_sequence_bits_are_not_the_link_type() -> None:
    found, reader = read(pcap_header(link=0x2400_0001) + pcap_record("<", 1, 1, b"x"))
    assert found[0].link_type == 1
    assert reader.link_types == [1]


@pytest.mark.parametrize(
    ("minor", "first", "second", "captured", "original"),
    [(4, 2, 9, 2, 9), (4, 9, 2, 9, 2), (3, 2, 9, 2, 9), (3, 9, 2, 2, 9), (2, 9, 2, 2, 9)],
)
def test_lengths_of_old_versions(
    minor: int, first: int, second: int, captured: int, original: int
) -> None:
    octets = pcap_header(minor=minor) + struct.pack("<IIII", 1, 1, first, second) + bytes(captured)
    found, reader = read(octets)
    assert [(len(row.octets), row.original) for row in found] == [(captured, original)]
    assert reader.findings == []


def test_a_packet_past_the_snap_length_is_a_packet() -> None:
    found, reader = read(pcap_header(snap=10) + pcap_record("<", 1, 1, bytes(100)))
    assert len(found[0].octets) == 100
    assert reader.findings == []


def test_a_packet_of_no_bytes_is_a_packet() -> None:
    found, _ = read(pcap_header() + pcap_record("<", 1, 1, b""))
    assert found == [Row(1, 1_000_001_000, b"", 0, 1)]


def test_the_longest_packet() -> None:
    found, reader = read(pcap_header() + pcap_record("<", 1, 1, bytes(MAX_PACKET_BYTES)))
    assert len(found[0].octets) == MAX_PACKET_BYTES
    assert reader.findings == []


def test_a_cut_tail() -> None:
    whole = build.pcap(packets=3)
    found, reader = read(whole[:-1])
    assert len(found) == 2
    (finding,) = reader.findings
    assert (finding.code, finding.packet_number) == ("capture-truncated", 2)


def test_a_cut_header() -> None:
    found, reader = read(build.pcap()[:20])
    assert found == []
    (finding,) = reader.findings
    assert (finding.code, finding.packet_number, finding.ts_ns) == ("capture-truncated", None, None)


def test_what_does_not_begin_as_a_pcap_file() -> None:
    with pytest.raises(NotACapture, match="not a pcap file"):
        PcapReader("capture").feed(bytes(24))


def test_many_small_packets_need_more_rows_than_were_laid_out() -> None:
    octets = pcap_header() + pcap_record("<", 1, 1, b"") * 10_000
    found, _ = read(octets)
    assert [row.number for row in found] == list(range(1, 10_001))


def test_bytes_of_a_batch_are_those_that_were_fed() -> None:
    octets = build.pcap()
    batch = PcapReader("capture").feed(octets)
    assert batch is not None
    assert batch.octets is octets
    assert len(batch) == len(batch.number) == 3


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 10**9 - 1), st.binary())))
def test_what_is_written_is_read(packets: list[tuple[int, int, bytes]]) -> None:
    octets = pcap_header(">", magic=build.NANOSECONDS)
    octets += b"".join(pcap_record(">", s, f, data, len(data) + 1) for s, f, data in packets)
    found, _ = read(octets)
    assert found == [
        Row(n, s * 10**9 + f, data, len(data) + 1, 1) for n, (s, f, data) in enumerate(packets, 1)
    ]
