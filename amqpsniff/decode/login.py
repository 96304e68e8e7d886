"""Who logs in: the name in `connection.start-ok`, and nothing of the secret beside it."""

from __future__ import annotations

import struct

LOGIN = b"\x05LOGINS"
PASSWORD = b"\x08PASSWORDS"
"""Names in an AMQPLAIN response, with the tag of a long string behind them."""


LONG_LOGIN_OCTETS = 1024
"""Payloads of start-ok above this are not kept for their name alone: there may be very many."""


def shortened(payload: bytes) -> bytes:
    """A start-ok's payload that gives the same name, and is short; empty where there is none."""
    name = login_name(payload)
    if name is None or len(name) > LONG_LOGIN_OCTETS:
        return b""
    response = b"\0" + name.encode() + b"\0"
    return payload[:4] + bytes(4) + b"\x05PLAIN" + struct.pack(">I", len(response)) + response


def login_name(payload: bytes) -> str | None:
    """The user's name in a start-ok's payload, class and method numbers included.

    Of the mechanisms PLAIN (RFC 4616: authorization id, name, password, between zero octets) and
    AMQPLAIN (a field table with LOGIN and PASSWORD). Null for others, when it is cut, and when it
    is not exactly that: what stands in the name's place may be the password then.
    """
    try:
        at = 8 + struct.unpack_from(">I", payload, 4)[0]
        mechanism = payload[at + 1 : at + 1 + payload[at]]
        at += 1 + len(mechanism)
        size = struct.unpack_from(">I", payload, at)[0]
        response = payload[at + 4 : at + 4 + size]
        if mechanism == b"PLAIN":
            _, name, _ = response.split(b"\0")
        elif mechanism == b"AMQPLAIN":
            place = response.index(LOGIN) + len(LOGIN)
            length = struct.unpack_from(">I", response, place)[0]
            name = response[place + 4 : place + 4 + length]
            if len(name) < length or PASSWORD in name:
                return None
        else:
            return None
    except (IndexError, ValueError, struct.error):
        return None
    return name.decode(errors="replace")
