"""A proxy's header: it stays a header of its kind and length, and its addresses become zeros."""

from __future__ import annotations

import re

from amqpsniff.decode.preamble import SIGNATURE, header_bytes, safe_request

_VERSION_2_BYTES = 16


def safe_proxy_header(octets: bytes) -> bytes:
    """What a client said to a proxy, without addresses, ports, fields, names and passwords."""
    if not header_bytes(octets):
        return safe_request(octets)
    if octets.startswith(SIGNATURE):
        kept = octets[:_VERSION_2_BYTES]
        return kept + bytes(len(octets) - len(kept))
    begin, blank, rest = octets.partition(b" ")
    family, second, addresses = rest.partition(b" ")
    hidden = re.sub(rb"[^\s.:]", b"0", addresses)
    return begin + blank + family + second + hidden
