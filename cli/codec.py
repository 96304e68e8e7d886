"""Undoing the content encoding of bodies, in bounded memory and to a bounded size."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

MOST_DECODED_OCTETS = 1 << 30
"""Octets that one body may decode to: 1 kB of zeros, packed twice, can stand for gigabytes."""

PIECE_OCTETS = 1 << 20
"""Octets decoded at once."""

_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"

ENCODINGS = {
    "gzip": ".gz",
    "x-gzip": ".gz",
    "application/gzip": ".gz",
    "application/x-gzip": ".zz",  # of Kombu, which means zlib
    "deflate": ".zz",
    "zlib": ".zz",
    "zstd": ".zst",
    "application/zstd": ".zst",
}
"""Content encodings that can be undone, and what is added to a file's name while they are not."""

KOMBU_HEADER = "compression"
"""The header in which Kombu and Celery say how a body is packed."""


class NotDecodable(Exception):
    """The octets are not what their content encoding says, or become too many."""


def decoded(body: bytes, encoding: str) -> Iterator[bytes]:
    """What a body decodes to, in pieces; `encoding` is one of `ENCODINGS`.

    Raises NotDecodable, perhaps after some pieces.
    """
    total = 0
    pieces = _zstd(body) if "zstd" in encoding else _zlib(body)
    for piece in pieces:
        total += len(piece)
        if total > MOST_DECODED_OCTETS:
            raise NotDecodable(f"decodes to more than {MOST_DECODED_OCTETS:,} octets")
        yield piece


def _zlib(body: bytes) -> Iterator[bytes]:
    """gzip, zlib and bare deflate are told by their first octets: senders confuse the names."""
    gzip = body.startswith(_GZIP_MAGIC)
    bits = _GZIP_OR_ZLIB if gzip or _has_zlib_header(body) else -zlib.MAX_WBITS
    rest = body
    while rest:
        machine = zlib.decompressobj(bits)
        while not machine.eof:
            try:
                piece = machine.decompress(rest, PIECE_OCTETS)
            except zlib.error as error:
                raise NotDecodable(str(error)) from None
            if not piece and not machine.eof and not machine.unconsumed_tail:
                raise NotDecodable("it ends too early")
            rest = machine.unconsumed_tail
            yield piece
        rest = machine.unused_data if gzip else b""  # gzip may have several members


def _has_zlib_header(body: bytes) -> bool:
    return len(body) > 1 and body[0] & 15 == 8 and (body[0] << 8 | body[1]) % 31 == 0


def _zstd(body: bytes) -> Iterator[bytes]:
    import zstandard

    machine = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    try:
        with machine.stream_reader(body, read_across_frames=True) as reader:
            while piece := reader.read(PIECE_OCTETS):
                yield piece
    except zstandard.ZstdError as error:
        raise NotDecodable(str(error)) from None
