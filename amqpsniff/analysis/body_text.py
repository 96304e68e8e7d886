"""The text of a body: its content encoding undone, its format read.

All commands that show bodies use this module. A body is unpacked by its properties, and gzip also
without them. Text is shown unchanged, in its charset; binary formats by content type, or by their
first bytes if these identify them. Other bytes are for a hex dump, unless a message of AMQP 1.0 has
them as a value.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from amqpsniff.analysis import binary_values
from amqpsniff.analysis.content_encoding import ENCODINGS, NotDecodable, decoded, encoding_of
from amqpsniff.spec.amqp10 import MESSAGES

MAX_UNPACKED_BYTES = 1 << 20
"""Bytes of an unpacked body that are looked at: one can unpack to gigabytes."""

COLUMNS = ("body", "content_type", "content_encoding", "headers")
"""Columns of messages that decide how a body is read, besides those of a line."""

_GZIP_MAGIC = b"\x1f\x8b\x08"
_BY_TYPE: tuple[tuple[str, str, Callable[[bytes], str]], ...] = (
    ("msgpack", r"msgpack", binary_values.msgpack),
    ("CBOR", r"\bcbor\b", binary_values.cbor),
    ("protobuf", r"protobuf|\bgrpc\b", binary_values.protobuf),
    ("pickle", r"python-(?:serialize|pickle)|\bpickle\b", binary_values.pickle),
)
"""Formats that a content type names."""

_BY_MARK: tuple[tuple[str, bytes, Callable[[bytes], str]], ...] = (
    ("Avro", b"Obj\x01", binary_values.avro),
    ("pickle", b"\x80\x04\x95", binary_values.pickle),
)
"""Formats that begin with bytes of their own."""

Reader = tuple[str, Callable[[bytes], str]]
_VALUE: Reader = ("AMQP value", binary_values.amqp_value)
"""The reader of a body in the section amqp-value; rows do not say which section a body is from."""

_NAMES = {
    ".gz": "gzip",
    ".zz": "zlib",
    ".zst": "zstd",
    ".bz2": "bzip2",
    ".xz": "xz",
    ".br": "brotli",
}
"""Names of encodings by the ending of a file."""

_CHARSET = re.compile(r"charset\s*=\s*\"?([\w.:-]+)", re.IGNORECASE)


@dataclass(frozen=True)
class BodyText:
    """The displayed form of a body.

    Attributes:
        octets: Its bytes, unpacked.
        form: Names of its encoding and its format, `gzip, msgpack`; empty for text and unchanged
            bytes.
        text: Its text; None for bytes that are shown in hex.
        cut: The unpacked bytes exceed the limit.
        read: The text is the complete contents of a binary format.
    """

    octets: bytes
    form: str
    text: str | None
    cut: bool = False
    read: bool = False


def body_text(message: Mapping[str, Any], limit: int | None = None) -> BodyText | None:
    """The body of a row of messages as text; None without one.

    Of a body that is text only the first `limit` bytes are read. `content_type`,
    `content_encoding` and `headers` of the row are used if it has them.
    """
    body = message.get("body")
    if body is None:
        return None
    declared = encoding_of({"content_encoding": None, "headers": None, **message})
    encoding = (
        declared if declared in ENCODINGS else "gzip" if body.startswith(_GZIP_MAGIC) else None
    )
    form, octets, cut = [], body, False
    if encoding is not None:
        opened = _opened(body, encoding)
        if opened is not None:
            octets, cut = opened
            form.append(_NAMES[ENCODINGS[encoding]])
    content_type = (message.get("content_type") or "").lower()
    name, text = _read(octets, content_type, cut=cut)
    if text is None:
        shown = octets[:limit]
        complete = len(shown) == len(octets) and not cut
        text = as_text(shown, complete=complete, charset=_charset(content_type, message))
    if text is None and octets is body and message.get("method") in MESSAGES:
        name, text = _first(octets, (_VALUE,))
        inner = binary_values.amqp_binary(body)
        content = inner and body_text({**message, "body": inner, "method": None}, limit)
        if content and content.text is not None:
            return replace(content, form=", ".join(filter(None, (_VALUE[0], content.form))))
    return BodyText(octets, ", ".join([*form, *filter(None, (name,))]), text, cut, name is not None)


def _opened(body: bytes, encoding: str) -> tuple[bytes, bool] | None:
    """The first bytes of an unpacked body, and whether there are more; None if it is damaged."""
    pieces = bytearray()
    try:
        for piece in decoded(body, encoding):
            pieces += piece
            if len(pieces) > MAX_UNPACKED_BYTES:
                return bytes(pieces[:MAX_UNPACKED_BYTES]), True
    except NotDecodable:
        return None
    return bytes(pieces), False


def _read(octets: bytes, content_type: str, *, cut: bool) -> tuple[str | None, str | None]:
    """Name of a binary format and its text; None for other or cut bytes."""
    readers = [(name, read) for name, mark, read in _BY_MARK if octets.startswith(mark)]
    readers += [(name, read) for name, type_, read in _BY_TYPE if re.search(type_, content_type)]
    return (None, None) if cut else _first(octets, readers)


def _first(octets: bytes, readers: Iterable[Reader]) -> tuple[str | None, str | None]:
    """Name of the first format that fits the bytes, and their text."""
    for name, read in readers if octets else ():
        try:
            return name, read(octets)
        except (ValueError, RecursionError):
            continue
    return None, None


def _charset(content_type: str, message: Mapping[str, Any]) -> str:
    """The charset of a text: that of its content type, else what Kombu calls content encoding."""
    match = _CHARSET.search(content_type)
    named = match[1] if match else message.get("content_encoding") or ""
    try:
        found = codecs.lookup(named)
    except (LookupError, ValueError):
        return "utf-8"
    return found.name if found._is_text_encoding else "utf-8"


def as_text(octets: bytes, *, complete: bool, charset: str = "utf-8") -> str | None:
    """The bytes as text; None if they are not text. The end may be cut within a character."""
    for missing in range(1 if complete else 4):
        try:
            text = octets[: len(octets) - missing].decode(charset)
        except (UnicodeError, LookupError):
            continue
        odd = sum(not character.isprintable() and character not in "\n\r\t" for character in text)
        return text if odd == 0 else None
    return None
