"""What a client says to a proxy before its first octets of AMQP: SOCKS 4, 4a and 5, HTTP CONNECT.

The client asks the proxy for a connection to the broker, waits for the answer and goes on in the
same TCP connection as if it were that connection. All that stands in its direction before AMQP can
be read there alone, so it is skipped as one header: of SOCKS 5 the methods it offers, name and
password where one of them asks for these, and the request. What the proxy answers is passed over by
the search for the broker's first frame.

Sources: RFC 1928, RFC 1929, the SOCKS 4A note, RFC 9110 §9.3.6.
"""

from amqpsniff.decode.proxied import header_octets

MAX_REQUEST_OCTETS = 8192
"""Longest HTTP request that is taken for one, fields included: what servers commonly allow."""

MAX_NAME_OCTETS = 255
"""Longest text of SOCKS 4, as SOCKS 5 has it; there it ends with a zero and has no length."""

MAX_PREAMBLE_OCTETS = 16 + 0xFFFF
"""The longest of all: version 2 of the PROXY protocol."""

_CONNECT = b"CONNECT "
_END = b"\r\n\r\n"
_IPV4, _NAME, _IPV6 = 1, 3, 4


def preamble_octets(octets: bytes, opened: bool) -> int:
    """How long what is said to or by a proxy is that a stream's first octets are, or begin.

    0 where they begin none. A request is only believed of a connection whose beginning was
    captured (`opened`).
    """
    length = header_octets(octets)
    return request_octets(octets) if length == 0 and opened else length


def request_octets(octets: bytes) -> int:
    """How long the request is that these octets are, or begin; 0 when they begin none.

    Where that is more than there are, it is how many there must be to tell more.
    """
    if octets[:1] == b"\x05":
        return _socks_5(octets)
    if octets[:2] == b"\x04\x01"[: len(octets)]:
        return _socks_4(octets)
    if octets[: len(_CONNECT)] != _CONNECT[: len(octets)]:
        return 0
    end = octets.find(_END, 0, MAX_REQUEST_OCTETS)
    if end >= 0:
        return end + len(_END)
    return max(len(_CONNECT), len(octets) + 1) if len(octets) < MAX_REQUEST_OCTETS else 0


def safe_request(octets: bytes) -> bytes:
    """A request as long and of the same kind, without hosts, names and passwords.

    Octets that are no whole request become zeros.
    """
    if request_octets(octets) != len(octets):
        return bytes(len(octets))
    if octets[:1] == b"\x05":
        return _safe_socks_5(octets)
    if octets[:1] == b"\x04":
        address = b"\0\0\0\1" if octets[4:7] == b"\0\0\0" and octets[7] else b"\1\0\0\1"
        texts = bytes(one and ord("x") for one in octets[8:])
        return octets[:2] + b"\0\0" + address + texts
    rest = octets[len(_CONNECT) : -len(_END)]
    return _CONNECT + bytes(one if one in b"\r\n " else ord("x") for one in rest) + _END


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
        end = octets.find(0, at, at + MAX_NAME_OCTETS + 1)
        if end < 0:
            return len(octets) + 1 if len(octets) <= at + MAX_NAME_OCTETS else 0
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
