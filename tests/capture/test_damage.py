"""Damage in the middle of a file: what can be known is kept, what follows is found, all is told."""

import random
import struct
from collections.abc import Callable

import pytest

from amqpsniff.capture.pcap import MAX_PACKET_BYTES, PcapReader
from amqpsniff.capture.pcapng import MAX_BLOCK_BYTES, PcapngReader
from amqpsniff.capture.reader import MAX_TOLD, Reader
from tests.capture import build
from tests.capture.build import Row, block, enhanced, interface, pcap_header, pcap_record, section

BEGIN = section() + interface()
SECONDS = 1_700_000_000


def pieces_of(octets: bytes, step: int) -> list[bytes]:
    return [octets[at : at + step] for at in range(0, len(octets), step)]


def read(make: Callable[[str], Reader], octets: bytes) -> tuple[list[Row], list[str]]:
    """Packets, and what is said of the file; the same whole and in pieces."""
    results = []
    for pieces in ([octets], pieces_of(octets, 1), pieces_of(octets, 37)):
        reader = make("capture")
        batches = [reader.feed(piece) for piece in pieces]
        batches.append(reader.finish())
        results.append((build.rows(batches), [one.detail for one in reader.findings]))
        assert {one.code for one in reader.findings} <= {"capture-damaged", "capture-truncated"}
    assert results[0] == results[1] == results[2]
    return results[0]


def packet(n: int) -> bytes:
    """The bytes of packet `n`: nothing in them looks like a record."""
    return bytes([0xC0 + n]) * (20 + n)


def blocks(count: int, order: str = "<") -> list[bytes]:
    return [enhanced(order, (SECONDS + n) * 10**6, packet(n)) for n in range(count)]


def records(count: int, order: str = "<") -> list[bytes]:
    return [pcap_record(order, SECONDS + n, n, packet(n), 1500) for n in range(count)]


def whole_records(count: int) -> list[bytes]:
    return [pcap_record("<", SECONDS + n, n, packet(n)) for n in range(count)]


def numbers(found: list[Row]) -> list[int]:
    """Which packets of `packet` were read."""
    return [row.octets[0] - 0xC0 for row in found if row.octets == packet(row.octets[0] - 0xC0)]


# pcapng


def with_length(octets: bytes, length: int, at: int = 4) -> bytes:
    begin = at if at >= 0 else len(octets) + at
    return octets[:begin] + struct.pack("<I", length) + octets[begin + 4 :]


def damaged(second: bytes, *, last: bool = False) -> tuple[list[int], list[str]]:
    """Packets read of three of which the second is another block, and what is said."""
    first, _, third = blocks(3)
    found, said = read(PcapngReader, BEGIN + first + second + (b"" if last else third))
    for detail in said:
        assert f"at offset {len(BEGIN + first)};" in detail
    return numbers(found), said


SECOND = blocks(3)[1]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    "second",
    [
        with_length(SECOND, 4, -4),
        with_length(SECOND, 0, -4),
        with_length(SECOND, 0xFFFFFFFF, -4),
        with_length(SECOND, len(SECOND) - 4),
        with_length(SECOND, len(SECOND) + 8),
        with_length(SECOND, 0),
        with_length(SECOND, 0xFFFFFFFF),
        with_length(SECOND, MAX_BLOCK_BYTES + 4),
        with_length(SECOND, 8),
    ],
)
def test_one_wrong_length_of_a_block_loses_nothing(second: bytes, last: bool) -> None:
    found, said = damaged(second, last=last)
    assert found == ([0, 1] if last else [0, 1, 2])
    assert len(said) == 1
    assert "it was read, and so is what follows" in said[0]


def test_a_packet_that_cannot_be_is_passed_over_and_counted() -> None:
    found, said = damaged(with_length(SECOND, 999, 20))
    assert found == [0, 2]
    assert said[0].startswith("a packet longer than its block")
    assert f"({len(SECOND)} bytes skipped)" in said[0]
    found, said = damaged(block(6, bytes(16)))
    assert found == [0, 2]
    assert said[0].startswith("a packet longer than its block")
    found, said = damaged(block(3, b""))
    assert found == [0, 2]


def test_packets_of_an_unknown_interface_are_passed_over_and_told_once() -> None:
    unknown = enhanced("<", 0, b"abcd", index=1)
    first, _, third = blocks(3)
    found, said = read(PcapngReader, BEGIN + first + unknown * 3 + third)
    assert [row.number for row in found] == [1, 5]
    assert len(said) == 1
    assert "not described" in said[0]


