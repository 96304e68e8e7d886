"""pcapng: sections, interfaces, times, blocks that carry packets, what is kept beside them."""

import struct
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpsniff.capture import pcapng
from amqpsniff.capture.packets import NO_TIME
from amqpsniff.capture.pcapng import NUMBERED, PcapngReader
from amqpsniff.capture.pcapng_interface import InterfaceStatistics
from amqpsniff.errors import NotACapture
from tests.capture import build
from tests.capture.build import Row, block, enhanced, interface, section, simple, statistics

BEGIN = section() + interface()
PACKET = enhanced("<", 1_000_000, b"abcd")


def read(octets: bytes) -> tuple[list[Row], PcapngReader]:
    reader = PcapngReader("capture")
    found = build.rows([reader.feed(octets), reader.finish()])
    return found, reader


@pytest.mark.parametrize("order", ["<", ">"])
def test_every_block(order: str) -> None:
    found, reader = read(build.pcapng(order))
    assert found == build.PCAPNG_ROWS
    assert reader.secrets == [(0x544C534B, b"CLIENT_RANDOM 1 2\n")]
    assert reader.comments == ["first", "second"]
    assert reader.link_types == [1, 113, 101]
    assert reader.statistics == [InterfaceStatistics("eth0", 100, 3, None)]
    (finding,) = reader.findings
    assert finding.code == "interface-dropped"
    assert finding.detail.startswith("eth0: 3 packets dropped by the interface")


