"""The first bytes of a connection: another protocol, or a header or request for a proxy.

A proxy puts the header of the PROXY protocol before a client's first bytes. Version 1 is one line
of text, `PROXY TCP4 192.0.2.1 192.0.2.2 40000 5672`. Version 2 is a signature, four bytes, and as
many more as the last two of these say: addresses, then fields of type, length and value. The client
behind the proxy is not remembered.

A client asks a proxy for a connection to the broker with SOCKS 4, 4a or 5 or with HTTP CONNECT,
waits for the answer and continues in the same TCP connection. All of it that is in the client's
direction before AMQP is skipped as one header: of SOCKS 5 the methods it offers, name and password
where one of them asks for these, and the request. The search for the broker's first frame passes
over what the proxy answers.

Sources: RFC 1928, RFC 1929, the SOCKS 4A note, RFC 9110 §9.3.6, the PROXY protocol of HAProxy.
"""

import re

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
"""Begins version 2."""

_TEXT = b"PROXY "
_FAMILIES = (b"TCP4 ", b"TCP6 ", b"UNKNOWN")
_SHORTEST_LINE = len(b"PROXY UNKNOWN\r\n")

MAX_LINE_BYTES = 107
"""The longest line of version 1; of version 2 the length has 16 bits, so neither can grow."""

MAX_REQUEST_BYTES = 8192
"""Longest HTTP request that is taken for one, fields included: what servers commonly allow."""

MAX_NAME_BYTES = 255
"""Longest text of SOCKS 4, same limit as in SOCKS 5; in SOCKS 4 it ends with a zero."""

MAX_PREAMBLE_BYTES = 16 + 0xFFFF
"""The longest of all: version 2 of the PROXY protocol."""

_CONNECT = b"CONNECT "
_END = b"\r\n\r\n"
_IPV4, _NAME, _IPV6 = 1, 3, 4

_MQTT = re.compile(rb"[\x80-\xff]{0,3}[\x00-\x7f]\x00(?:\x04MQTT|\x06MQIs)", re.DOTALL)
"""Behind the first octet: the length of what follows, in up to four bytes, and the name."""

SHOWN_BYTES = 8
"""Bytes shown of a protocol without a name: as many as a protocol header has, and a broker logs.
Others may hold a password, such as that of a proxy."""

_PREFIXES = (
    (b"\x16\x03", "TLS"),
    (b"GET ", "HTTP"),
    (b"PUT ", "HTTP"),
    (b"POST", "HTTP"),
    (b"HEAD", "HTTP"),
    (b"PRI ", "HTTP/2"),
    (b"OPTI", "HTTP"),
    (b"SSH-", "SSH"),
    (b"PROXY ", "the PROXY protocol"),
    (b"\r\n\r\n\x00\r\nQUIT\n", "the PROXY protocol"),
    (b"CONNECT\n", "STOMP"),
    (b"CONNECT ", "HTTP"),
    (b"HTTP", "HTTP"),
    (b"\x15\x03", "TLS"),
    (b"STOMP\n", "STOMP"),
    (b"\x04\x01", "SOCKS 4"),
    (b"\x05\x01", "SOCKS 5"),
    (b"\x05\x02", "SOCKS 5"),
    (b"\x05\x03", "SOCKS 5"),
)

_AMQP_1_0 = re.compile(
    rb"(\0[\0-\x10]..)\x02[\0\1]..\0\x53"
    rb"(?:([\x10-\x18\x40-\x44])(?:\x45|\xc0(.)|\xd0(....)))",
    re.DOTALL,
)
"""The beginning of a frame of AMQP 1.0: size, where its body begins, type (AMQP or SASL), channel;
a descriptor (of open to close, or of SASL) and a list with its size (AMQP 1.0, parts 1 and 2)."""

_TRANSFER = b"\x14"
"""The one that has a payload behind its list."""


def may_open(octets: bytes) -> bool | None:
    """True if bytes begin a connection, with AMQP or a proxy's header; None if too few."""
    for opening in (b"AMQP", SIGNATURE, _TEXT):
        if octets[: len(opening)] == opening[: len(octets)]:
            return True if len(octets) >= len(opening) else None
    return False


FIRST_BYTES_OF_PREAMBLES = bytes((SIGNATURE[0], _TEXT[0], _CONNECT[0], 4, 5))
"""For other first bytes `preamble_bytes` need not be called."""


def preamble_bytes(octets: bytes, opened: bool) -> int:
    """Length of the proxy header or request that a stream's first bytes are, or begin.

    0 for other bytes. A request is accepted only if the beginning of the connection was captured
    (`opened`).
    """
    length = header_bytes(octets)
    return request_bytes(octets) if length == 0 and opened else length


