"""Who logs in: the name in `connection.start-ok`, and the secrets that are sent.

Secrets are remembered to be taken out of what the broker says later; see `quotes`.
"""

from __future__ import annotations

import struct

from amqpsniff.spec import METHODS

LOGIN = b"\x05LOGINS"
PASSWORD = b"\x08PASSWORDS"
"""Names in an AMQPLAIN response, with the tag of a long string behind them."""


LEAST_SECRET_OCTETS = 4
"""Secrets shorter than this are not looked for: a text holds so few octets by chance, and what is
taken out of it would say more than what stays."""

MOST_SECRET_OCTETS = 255
"""Octets remembered of a secret: a broker's text holds no more."""

MOST_SECRETS = 8
"""Secrets remembered of a connection, the latest: a client may renew its token without end."""

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


def with_secrets(
    known: tuple[bytes, ...] | None, method: int, payload: bytes
) -> tuple[bytes, ...] | None:
    """The secrets of a connection, and those of another method, the latest first.

    Args:
        known: Those before it; null where there are none.
        method: Its index in `METHODS`.
        payload: Its payload, class and method numbers included, or what was captured of it.
    """
    mechanism, at = b"", 4
    for argument in METHODS[method].arguments:
        counted = 1 if argument.type == "s" else 4
        start = at + counted
        at = start + int.from_bytes(payload[at:start], "big")
        value = payload[start:at]
        if argument.name == "mechanism":
            mechanism = value
        if argument.secret:
            secret = password(mechanism, value)
            if len(secret) < LEAST_SECRET_OCTETS or secret == (login_name(payload) or "").encode():
                return known
            found = (secret[:MOST_SECRET_OCTETS], *(known or ()))
            return tuple(dict.fromkeys(found))[:MOST_SECRETS]
    return known


def password(mechanism: bytes, response: bytes) -> bytes:
    """What a SASL response has to keep secret: of an unknown mechanism's, all."""
    if mechanism == b"PLAIN":
        return response.rpartition(b"\0")[2]
    if mechanism == b"AMQPLAIN":
        return response.partition(PASSWORD)[2][4:]
    return response
