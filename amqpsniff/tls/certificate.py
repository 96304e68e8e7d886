"""Facts of a certificate: names, issuer, validity, and the RSA modulus.

A walk over the DER that reads these fields and steps over everything else; damaged or unusual
certificates give what can be read. Nothing is verified and nothing raises.

Source: RFC 5280 §4.1 and §4.2.1.6, X.690 §8.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

_SEQUENCE, _SET, _INTEGER, _BITS, _BYTES, _OID = 0x30, 0x31, 0x02, 0x03, 0x04, 0x06
_VERSION, _EXTENSIONS = 0xA0, 0xA3
_DNS_NAME, _ADDRESS = 0x82, 0x87
_COMMON_NAME = bytes.fromhex("550403")
_ALTERNATIVE_NAMES = bytes.fromhex("551d11")
_RSA = bytes.fromhex("2a864886f70d010101")

MAX_NAMES = 16
"""Names kept of one certificate: some have hundreds, and people read a few."""

MAX_NAME_BYTES = 255

KEPT = 64
"""Certificates whose fields are remembered."""


class Certificate(NamedTuple):
    """The readable fields of a certificate, empty or None if unknown.

    Attributes:
        names: Host names and addresses it is for, else its common name.
        issuer: Common name of its issuer.
        expires: Its last day, as `YYYY-MM-DD`.
        modulus: The modulus of its RSA key; None for another kind of key.
    """

    names: tuple[str, ...]
    issuer: str
    expires: str
    modulus: int | None


@lru_cache(maxsize=KEPT)
def read_certificate(octets: bytes) -> Certificate:
    """The fields of one DER certificate; a server shows the same one on every connection."""
    to_be_signed = _first(_first(octets))
    parts = [part for part in _walk(to_be_signed) if part[0] != _VERSION]
    parts += [(0, b"")] * (6 - len(parts))
    issuer, validity, subject, key = (parts[at][1] for at in (2, 3, 4, 5))
    alternatives = _alternative_names(parts[6:])
    names = alternatives or tuple(_common_names(subject))
    return Certificate(
        names[:MAX_NAMES],
        next(_common_names(issuer), ""),
        _end(validity),
        _modulus(key),
    )


def _walk(octets: bytes) -> Iterator[tuple[int, bytes]]:
    """(tag, contents) of the elements one after the other, up to one that is not whole."""
    at = 0
    while at + 2 <= len(octets):
        tag, length = octets[at], octets[at + 1]
        at += 2
        if length & 0x80:
            count = length & 0x7F
            if count > 4:
                return
            length = int.from_bytes(octets[at : at + count], "big")
            at += count
        contents = octets[at : at + length]
        if len(contents) < length:
            return
        yield tag, contents
        at += length


def _first(octets: bytes) -> bytes:
    """The contents of the first element."""
    return next(_walk(octets), (0, b""))[1]


def _common_names(name: bytes) -> Iterator[str]:
    for _, part in _walk(name):
        for _, pair in _walk(part):
            fields = list(_walk(pair))
            if len(fields) == 2 and fields[0][1] == _COMMON_NAME:
                yield _text(fields[1][1])


def _alternative_names(parts: list[tuple[int, bytes]]) -> tuple[str, ...]:
    names: list[str] = []
    for tag, contents in parts:
        if tag != _EXTENSIONS:
            continue
        for _, extension in _walk(_first(contents)):
            fields = list(_walk(extension))
            if fields and fields[0][1] == _ALTERNATIVE_NAMES:
                for kind, value in _walk(_first(fields[-1][1])):
                    if kind == _DNS_NAME:
                        names.append(_text(value))
                    elif kind == _ADDRESS and len(value) in (4, 16):
                        from ipaddress import ip_address

                        names.append(str(ip_address(value)))
    return tuple(names)


def _end(validity: bytes) -> str:
    times = list(_walk(validity))
    if len(times) != 2:
        return ""
    text = times[1][1].decode("ascii", "replace")
    if len(text) == 13:  # UTCTime: two digits of the year
        text = ("20" if text[:2] < "50" else "19") + text
    date = text[:8]
    return f"{date[:4]}-{date[4:6]}-{date[6:]}" if date.isdigit() and len(date) == 8 else ""


def _modulus(key: bytes) -> int | None:
    fields = list(_walk(key))
    if len(fields) != 2 or _first(fields[0][1]) != _RSA:
        return None
    number = next(_walk(_first(fields[1][1][1:])), (0, b""))
    return int.from_bytes(number[1], "big") if number[0] == _INTEGER else None


def _text(octets: bytes) -> str:
    return octets[:MAX_NAME_BYTES].decode("utf-8", "backslashreplace")
