"""Compressed captures: bytes of a gzip or zstd stream in, the bytes within out.

Both machines take any number of members (frames) one after the other, hand out at most a bounded
number of bytes at a time whatever a hostile stream expands to, and keep the bytes decoded before
damage. Padding of zeros after a gzip member is allowed, as gzip allows it.

Source: RFC 1952, RFC 8878.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, Protocol

from amqpsniff.capture.formats import GZIP
from amqpsniff.errors import CaptureError
from amqpsniff.installation import how_to_install

# Compressed bytes given to a decompressor at once. Zstandard turns four bytes into 128 KiB at
# most, and its Python binding returns all of them: 1 KiB bounds a bomb at 32 MiB and measured as
# fast as 16 KiB. For gzip it is
# what is decoded again, byte by byte, to find where damage begins.
ZSTD_SLICE_BYTES = 1 << 10
GZIP_SLICE_BYTES = 1 << 14

# Bytes of gzip output handed out at once.
GZIP_OUTPUT_BYTES = 1 << 18


class Damaged(Exception):
    """The stream cannot be decoded further; all earlier bytes have been returned."""


class Decompressor(Protocol):
    """A machine that is fed compressed bytes; `inside`: a member has not ended."""

    inside: bool

    def feed(self, octets: bytes) -> Iterator[bytes]:
        """The bytes these bytes decode to, in pieces; raises `Damaged`."""
        ...


def decompressor(compression: str, capture: str) -> Decompressor:
    """A new machine for `gzip` or `zstd`; raises CaptureError when zstandard is not installed."""
    return GzipBytes() if compression == GZIP else ZstdBytes(capture)


class GzipBytes:
    """Decodes a gzip stream of any number of members."""

    def __init__(self) -> None:
        self.inside = False
        self._members = 0
        self._member: Any = None

    def feed(self, octets: bytes) -> Iterator[bytes]:
        """The bytes within, in pieces of at most `GZIP_OUTPUT_BYTES`; raises `Damaged`."""
        for begin in range(0, len(octets), GZIP_SLICE_BYTES):
            rest = octets[begin : begin + GZIP_SLICE_BYTES]
            while rest:
                if not self.inside:
                    rest = self._begin(rest)
                    if not rest:
                        break
                before = self._member.copy()
                try:
                    piece = self._member.decompress(rest, GZIP_OUTPUT_BYTES)
                except zlib.error as error:
                    yield from _salvage(before, rest)
                    raise Damaged(self._trouble(error)) from None
                if piece:
                    yield piece
                rest = self._member.unconsumed_tail
                if self._member.eof:
                    rest = self._member.unused_data
                    self.inside = False

    def _begin(self, rest: bytes) -> bytes:
        if self._members:
            rest = rest.lstrip(b"\0")
        if rest:
            self._member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            self._members += 1
            self.inside = True
        return rest

    def _trouble(self, error: zlib.error) -> str:
        return f"member {self._members} of the gzip stream is damaged ({error})"


def _salvage(member: Any, octets: bytes) -> Iterator[bytes]:
    """The decoded bytes before the damage: the decoder returns none when it fails."""
    for i in range(len(octets)):
        try:
            piece = member.decompress(octets[i : i + 1])
        except zlib.error:
            return
        if piece:
            yield piece


class ZstdBytes:
    """Decodes a Zstandard stream of any number of frames."""

    def __init__(self, capture: str) -> None:
        try:
            import zstandard
        except ImportError:
            raise CaptureError(
                f"{capture}: zstd-compressed; reading it needs the Python package zstandard "
                f'({how_to_install("zstandard")}), or unpack it with "unzstd"'
            ) from None
        self.inside = False
        self._frames = 0
        self._zstandard = zstandard
        self._frame: Any = None

    def feed(self, octets: bytes) -> Iterator[bytes]:
        """The bytes within, in pieces; raises `Damaged`."""
        for begin in range(0, len(octets), ZSTD_SLICE_BYTES):
            rest = octets[begin : begin + ZSTD_SLICE_BYTES]
            while rest:
                if not self.inside:
                    self._frame = self._zstandard.ZstdDecompressor().decompressobj()
                    self._frames += 1
                    self.inside = True
                try:
                    piece = self._frame.decompress(rest)
                except self._zstandard.ZstdError as error:
                    raise Damaged(
                        f"frame {self._frames} of the zstd stream is damaged ({error})"
                    ) from None
                if piece:
                    yield piece
                rest = b""
                if self._frame.eof:
                    rest = self._frame.unused_data
                    self.inside = False
