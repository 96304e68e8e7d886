"""What a side spoke that did not speak AMQP, by its first octets."""

import re

_MQTT = re.compile(rb"[\x80-\xff]{0,3}[\x00-\x7f]\x00(?:\x04MQTT|\x06MQIs)", re.DOTALL)
"""Behind the first octet: the length of what follows, in up to four octets, and the name."""

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
)


def name_protocol(octets: bytes, side: str = "client") -> str:
    """Name of the protocol that begins with these octets, or the octets themselves in hex."""
    for prefix, name in _PREFIXES:
        if octets.startswith(prefix[: len(octets)]) and len(octets) >= min(4, len(prefix)):
            return f"the {side}'s first octets are those of {name}"
    if octets[:1] == b"\x10" and _MQTT.match(octets, 1):
        return f"the {side}'s first octets are those of MQTT"
    return f"the {side}'s first octets are {octets.hex(' ') or 'none'}"
