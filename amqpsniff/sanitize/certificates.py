"""Certificates: DER whose structure, kinds of fields and times stay, and whose contents do not.

Lengths and tags stay, so that a reader still sees the fields, the lengths of keys and the times
of validity. Names become filler or pseudonyms; keys, signatures, serial numbers and all else are
filler.

Source: X.690 §8, RFC 5280 §4.1 and §4.2.1.6.
"""

from __future__ import annotations

from collections.abc import Callable

_CONSTRUCTED = 0x20
_BOOLEAN, _INTEGER, _BITS, _BYTES, _NULL, _OID = 0x01, 0x02, 0x03, 0x04, 0x05, 0x06
_TIMES = (0x17, 0x18)
_WITHIN = (0x30, _BITS, _BYTES)
"""First bytes of elements inside bytes or bits: a sequence, or bytes or bits again."""
_ADDRESS = 0x87
_NAMES = (0x0C, 0x13, 0x14, 0x16, 0x81, 0x82, 0x86)
"""UTF8String, PrintableString, TeletexString, IA5String; mail address, host and URI of SANs."""

_PUBLIC_OIDS = tuple(
    bytes.fromhex(begin)
    for begin in ("5504", "551d", "2a864886f70d01", "2a8648ce3d", "2b65", "2b0601050507")
)
"""Attributes, extensions, RSA, elliptic curves, Edwards curves, PKIX: of no one in particular."""

MAX_DEPTH = 16
"""Nesting that is walked: certificates have some ten levels; deeper elements are filler."""

Rename = Callable[[bytes], bytes]


def safe_certificate(octets: bytes, safe: bytearray, start: int, rename: Rename) -> None:
    """Write what may stay of a DER certificate over the filler in `safe`, from `start` on."""
    _walk(octets, 0, len(octets), safe, start, rename, 0)


def _walk(
    octets: bytes, at: int, end: int, safe: bytearray, start: int, rename: Rename, depth: int
) -> None:
    """The elements from `at` to `end`, up to one that is not whole."""
    while (element := _element(octets, at, end)) is not None:
        first, stop = element
        tag = octets[at]
        safe[start + at : start + first] = octets[at:first]
        if tag == _BITS and first < stop and octets[first] < 8:
            safe[start + first] = octets[first]  # bits that are not used
            first += 1
        nested = tag & _CONSTRUCTED or (tag in (_BITS, _BYTES) and _is_der(octets, first, stop))
        if nested and depth < MAX_DEPTH:
            _walk(octets, first, stop, safe, start, rename, depth + 1)
        else:
            safe[start + first : start + stop] = _content(
                tag, octets[first:stop], bytes(safe[start + first : start + stop]), rename
            )
        at = stop


def _element(octets: bytes, at: int, end: int) -> tuple[int, int] | None:
    """Begin and end of the content of the element at `at`; None if it is not whole."""
    if at + 2 > end:
        return None
    length, first = octets[at + 1], at + 2
    if length & 0x80:
        count = length & 0x7F
        if count > 4:
            return None
        length = int.from_bytes(octets[first : first + count], "big")
        first += count
    return (first, first + length) if first + length <= end else None


def _is_der(octets: bytes, at: int, end: int) -> bool:
    """True if bytes are exactly one element, as in extensions and keys."""
    if at >= end or octets[at] not in _WITHIN:
        return False
    element = _element(octets, at, end)
    return element is not None and element[1] == end


def _content(tag: int, content: bytes, filler: bytes, rename: Rename) -> bytes:
    """What becomes of a content that has no structure."""
    if tag in _NAMES:
        return rename(content)
    if tag == _ADDRESS:
        return bytes(len(content))
    is_kept = (
        tag in (_BOOLEAN, _NULL)
        or (tag == _INTEGER and len(content) == 1)
        or (tag in _TIMES and len(content) <= 15)
        or (tag == _OID and content.startswith(_PUBLIC_OIDS))
    )
    return content if is_kept else filler