@pytest.mark.parametrize("value", [*range(31), 127, *range(0x80, 0xC1), 0xFF])
def test_times_are_exact(value: int) -> None:
    counts = [0, 1, 1_700_000_000_123_456, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
    for offset in (0, -5, 2**33, 2**40, -(2**63)):
        known = interface("<", (9, bytes([value])), (14, struct.pack("<q", offset)))
        packets = b"".join(enhanced("<", count, b"abcd") for count in counts)
        found, _ = read(section() + known + packets)
        for count, row in zip(counts, found, strict=True):
            seconds = Fraction(count, 2 ** (value & 0x7F) if value >= 0x80 else 10**value) + offset
            exact = seconds.numerator * 10**9 // seconds.denominator
            assert row.ts_ns == (exact if abs(exact) < 2**63 else NO_TIME)


def test_time_unit_is_microseconds_unless_said() -> None:
    assert read(BEGIN + enhanced("<", 5, b""))[0][0].ts_ns == 5000


def test_a_simple_packet_is_as_long_as_the_first_interface_takes() -> None:
    octets = section() + interface(snap=3) + interface(snap=100) + simple("<", b"abcd", 90)
    assert read(octets)[0] == [Row(1, NO_TIME, b"abc", 90, 1)]


def test_a_simple_packet_is_no_longer_than_its_block() -> None:
    assert read(BEGIN + simple("<", b"abcd", 90))[0] == [Row(1, NO_TIME, b"abcd", 90, 1)]


def test_a_length_that_is_no_multiple_of_four() -> None:
    body = struct.pack("<IIIII", 0, 0, 0, 5, 5) + b"abcde"
    length = struct.pack("<I", len(body) + 12)
    odd = struct.pack("<I", 6) + length + body + bytes(3) + length
    found, reader = read(BEGIN + odd + PACKET)
    assert [row.octets for row in found] == [b"abcde", b"abcd"]
    assert reader.findings == []


@pytest.mark.parametrize("kind", sorted(NUMBERED))
def test_records_that_are_no_packets_take_a_number(kind: int) -> None:
    found, reader = read(BEGIN + PACKET + block(kind, bytes(8)) + PACKET)
    assert [row.number for row in found] == [1, 3]
    assert reader.packets == 3


@pytest.mark.parametrize("kind", [0, 4, 7, 0x999, 0x80000001, 0xFFFFFFFF])
def test_unknown_blocks_are_stepped_over(kind: int) -> None:
    found, reader = read(BEGIN + PACKET + block(kind, bytes(8)) + PACKET)
    assert [row.number for row in found] == [1, 2]
    assert reader.findings == []


def test_options_that_are_cut_are_not_read() -> None:
    body = struct.pack("<HHIHH", 1, 0, 0, 9, 200) + b"\x09\0\0\0"
    found, _ = read(section() + block(1, body) + enhanced("<", 5, b"abcd"))
    assert found[0].ts_ns == 5000


def test_statistics_of_sections_add_up() -> None:
    part = section() + interface("<", (2, b"eth0")) + statistics("<", 0, (4, 10), (5, 1))
    late = statistics("<", 0, (4, 20), (5, 2), (7, 4))
    _, reader = read(part + part + late)
    assert reader.statistics == [InterfaceStatistics("eth0", 30, 3, 4)]


def test_no_drops_are_no_finding() -> None:
    assert read(BEGIN + statistics("<", 0, (4, 10), (5, 0)))[1].findings == []


def test_statistics_of_an_unknown_interface_are_nobodys() -> None:
    assert read(BEGIN + statistics("<", 7, (5, 1)))[1].findings == []


def test_a_name_cannot_break_the_line() -> None:
    octets = section() + interface("<", (2, b"a\r\nb")) + statistics("<", 0, (5, 1))
    assert "\n" not in read(octets)[1].findings[0].detail


def test_a_cut_tail() -> None:
    found, reader = read((BEGIN + PACKET + PACKET)[:-1])
    assert len(found) == 1
    assert [one.code for one in reader.findings] == ["capture-truncated"]


@pytest.mark.parametrize("octets", [bytes(12), b"\n\r\r\n" + bytes(20)])
def test_what_does_not_begin_as_a_pcapng_file(octets: bytes) -> None:
    with pytest.raises(NotACapture, match="not pcapng"):
        PcapngReader("capture").feed(octets)


def test_secrets_are_kept_up_to_a_limit() -> None:
    large = build.secrets("<", 1, bytes(pcapng.MAX_SECRETS_BYTES // 8))
    _, reader = read(BEGIN + large * 9 + PACKET)
    assert len(reader.secrets) == 7
    assert reader.packets == 1
    assert [one.code for one in reader.findings] == ["capture-damaged"]


def test_comments_are_kept_up_to_a_limit() -> None:
    comment, most = b"c" * 60_000, pcapng.MAX_COMMENT_BYTES // 60_000
    _, reader = read(section("<", *[(1, comment)] * (most + 9)))
    assert reader.comments == [comment.decode()] * most
    assert [one.code for one in reader.findings] == ["capture-damaged"]


def test_interfaces_of_a_section_have_a_limit() -> None:
    most = interface() * pcapng.MAX_INTERFACES
    found, reader = read(section() + most + PACKET + interface() + PACKET)
    assert len(found) == 1
    assert [one.code for one in reader.findings] == ["capture-damaged"]


def test_statistics_of_sections_have_a_limit() -> None:
    reader = PcapngReader("x")
    dropped = b"".join(statistics("<", index, (5, 1)) for index in range(40_000))
    for first in (0, 40_000):
        names = (interface("<", (2, b"%d" % (first + n))) for n in range(40_000))
        reader.feed(section() + b"".join(names) + dropped)
    reader.finish()
    assert len(reader.statistics) == pcapng.MAX_INTERFACES
    assert [one.code for one in reader.findings] == ["capture-damaged", "interface-dropped"]


@given(
    st.sampled_from("<>"),
    st.lists(st.tuples(st.integers(0, 2**53), st.binary(), st.integers(0, 1))),
)
def test_what_is_written_is_read(order: str, packets: list[tuple[int, bytes, int]]) -> None:
    octets = section(order) + interface(order) + interface(order, (9, b"\x09"), link=12)
    octets += b"".join(enhanced(order, u, data, index=i) for u, data, i in packets)
    found, _ = read(octets)
    assert found == [
        Row(n, u * (1000, 1)[i], data, len(data), (1, 12)[i])
        for n, (u, data, i) in enumerate(packets, 1)
    ]


def test_names_of_interfaces_have_a_limit() -> None:
    """A file of nothing but names does not fill memory."""
    reader = PcapngReader("x")
    reader.feed(build.section("<") + build.interface("<", (2, b"n" * 60_000)))
    assert reader.interfaces[0].name == "n" * 255


def test_interfaces_of_all_sections_have_a_limit() -> None:
    """Sections beyond it are read, and remembered as one that has none."""
    reader = PcapngReader("x")
    many = pcapng.MAX_INTERFACES - 1
    for _ in range(9):
        reader.feed(build.section("<") + build.interface("<") * many + build.enhanced("<", 1, b"x"))
    reader.finish()
    assert reader.packets == 9
    assert not reader.findings
    assert [len(one.interfaces) for one in reader.sections] == [many, many, 0]
    assert reader.sections[2].packets_before == 2


def test_each_of_many_link_types_is_looked_up() -> None:
    """And not looked for, which would compare it with 60,000 others and take minutes."""
    reader = PcapngReader("x")
    links = b"".join(interface(link=link) for link in range(60_000))
    for _ in range(2):
        reader.feed(section() + links)
    assert reader.link_types == list(range(60_000))


@pytest.mark.parametrize("between", [b"", block(0x7777, b"abcd")])
def test_what_is_repeated_is_read_once_and_counts_each_time(between: bytes) -> None:
    """Equal interfaces and sections behind each other; in pieces of a byte none is seen at once."""
    nanoseconds = interface("<", (9, b"\x09"))
    one = section() + nanoseconds * 3 + between
    last = enhanced("<", 7, b"abcd", index=4)
    octets = one * 4 + section() + interface() * 2 + nanoseconds * 3 + last
    octets += section() + interface() + PACKET + section() + interface() + PACKET
    octets += (section("<", (1, b"twice")) + interface() + statistics("<", 0, (4, 5))) * 2
    found, reader = read(octets)
    pieces = PcapngReader("capture")
    batches = [pieces.feed(octets[at : at + 1]) for at in range(len(octets))]
    assert build.rows([*batches, pieces.finish()]) == found
    assert [row.ts_ns for row in found] == [7, 10**9, 10**9]
    assert (pieces.comments, pieces.statistics) == (reader.comments, reader.statistics)
    named = [one for one in reader.sections if len(one.interfaces) == 5]
    assert [one.name for one in named[0].interfaces] == [f"interface {n}" for n in range(5)]
