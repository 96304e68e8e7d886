"""A proxy's header: it stays a header of its kind and length, and its addresses become zeros."""

from __future__ import annotations

import re

from amqpsniff.decode.proxied import SIGNATURE

_VERSION_2_OCTETS = 16


def safe_proxy_header(octets: bytes) -> bytes:
    """A header of the PROXY protocol, of either version, without addresses, ports and fields."""
    if octets.startswith(SIGNATURE):
        kept = octets[:_VERSION_2_OCTETS]
        return kept + bytes(len(octets) - len(kept))
    begin, blank, rest = octets.partition(b" ")
    family, second, addresses = rest.partition(b" ")
    hidden = re.sub(rb"[^\s.:]", b"0", addresses)
    return begin + blank + family + second + hidden
