"""Who logs in: the name in `connection.start-ok`, and nothing of the secret beside it."""

from __future__ import annotations

import struct

_LOGIN = b"\x05LOGINS"


def login_name(payload: bytes) -> str | None:
    """The user's name in a start-ok's payload, class and method numbers included.

    Of the mechanisms PLAIN (RFC 4616: authorization id, name, password, between zero octets) and
    AMQPLAIN (a field table with LOGIN and PASSWORD). Null for others and when it is cut.
    """
    try:
        at = 8 + struct.unpack_from(">I", payload, 4)[0]
        mechanism = payload[at + 1 : at + 1 + payload[at]]
        at += 1 + len(mechanism)
        size = struct.unpack_from(">I", payload, at)[0]
        response = payload[at + 4 : at + 4 + size]
        if mechanism == b"PLAIN":
            return _text(response.split(b"\0")[1])
        if mechanism == b"AMQPLAIN":
            place = response.index(_LOGIN) + len(_LOGIN)
            length = struct.unpack_from(">I", response, place)[0]
            return _text(response[place + 4 : place + 4 + length])
    except (IndexError, ValueError, struct.error):
        return None
    return None


def _text(octets: bytes) -> str:
    return octets.decode(errors="replace")