def test_interfaces_of_one_section_are_not_those_of_the_next() -> None:
    found, said = read(PcapngReader, BEGIN + blocks(1)[0] + section() + blocks(1)[0])
    assert len(found) == 1
    assert "not described" in said[0]


@pytest.mark.parametrize("garbage", [bytes(64), bytes(7), b"\xff" * 33, b"\x06\0\0\0$\0\0\0" * 5])
def test_garbage_between_blocks(garbage: bytes) -> None:
    first, second, third = blocks(3)
    found, said = read(PcapngReader, BEGIN + first + garbage + second + third)
    assert numbers(found) == [0, 1, 2]
    (detail,) = said
    at = len(BEGIN + first)
    assert f"at offset {at}; everything before it was read, and again from" in detail
    assert detail.endswith(f"from offset {at + len(garbage)} on ({len(garbage)} bytes skipped)")


def test_a_tail_of_zeros() -> None:
    found, said = damaged(bytes(4096), last=True)
    assert found == [0]
    assert said[0].startswith("a block with an impossible length")
    assert said[0].endswith("nothing after it can be")


def test_a_section_that_cannot_be_read_is_left_out() -> None:
    first, second, third = blocks(3)
    whole = section(">") + interface(">") + blocks(4, ">")[3]
    for header, what in (
        (block(0x0A0D0D0A, bytes(20)), "byte-order magic"),
        (section(major=2), "unknown version 2"),
        (with_length(section(), 0, -4), "two lengths differ"),
        (with_length(section(), 5), "impossible length"),
    ):
        octets = BEGIN + first + header + interface() + second + third + whole
        found, said = read(PcapngReader, octets)
        assert numbers(found) == [0, 3]
        assert what in said[0]
        assert len(said) == 1


def test_behind_an_interface_that_cannot_be_read_nothing_of_its_section_is() -> None:
    first, second, _ = blocks(3)
    cut = block(1, bytes(4))
    found, said = read(PcapngReader, BEGIN + first + cut + interface(link=101) + second + BEGIN)
    assert numbers(found) == [0]
    assert "cut interface description" in said[0]


def test_an_interface_with_a_wrong_trailer_is_an_interface() -> None:
    described = interface("<", (9, b"\x09"), link=113)
    octets = section() + with_length(described, 3, -4) + enhanced("<", 5, packet(0))
    found, said = read(PcapngReader, octets)
    assert found == [Row(1, 5, packet(0), 20, 113)]
    assert len(said) == 1


def test_a_file_cut_and_another_appended() -> None:
    first, second, third = blocks(3)
    found, said = read(PcapngReader, BEGIN + first + second[:40] + BEGIN + third + second)
    assert numbers(found) == [0, 2, 1]
    assert said[0].startswith("a block whose two lengths differ")


# pcap


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("length", [0xFFFFFFFF, MAX_PACKET_BYTES + 1, 1501, 70_000])
def test_a_wrong_captured_length_behind_which_records_are_found(order: str, length: int) -> None:
    made = records(6, order)
    wrong = made[2][:8] + struct.pack(order + "I", length) + made[2][12:]
    octets = pcap_header(order) + b"".join([*made[:2], wrong, *made[3:]])
    found, said = read(PcapReader, octets)
    assert numbers(found)[:2] == [0, 1]
    if length > MAX_PACKET_BYTES:
        assert numbers(found) == [0, 1, 3, 4, 5]
        offset = len(pcap_header() + made[0] + made[1])
        assert f"at offset {offset}; everything before it was read, and again" in said[0]
        assert f"({len(wrong)} bytes skipped)" in said[0]
        assert len(said) == 1


@pytest.mark.parametrize("length", [0xFFFFFFFF, 100, 5000, 1 << 20])
@pytest.mark.parametrize("place", [1, 3])
def test_a_captured_length_past_the_original_one(length: int, place: int) -> None:
    made = whole_records(4)
    made[place] = made[place][:8] + struct.pack("<I", length) + made[place][12:]
    found, said = read(PcapReader, pcap_header() + b"".join(made))
    assert numbers(found) == [0, 1, 2, 3]
    (detail,) = said
    assert f"{length} bytes of a packet of {len(packet(place))} at offset" in detail


def test_a_length_that_is_too_short() -> None:
    made = records(5)
    wrong = made[1][:8] + struct.pack("<I", 3) + made[1][12:]
    octets = pcap_header() + b"".join([made[0], wrong, *made[2:]])
    found, said = read(PcapReader, octets)
    assert [row.octets for row in found] == [packet(0), packet(1)[:3], *map(packet, (2, 3, 4))]
    assert len(said) == 1


