"""The content encoding of bodies, undone in bounded memory; their type as the ending of a file."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from typing import Any

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
}
"""Content encodings that can be undone, and what is added to a file's name while they are not."""

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
    """The bytes are not what their content encoding says, or become too many."""


def decoded(body: bytes, encoding: str) -> Iterator[bytes]:
    """The decoded body, in pieces; `encoding` is one of `ENCODINGS`.

    Raises NotDecodable, perhaps after some pieces.
    """
    total = 0
    pieces = _zstd(body) if "zstd" in encoding else _zlib(body)
    for piece in pieces:
        total += len(piece)
        if total > MAX_DECODED_BYTES:
            raise NotDecodable(f"decodes to more than {MAX_DECODED_BYTES:,} bytes")
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


def encoding_of(message: dict[str, Any]) -> str:
    """The content encoding of a message, by its property or by Kombu's header."""
    named = (message["content_encoding"] or "").strip().lower()
    if named in ENCODINGS or not message["headers"]:
        return named
    return str(json.loads(message["headers"]).get(KOMBU_HEADER)).lower()


def extension(content_type: str | None) -> str:
    """The ending of a file's name for a content type."""
    kind = re.split("[;, ]", (content_type or "").strip().lower(), maxsplit=1)[0]
    if kind in EXTENSIONS:
        return EXTENSIONS[kind]
    if kind.endswith(("+json", "+xml")):
        return kind.rpartition("+")[2]
    return "txt" if kind.startswith("text/") else "bin"
