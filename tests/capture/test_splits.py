"""However the bytes of a file are cut, the packets are the same; a prefix gives a prefix."""

import random
from collections.abc import Callable

import pytest

from amqpsniff.capture.packets import PacketBatch, PacketRows
from amqpsniff.capture.pcap import PcapReader
from amqpsniff.capture.pcapng import PcapngReader
from amqpsniff.capture.reader import Reader
from tests.capture import build
from tests.capture.build import Row

MakeReader = Callable[[str], Reader]

FILES = [
    pytest.param(PcapReader, build.pcap("<", 6), id="pcap"),
    pytest.param(PcapReader, build.pcap(">", 6, magic=build.MODIFIED), id="modified"),
    pytest.param(PcapngReader, build.pcapng("<"), id="pcapng"),
    pytest.param(PcapngReader, build.pcapng(">"), id="pcapng-big"),
]


def read(make: MakeReader, pieces: list[bytes]) -> tuple[list[Row], list[str]]:
    reader = make("capture")
    batches: list[PacketBatch | None] = [reader.feed(piece) for piece in pieces]
    batches.append(reader.finish())
    return build.rows(batches), [finding.code for finding in reader.findings]


@pytest.mark.parametrize(("make", "octets"), FILES)
def test_byte_by_byte(make: MakeReader, octets: bytes) -> None:
    pieces = [octets[at : at + 1] for at in range(len(octets))]
    assert read(make, pieces) == read(make, [octets])


@pytest.mark.parametrize(("make", "octets"), FILES)
def test_every_split(make: MakeReader, octets: bytes) -> None:
    whole = read(make, [octets])
    for at in range(len(octets) + 1):
        assert read(make, [octets[:at], octets[at:]]) == whole, at


@pytest.mark.parametrize(("make", "octets"), FILES)
def test_every_proper_prefix(make: MakeReader, octets: bytes) -> None:
    whole, codes = read(make, [octets])
    for at in range(len(octets)):
        found, prefix_codes = read(make, [octets[:at]])
        assert found == whole[: len(found)]
        assert set(prefix_codes) <= {*codes, "capture-truncated"}


@pytest.mark.parametrize(("make", "octets"), FILES)
def test_packets_are_given_as_soon_as_they_are_whole(make: MakeReader, octets: bytes) -> None:
    reader = make("capture")
    for at in range(len(octets)):
        before = reader.packets
        reader.feed(octets[at : at + 1])
        assert reader.packets - before in (0, 1)
        assert reader.packets >= len(read(make, [octets[: at + 1]])[0])


@pytest.mark.parametrize(("make", "octets"), FILES)
def test_random_pieces(make: MakeReader, octets: bytes) -> None:
    whole = read(make, [octets])
    choose = random.Random(7)
    for _ in range(50):
        cuts = sorted(choose.choices(range(len(octets) + 1), k=8))
        pieces = [octets[a:b] for a, b in zip([0, *cuts], [*cuts, len(octets)], strict=True)]
        assert read(make, pieces) == whole


class Joined(PcapReader):
    """A reader that keeps how many bytes it looks at, of pieces that were joined."""

    looked_at = 0

    def _read(self, block: bytes, rows: PacketRows, final: bool) -> tuple[int, int, int]:
        self.looked_at += len(block)
        return super()._read(block, rows, final)


def test_a_long_record_in_small_pieces_is_joined_once() -> None:
    """Not at each of 16,000 pieces: that would copy 8 GB."""
    reader = Joined("capture")
    record = build.pcap_record("<", 1, 1, bytes(1 << 20))
    pieces = [record[at : at + 64] for at in range(0, len(record), 64)]
    batches = [reader.feed(piece) for piece in [build.pcap_header(), *pieces]]
    assert len(build.rows([*batches, reader.finish()])) == 1
    assert reader.findings == []
    assert len(record) <= reader.looked_at < 2 * len(record)


def test_a_slice_is_a_view() -> None:
    batch = PcapReader("capture").feed(build.pcap(packets=5))
    assert batch is not None
    part = batch.slice(1, 3)
    assert build.rows([part]) == build.rows([batch])[1:3]
    assert part.octets is batch.octets
    assert part.number is batch.number
    assert len(part.slice(2, 2)) == 0
    with pytest.raises(IndexError):
        part.slice(0, 2)