@pytest.mark.parametrize("garbage", [b"\xff" * 33, b"\x07" * 300])
@pytest.mark.parametrize("after", [1, 2, 5])
def test_garbage_between_records(garbage: bytes, after: int) -> None:
    made = records(2 + after)
    octets = pcap_header() + made[0] + made[1] + garbage + b"".join(made[2:])
    found, said = read(PcapReader, octets)
    assert numbers(found) == list(range(2 + after))
    (detail,) = said
    assert f"({len(garbage)} bytes skipped)" in detail


@pytest.mark.parametrize("after", [b"", bytes(4096)])
def test_zeros_are_no_records(after: bytes) -> None:
    made = records(3)
    octets = pcap_header() + b"".join(made) + bytes(4096) + after
    found, said = read(PcapReader, octets)
    assert numbers(found) == [0, 1, 2]
    (detail,) = said
    assert detail.startswith("a record of nothing but zeros")
    assert detail.endswith("nothing after it can be")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("cut", [0, 10])
def test_another_file_appended(order: str, cut: int) -> None:
    made = records(3)
    first = pcap_header() + b"".join(made)
    if cut:
        # The last record was not whole: what came then is taken for its bytes.
        first = pcap_header() + made[0] + made[1] + made[2][:16]
        first += bytes(len(made[2]) - 16) + b"\xff" * 40
    second = pcap_header(order, magic=build.NANOSECONDS, link=113)
    second += b"".join(pcap_record(order, SECONDS + 9, n, packet(n)) for n in (4, 5))
    found, said = read(PcapReader, first + second)
    assert numbers(found) == ([0, 1, 4, 5] if cut else [0, 1, 2, 4, 5])
    assert found[-1] == Row(len(found), (SECONDS + 9) * 10**9 + 5, packet(5), 25, 113)
    assert any(f"another pcap file begins at offset {len(first)}" in one for one in said)


def test_times_back_and_forth_are_no_damage() -> None:
    times = [SECONDS, 5, 2**32 - 1, SECONDS - 10**8, SECONDS]
    made = b"".join(pcap_record("<", time, 0, packet(n)) for n, time in enumerate(times))
    found, said = read(PcapReader, pcap_header() + made)
    assert numbers(found) == [0, 1, 2, 3, 4]
    assert said == []


def test_noise_is_not_a_capture() -> None:
    noise = random.Random(5).randbytes(200_000)
    for make, begin in (
        (PcapReader, pcap_header() + records(1)[0] + b"\xff" * 16),
        (PcapngReader, BEGIN + blocks(1)[0] + b"\xff" * 16),
    ):
        reader = make("capture")
        assert len(build.rows([reader.feed(begin + noise), reader.finish()])) == 1


@pytest.mark.parametrize(
    ("make", "begin", "each"),
    [(PcapReader, pcap_header(), records(2)), (PcapngReader, BEGIN, blocks(2))],
)
def test_of_much_damage_the_first_is_told_and_the_rest_counted(
    make: Callable[[str], Reader], begin: bytes, each: list[bytes]
) -> None:
    octets = begin + (b"".join(each) + b"\xff" * 16) * (MAX_TOLD + 5)
    reader = make("capture")
    found = build.rows([reader.feed(octets), reader.finish()])
    assert len(found) == 2 * (MAX_TOLD + 5)
    assert len(reader.findings) == MAX_TOLD + 1
    last = f"the file is damaged in 5 more places ({16 * 4} bytes skipped)"
    assert reader.findings[-1].detail == last


@pytest.mark.parametrize(
    ("make", "make_records"), [(PcapngReader, blocks), (PcapReader, whole_records)]
)
def test_any_byte_turned_costs_one_packet(
    make: Callable[[str], Reader], make_records: Callable[[int], list[bytes]]
) -> None:
    begin = pcap_header() if make is PcapReader else BEGIN
    made = make_records(6)
    at = len(begin + made[0] + made[1])
    for offset in range(at, at + len(made[2])):
        for mask in (0x01, 0x10, 0xFF):
            octets = bytearray(begin + b"".join(made))
            octets[offset] ^= mask
            reader = make("capture")
            found = build.rows([reader.feed(bytes(octets)), reader.finish()])
            read = numbers(found)
            assert read == sorted(read)
            assert {0, 1, 2, 3, 4, 5} - set(read) <= {2}, (offset - at, mask, reader.findings)
