"""SASL responses: the user is a hidden name, the rest is filler.

Where a name and a password stand can be told of PLAIN (between zero bytes, RFC 4616) and of
AMQPLAIN (LOGIN and PASSWORD of a field table); what separates them stays, so that there still is a
user, and with pseudonyms it can be told who is the same. Of other mechanisms all is filler.
"""

from __future__ import annotations

from collections.abc import Callable

from amqpsniff.decode.redaction import LOGIN, PASSWORD
from amqpsniff.sanitize.policy import filler

Hide = Callable[[bytes], bytes]
"""Replaces a user's name by one of its length."""


def safe_login(mechanism: bytes, response: bytes, hide: Hide) -> bytes:
    """A response of the same length without credentials."""
    if mechanism == b"PLAIN" and response.count(b"\0") == 2:
        identity, user, password = response.split(b"\0")
        return b"\0".join((hide(identity), hide(user), filler(len(password))))
    if mechanism == b"AMQPLAIN":
        return _amqplain(response, hide)
    return filler(len(response))


def _amqplain(response: bytes, hide: Hide) -> bytes:
    made = bytearray(filler(len(response)))
    for label in (LOGIN, PASSWORD):
        place = response.find(label)
        start = place + len(label) + 4
        if place < 0 or start > len(response):
            continue
        stop = start + int.from_bytes(response[start - 4 : start], "big")
        if stop > len(response):
            continue
        made[place:start] = response[place:start]
        if label == LOGIN:
            made[start:stop] = hide(response[start:stop])
    return bytes(made)