def header_bytes(octets: bytes) -> int:
    """Length of the proxy header that these bytes are, or begin; 0 for other bytes.

    A length beyond these bytes is the number of bytes needed to continue.
    """
    if octets[: len(SIGNATURE)] == SIGNATURE[: len(octets)]:
        if len(octets) < 16:
            return 16
        return 16 + int.from_bytes(octets[14:16], "big") if octets[12] >> 4 == 2 else 0
    if octets[: len(_TEXT)] != _TEXT[: len(octets)]:
        return 0
    family = octets[len(_TEXT) :]
    if not any(family[: len(start)] == start[: len(family)] for start in _FAMILIES):
        return 0
    end = octets.find(b"\r\n", 0, MAX_LINE_BYTES)
    if end >= 0:
        return end + 2
    return max(_SHORTEST_LINE, len(octets) + 1) if len(octets) < MAX_LINE_BYTES else 0


def request_bytes(octets: bytes) -> int:
    """Length of the proxy request that these bytes are, or begin; 0 for other bytes.

    A length beyond these bytes is the number of bytes needed to continue.
    """
    if octets[:1] == b"\x05":
        return _socks_5(octets)
    if octets[:2] == b"\x04\x01"[: len(octets)]:
        return _socks_4(octets)
    if octets[: len(_CONNECT)] != _CONNECT[: len(octets)]:
        return 0
    end = octets.find(_END, 0, MAX_REQUEST_BYTES)
    if end >= 0:
        return end + len(_END)
    return max(len(_CONNECT), len(octets) + 1) if len(octets) < MAX_REQUEST_BYTES else 0


def safe_request(octets: bytes) -> bytes:
    """A request as long and of the same kind, without hosts, names and passwords.

    Bytes that are no whole request become zeros.
    """
    if request_bytes(octets) != len(octets):
        return bytes(len(octets))
    if octets[:1] == b"\x05":
        return _safe_socks_5(octets)
    if octets[:1] == b"\x04":
        address = b"\0\0\0\1" if octets[4:7] == b"\0\0\0" and octets[7] else b"\1\0\0\1"
        texts = bytes(octet and ord("x") for octet in octets[8:])
        return octets[:2] + b"\0\0" + address + texts
    host = octets[len(_CONNECT) : -len(_END)]
    return _CONNECT + bytes(octet if octet in b"\r\n " else ord("x") for octet in host) + _END


def _safe_socks_5(octets: bytes) -> bytes:
    at = 2 + octets[1]
    safe = octets[:at]
    if octets[at] == 1:
        for before in (1, 0):
            length = octets[at + before]
            safe += octets[at : at + before + 1] + b"x" * length
            at += before + 1 + length
    if octets[at + 3] == _NAME:
        return safe + octets[at : at + 5] + b"x" * octets[at + 4] + b"\0\0"
    return safe + octets[at : at + 4] + bytes(len(octets) - at - 4)


def _socks_4(octets: bytes) -> int:
    """Version, command, port, address, a name; with the address 0.0.0.x a host as well."""
    if len(octets) < 8:
        return 9
    texts = 2 if octets[4:7] == b"\0\0\0" and octets[7] else 1
    at = 8
    for _ in range(texts):
        end = octets.find(0, at, at + MAX_NAME_BYTES + 1)
        if end < 0:
            return len(octets) + 1 if len(octets) <= at + MAX_NAME_BYTES else 0
        at = end + 1
    return at


def _socks_5(octets: bytes) -> int:
    """Methods; name and password; version, command, 0, kind of address, address and port."""
    if len(octets) < 2:
        return 2
    if octets[1] == 0:
        return 0
    at = 2 + octets[1]
    if len(octets) <= at:
        return at + 1
    if octets[at] == 1:
        for before in (1, 0):  # a version stands before the first of the two texts
            if len(octets) <= at + before:
                return at + before + 1
            at += before + 1 + octets[at + before]
    if len(octets) < at + 5:
        return at + 5 if octets[at : at + 3] == b"\5\1\0"[: len(octets[at : at + 3])] else 0
    if octets[at : at + 3] != b"\5\1\0":
        return 0
    lengths = {_IPV4: 4, _NAME: 1 + octets[at + 4], _IPV6: 16}
    length = lengths.get(octets[at + 3])
    return at + 4 + length + 2 if length else 0


def is_amqp_1_0(octets: bytes) -> bool:
    """True if bytes begin with a frame of AMQP 1.0 whose sizes agree."""
    frame = _AMQP_1_0.match(octets)
    if frame is None:
        return False
    size, kind, *sizes = frame.groups()
    count = next((candidate for candidate in sizes if candidate is not None), b"")
    end = frame.end() + int.from_bytes(count, "big")
    if kind == _TRANSFER:
        return end < int.from_bytes(size, "big")
    return end == int.from_bytes(size, "big")


def name_protocol(octets: bytes, side: str = "client") -> str:
    """Name of the protocol that begins with these bytes, or the bytes themselves in hex."""
    for prefix, name in _PREFIXES:
        if octets.startswith(prefix[: len(octets)]) and len(octets) >= min(4, len(prefix)):
            return f"the {side}'s first bytes are those of {name}"
    if octets[:1] == b"\x10" and _MQTT.match(octets, 1):
        return f"the {side}'s first bytes are those of MQTT"
    return f"the {side}'s first bytes are {octets[:SHOWN_BYTES].hex(' ') or 'none'}"
