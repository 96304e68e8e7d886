"""Names of protocols other than AMQP 0-8, 0-9 and 0-9-1, by the first octets of a side."""

import re

_MQTT = re.compile(rb"[\x80-\xff]{0,3}[\x00-\x7f]\x00(?:\x04MQTT|\x06MQIs)", re.DOTALL)
"""Behind the first octet: the length of what follows, in up to four octets, and the name."""

SHOWN_OCTETS = 8
"""Octets shown of a protocol without a name: as many as a protocol header has, and a broker logs.
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


def is_amqp_1_0(octets: bytes) -> bool:
    """True if octets begin with a frame of AMQP 1.0 whose sizes agree."""
    frame = _AMQP_1_0.match(octets)
    if frame is None:
        return False
    size, kind, *sizes = frame.groups()
    count = next((one for one in sizes if one is not None), b"")
    end = frame.end() + int.from_bytes(count, "big")
    if kind == _TRANSFER:
        return end < int.from_bytes(size, "big")
    return end == int.from_bytes(size, "big")


def name_protocol(octets: bytes, side: str = "client") -> str:
    """Name of the protocol that begins with these octets, or the octets themselves in hex."""
    for prefix, name in _PREFIXES:
        if octets.startswith(prefix[: len(octets)]) and len(octets) >= min(4, len(prefix)):
            return f"the {side}'s first octets are those of {name}"
    if octets[:1] == b"\x10" and _MQTT.match(octets, 1):
        return f"the {side}'s first octets are those of MQTT"
    return f"the {side}'s first octets are {octets[:SHOWN_OCTETS].hex(' ') or 'none'}"
