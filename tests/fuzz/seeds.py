"""Inputs that fuzzing begins with: `python -m tests.fuzz.seeds FOLDER` writes FOLDER/HARNESS/NAME.

Small captures of every kind, frames of real conversations, and tables with every tag: what a fuzzer
would take hours to come upon.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

import zstandard

from amqpsniff.spec import READINGS, field_tags
from tests.capture import build
from tests.conftest import SAMPLES
from tests.decode.feeding import streams_of
from tests.encoder import Field, table, type_of
from tests.fuzz.fuzz_tables import chosen

FRAMES_EACH = 12
CAPTURES = ("bunny.pcapng", "v08_v09.pcap", "amqplib08.pcap", "pika_mix.pcap")
VALUES = {
    "bool": True,
    "float": 1.5,
    "double": -2.5,
    "decimal": (2, -314),
    "shortstr": b"short",
    "longstr": b"a longer string",
    "octets": b"\xff\x00",
    "timestamp": 1_700_000_000,
    "void": None,
}


def captures() -> Iterator[bytes]:
    """Files of every format that is read, also compressed."""
    plain = [build.pcap(order, magic=magic) for order in "<>" for magic in _MAGIC_NUMBERS]
    plain += [build.pcap(minor=3), build.pcapng("<"), build.pcapng(">")]
    yield from plain
    for octets in (plain[0], plain[-1]):
        yield gzip.compress(octets, mtime=0)
        yield zstandard.compress(octets)


def frames() -> Iterator[bytes]:
    """Instructions of `fuzz_frames` for the frames of captured conversations, some at a time."""
    for name in CAPTURES:
        for direction, stream in enumerate(streams_of(SAMPLES / name)[:6]):
            given = [_instruction(one, direction & 1) for one in _cut(stream.octets)]
            for at in range(0, min(len(given), 4 * FRAMES_EACH), FRAMES_EACH):
                yield b"\x03" + b"".join(given[at : at + FRAMES_EACH])


def tables() -> Iterator[bytes]:
    """Inputs of `fuzz_tables`: a table with every tag in every reading, and nested ones."""
    for reading in READINGS:
        choice = next(bytes([one]) for one in range(128, 256) if chosen(one) == reading)
        tags = [chr(tag) for tag, kind in enumerate(field_tags(reading)) if kind]
        plain = [
            (f"k{tag}".encode("latin-1"), Field(tag, VALUES.get(type_of(tag, reading), 100)))
            for tag in tags
            if type_of(tag, reading) not in ("array", "table")
        ]
        for fields in (plain, *([field] for field in plain)):
            yield choice + table(fields, reading)
        items = [field for _, field in plain]
        nested = [(b"a", Field("A", items)), (b"f", Field("F", plain))]
        yield choice + table(nested, reading)


SEEDS = {"fuzz_capture": captures, "fuzz_frames": frames, "fuzz_tables": tables}
_MAGIC_NUMBERS = (build.MICROSECONDS, build.NANOSECONDS, build.MODIFIED)


def _cut(octets: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Type, channel and payload of every frame; a protocol header is left out."""
    at = 8 if octets[:4] == b"AMQP" else 0
    while at + 7 < len(octets):
        size = int.from_bytes(octets[at + 3 : at + 7], "big")
        yield octets[at], octets[at + 2], octets[at + 7 : at + 7 + size]
        at += 8 + size


def _instruction(one: tuple[int, int, bytes], direction: int) -> bytes:
    kind, channel, payload = one
    payload = payload[:255]
    return bytes([direction | (kind & 15) << 1 | (channel & 1) << 5, len(payload)]) + payload


def main(folder: Path) -> None:
    """Write all of them."""
    for harness, make in SEEDS.items():
        (folder / harness).mkdir(parents=True, exist_ok=True)
        for number, octets in enumerate(make()):
            (folder / harness / f"seed{number:03}").write_bytes(octets)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
