"""Bytes of any kind: mutated captures, compressed or not, give packets or a CaptureError."""

import contextlib
import gzip
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from amqpsniff.capture import open_capture
from amqpsniff.errors import CaptureError
from tests.capture import build
from tests.conftest import SHARED
from tests.fuzz.fuzz_capture import one_input
from tests.thorough import some

SEEDS = [
    *(
        build.pcap(order, 4, magic=magic)
        for order in "<>"
        for magic in (build.MICROSECONDS, build.MODIFIED)
    ),
    *(build.pcapng(order) for order in "<>"),
]
SEEDS += [gzip.compress(SEEDS[-1]), zstandard.ZstdCompressor().compress(SEEDS[-1])]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A capture with bytes replaced, taken out and put in."""
    octets = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(octets)))
        length = draw(st.sampled_from([0, 1, 4, 40]))
        octets[at : at + length] = draw(st.binary(max_size=8))
    return bytes(octets)


@given(mutated())
def test_mutations(octets: bytes) -> None:
    one_input(octets)


@given(st.binary())
def test_any_bytes(octets: bytes) -> None:
    one_input(octets)


@given(mutated(), st.integers(1, 64))
def test_mutated_files(
    tmp_path_factory: pytest.TempPathFactory, octets: bytes, block_bytes: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated"
    path.write_bytes(octets)
    with contextlib.suppress(CaptureError):
        build.rows(open_capture(path, block_bytes=block_bytes))


@pytest.mark.parametrize("seed", SEEDS, ids=range(len(SEEDS)))
def test_every_byte_turned(seed: bytes) -> None:
    for at in some(range(len(seed))):
        for mask in (0x01, 0x80, 0xFF):
            octets = bytearray(seed)
            octets[at] ^= mask
            one_input(bytes(octets))


def _small_captures() -> list[Path]:
    paths = sorted((SHARED / "captures" / "public").glob("*/*"))
    return [path for path in paths if path.is_file() and path.stat().st_size < 30_000]


@pytest.mark.parametrize("path", _small_captures(), ids=lambda path: path.name)
def test_the_invariant_on_captures(path: Path) -> None:
    one_input(path.read_bytes())
