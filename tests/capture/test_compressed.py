"""gzip and zstd by content: members, cuts, damage, and what must not fill memory."""

import builtins
import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from amqpsniff.capture import compressed, open_capture
from amqpsniff.capture.file import CaptureFile
from amqpsniff.capture.push_reader import NOTHING_READ, PushReader
from amqpsniff.capture.reader import MAX_SEARCHED_BYTES
from amqpsniff.errors import CaptureError, NotACapture
from tests.capture import build
from tests.capture.build import Row

Compress = Callable[[bytes], bytes]


def zstd(octets: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(octets)


STEP = compressed.GZIP_OUTPUT_BYTES
BOTH = [pytest.param(gzip.compress, "gzip", id="gzip"), pytest.param(zstd, "zstd", id="zstd")]
PLAIN = build.pcap(packets=200)
ROWS = [(n + 1, bytes([n]) * n) for n in range(200)]


def read(path: Path, octets: bytes) -> tuple[list[Row], CaptureFile]:
    path.write_bytes(octets)
    with open_capture(path) as file:
        return build.rows(file), file


def brief(found: list[Row]) -> list[tuple[int, bytes]]:
    return [(row.number, row.octets) for row in found]


@pytest.mark.parametrize(("compress", "name"), BOTH)
def test_one_member(compress: Compress, name: str, tmp_path: Path) -> None:
    found, file = read(tmp_path / "misnamed.txt", compress(PLAIN))
    assert brief(found) == ROWS
    assert (file.format, file.compression, file.findings) == ("pcap", name, [])


@pytest.mark.parametrize(("compress", "name"), BOTH)
def test_many_members(compress: Compress, name: str, tmp_path: Path) -> None:
    pieces = [PLAIN[at : at + 100] for at in range(0, len(PLAIN), 100)]
    octets = compress(b"") + b"".join(map(compress, pieces)) + compress(b"")
    found, file = read(tmp_path / "capture", octets)
    assert brief(found) == ROWS
    assert file.findings == []


def test_zeros_after_a_gzip_member_are_padding(tmp_path: Path) -> None:
    octets = gzip.compress(PLAIN[:1000]) + bytes(512) + gzip.compress(PLAIN[1000:]) + bytes(40000)
    found, file = read(tmp_path / "capture", octets)
    assert brief(found) == ROWS
    assert file.findings == []


def test_skippable_zstd_frames(tmp_path: Path) -> None:
    skippable = b"\x5a\x2a\x4d\x18\x05\0\0\0abcde"
    octets = skippable + zstd(PLAIN[:1000]) + skippable + zstd(PLAIN[1000:]) + skippable
    found, file = read(tmp_path / "capture", octets)
    assert brief(found) == ROWS
    assert file.findings == []


@pytest.mark.parametrize(("compress", "name"), BOTH)
def test_a_cut_stream_gives_what_was_decoded(compress: Compress, name: str, tmp_path: Path) -> None:
    octets = b"".join(compress(PLAIN[at : at + 1000]) for at in range(0, len(PLAIN), 1000))
    for keep in range(len(octets) // 2, len(octets), 41):
        found, file = read(tmp_path / "capture", octets[:keep])
        assert brief(found) == ROWS[: len(found)]
        assert len(found) > 20
        assert [one.code for one in file.findings] in (["capture-truncated"], [])


@pytest.mark.parametrize(("compress", "name"), BOTH)
def test_damage_gives_what_was_decoded(compress: Compress, name: str, tmp_path: Path) -> None:
    octets = compress(PLAIN[:15000]) + compress(PLAIN[15000:])
    for at in (len(octets) - 1, len(compress(PLAIN[:15000])) + 1):
        damaged = bytearray(octets)
        damaged[at] ^= 0xFF
        found, file = read(tmp_path / "capture", bytes(damaged))
        assert brief(found) == ROWS[: len(found)]
        assert len(found) > 150
        (finding,) = file.findings
        assert finding.code == "capture-damaged"
        assert f"of the {name} stream is damaged" in finding.detail


def test_bytes_before_damage_in_one_gzip_member_are_kept(tmp_path: Path) -> None:
    octets = bytearray(gzip.compress(PLAIN))
    octets[-5] ^= 0xFF  # the check sum
    found, file = read(tmp_path / "capture", bytes(octets))
    assert brief(found) == ROWS
    assert [one.code for one in file.findings] == ["capture-damaged"]


@pytest.mark.parametrize(("compress", "name"), BOTH)
def test_what_follows_a_stream_and_is_none(compress: Compress, name: str, tmp_path: Path) -> None:
    found, file = read(tmp_path / "capture", compress(PLAIN) + b"and a note")
    assert brief(found) == ROWS
    assert [one.code for one in file.findings] == ["capture-damaged"]


@pytest.mark.parametrize(("compress", "name"), BOTH)
def test_no_capture_inside(compress: Compress, name: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.pcap"
    with pytest.raises(NotACapture, match=f"inside its {name} compression it is ASCII text"):
        read(path, compress(b"dear diary\n"))
    with pytest.raises(NotACapture, match="it is empty"):
        read(path, compress(b""))


@pytest.mark.parametrize(("compress", "name"), BOTH)
def test_nothing_came_out(compress: Compress, name: str, tmp_path: Path) -> None:
    """Then nothing was read before, which is not said."""
    head = compress(PLAIN)[:16]
    cut = f"the file ends inside its {name} compression"
    for octets, why in ((head, cut), (head[:4] + b"\xff" * 40, "is damaged")):
        with pytest.raises(CaptureError, match=why) as raised:
            read(tmp_path / "cut", octets)
        fed = PushReader("cut")
        assert not list(fed.feed(octets))
        with pytest.raises(CaptureError, match=why) as also:
            fed.refuse()
        for error in (raised, also):
            assert str(error.value).endswith(f"; {NOTHING_READ}")


def test_offsets_are_those_of_the_unpacked_capture(tmp_path: Path) -> None:
    _, file = read(tmp_path / "capture", gzip.compress(PLAIN + bytes(100)))
    assert f"offset {len(PLAIN)} of the unpacked capture" in file.findings[0].detail


def test_a_gzip_bomb_comes_out_in_pieces() -> None:
    bomb = zlib.compressobj(9, wbits=31)
    octets = bomb.compress(bytes(1 << 26)) + bomb.flush()
    sizes = [len(piece) for piece in compressed.GzipBytes().feed(octets)]
    assert sum(sizes) == 1 << 26
    assert max(sizes) <= compressed.GZIP_OUTPUT_BYTES


def test_a_zstd_bomb_comes_out_in_pieces() -> None:
    octets = zstd(bytes(1 << 29))
    sizes = [len(piece) for piece in compressed.ZstdBytes("bomb").feed(octets)]
    assert sum(sizes) == 1 << 29
    assert max(sizes) <= 1 << 26


@pytest.mark.parametrize("machine", [compressed.GzipBytes, lambda: compressed.ZstdBytes("x")])
def test_byte_by_byte(machine: Callable[[], compressed.Decompressor]) -> None:
    decoder = machine()
    compress = gzip.compress if isinstance(decoder, compressed.GzipBytes) else zstd
    octets = compress(PLAIN[:9]) + compress(PLAIN[9:])
    out = b"".join(
        piece for at in range(len(octets)) for piece in decoder.feed(octets[at : at + 1])
    )
    assert out == PLAIN
    assert not decoder.inside


def test_without_the_zstandard_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name == "zstandard":
            raise ImportError(name)
        return known(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(CaptureError, match="pip install zstandard"):
        read(tmp_path / "capture", zstd(PLAIN))


@pytest.mark.parametrize(
    ("beyond", "pack", "pieces"),
    [(-STEP, gzip.compress, 3), (STEP, gzip.compress, 3), (STEP, zstd, 1)],
)
def test_search_behind_damage_is_bounded(
    tmp_path: Path, beyond: int, pack: Compress, pieces: int
) -> None:
    """What a capture unpacks to is searched for records up to a limit, over all damages."""
    record = build.pcap_record("<", 1_700_000_000, 0, b"\xc0" * 20)
    hole = bytes((MAX_SEARCHED_BYTES + beyond) // pieces)
    path = tmp_path / "capture"
    path.write_bytes(pack(build.pcap_header() + (record * 2 + hole) * pieces + record * 2))
    with CaptureFile(path) as capture:
        packets = sum(batch.end - batch.begin for batch in capture)
        details = [one.detail for one in capture.findings]
    if beyond < 0:
        assert packets == 2 * pieces + 2
    else:
        assert packets == 2 * pieces
        assert "held no record" in details[-1]
    assert len(details) == pieces
