"""The PROXY protocol: the header that a proxy puts before a client's first octets.

Version 1 is one line of text, `PROXY TCP4 192.0.2.1 192.0.2.2 40000 5672`. Version 2 is a
signature, four octets, and as many more as the last two of these say: addresses, then fields of
type, length and value. Both are skipped; who the client behind the proxy is, is not remembered.
"""

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
"""Begins version 2."""

_TEXT = b"PROXY "
_FAMILIES = (b"TCP4 ", b"TCP6 ", b"UNKNOWN")
_SHORTEST_LINE = len(b"PROXY UNKNOWN\r\n")

MAX_LINE_OCTETS = 107
"""The longest line of version 1; of version 2 the length has 16 bits, so neither can grow."""


def header_octets(octets: bytes) -> int:
    """How long the header is that these octets are, or begin; 0 when they begin none.

    Where that is more than there are, it is how many there must be to tell more.
    """
    if octets[: len(SIGNATURE)] == SIGNATURE[: len(octets)]:
        if len(octets) < 16:
            return 16
        return 16 + int.from_bytes(octets[14:16], "big") if octets[12] >> 4 == 2 else 0
    if octets[: len(_TEXT)] != _TEXT[: len(octets)]:
        return 0
    family = octets[len(_TEXT) :]
    if not any(family[: len(each)] == each[: len(family)] for each in _FAMILIES):
        return 0
    end = octets.find(b"\r\n", 0, MAX_LINE_OCTETS)
    if end >= 0:
        return end + 2
    return max(_SHORTEST_LINE, len(octets) + 1) if len(octets) < MAX_LINE_OCTETS else 0


def may_open(octets: bytes) -> bool | None:
    """Whether octets begin a connection, with AMQP or a proxy's header; None: too few to tell."""
    for opening in (b"AMQP", SIGNATURE, _TEXT):
        if octets[: len(opening)] == opening[: len(octets)]:
            return True if len(octets) >= len(opening) else None
    return False
