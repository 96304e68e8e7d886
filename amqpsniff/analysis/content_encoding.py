"""The content encoding of bodies, undone in bounded memory; their type as the ending of a file."""

from __future__ import annotations

import bz2
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from amqpsniff.installation import how_to_add

MAX_DECODED_BYTES = 1 << 30
"""Bytes that one body may decode to: 1 kB of zeros, packed twice, can stand for gigabytes."""

PIECE_BYTES = 1 << 20
"""Bytes decoded at once."""

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
    "bzip2": ".bz2",
    "application/x-bz2": ".bz2",
    "application/x-lzma": ".xz",
    "br": ".br",
    "application/x-brotli": ".br",
}
"""Content encodings that can be decoded, and the ending of a file's name without decoding."""

KOMBU_HEADER = "compression"
"""The header in which Kombu and Celery say how a body is packed."""


EXTENSIONS = {
    "application/json": "json",
    "application/xml": "xml",
    "text/xml": "xml",
    "text/html": "html",
    "text/csv": "csv",
    "application/x-yaml": "yaml",
    "application/yaml": "yaml",
    "application/x-msgpack": "msgpack",
    "application/msgpack": "msgpack",
    "application/protobuf": "pb",
    "application/x-protobuf": "pb",
    "application/vnd.google.protobuf": "pb",
    "application/x-python-serialize": "pickle",
    "application/x-java-serialized-object": "ser",
    "application/pdf": "pdf",
    "application/zip": "zip",
    "application/gzip": "gz",
    "image/png": "png",
    "image/jpeg": "jpg",
}
"""Endings of file names by content type; text is `txt`, what ends in `+json` is `json`, and all
else `bin`. Nothing else of a name comes from the wire."""


class NotDecodable(Exception):
    """The bytes do not have their content encoding, or decode to too many."""


def decoded(body: bytes, encoding: str, limit: int = MAX_DECODED_BYTES) -> Iterator[bytes]:
    """The decoded body, in pieces, with limited size; `encoding` is one of `ENCODINGS`.

    Raises NotDecodable, perhaps after some pieces.
    """
    total = 0
    form = ENCODINGS[encoding]
    for piece in _PIECES.get(form, _zlib)(body):
        total += len(piece)
        if total > limit:
            raise NotDecodable(f"decodes to more than {limit:,} bytes")
        yield piece


def _zlib(body: bytes) -> Iterator[bytes]:
    """gzip, zlib, deflate: recognized by their first bytes, since senders confuse the names."""
    gzip = body.startswith(_GZIP_MAGIC)
    bits = _GZIP_OR_ZLIB if gzip or _has_zlib_header(body) else -zlib.MAX_WBITS
    rest = body
    while rest:
        machine = zlib.decompressobj(bits)
        while not machine.eof:
            try:
                piece = machine.decompress(rest, PIECE_BYTES)
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
            while piece := reader.read(PIECE_BYTES):
                yield piece
    except zstandard.ZstdError as error:
        raise NotDecodable(str(error)) from None


def _bz2(body: bytes) -> Iterator[bytes]:
    return _stream(body, bz2.BZ2Decompressor())


def _lzma(body: bytes) -> Iterator[bytes]:
    return _stream(body, lzma.LZMADecompressor(memlimit=1 << 27))


def _stream(body: bytes, machine: Any) -> Iterator[bytes]:
    """The pieces that a decompressor of the standard library gives."""
    rest = body
    while not machine.eof:
        try:
            piece = machine.decompress(rest, PIECE_BYTES)
        except (OSError, lzma.LZMAError) as error:
            raise NotDecodable(str(error)) from None
        if not piece and machine.needs_input and not machine.eof:
            raise NotDecodable("it ends too early")
        rest = b""
        yield piece


def _brotli(body: bytes) -> Iterator[bytes]:
    try:
        import brotli
    except ImportError:
        raise NotDecodable(f"brotli is not installed; {how_to_add('bodies')}") from None
    machine, rest = brotli.Decompressor(), body
    while not machine.is_finished():
        try:
            piece = machine.process(rest, output_buffer_limit=PIECE_BYTES)
        except brotli.error as error:
            raise NotDecodable(str(error)) from None
        if not piece and not machine.is_finished():
            raise NotDecodable("it ends too early")
        rest = b""
        yield piece


_PIECES: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    ".zst": _zstd,
    ".bz2": _bz2,
    ".xz": _lzma,
    ".br": _brotli,
}
"""Decoders of bodies by the ending of a file's name; all others are decoded with zlib."""


def encoding_of(message: dict[str, Any]) -> str:
    """The content encoding of a message, by its property or by Kombu's header."""
    encoding = (message["content_encoding"] or "").strip().lower()
    if encoding in ENCODINGS or not message["headers"]:
        return encoding
    return str(json.loads(message["headers"]).get(KOMBU_HEADER)).lower()


def extension(content_type: str | None) -> str:
    """The ending of a file's name for a content type."""
    kind = re.split("[;, ]", (content_type or "").strip().lower(), maxsplit=1)[0]
    if kind in EXTENSIONS:
        return EXTENSIONS[kind]
    if kind.endswith(("+json", "+xml")):
        return kind.rpartition("+")[2]
    return "txt" if kind.startswith("text/") else "bin"
