"""SASL responses: the user is a hidden name, the rest is filler.

The positions of name and password are known for PLAIN (between zero bytes, RFC 4616) and AMQPLAIN
(LOGIN and PASSWORD of a field table); their separators stay, so that there still is a user, and
pseudonyms show which users are the same. Responses of other mechanisms become filler.
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
    safe = bytearray(filler(len(response)))
    for label in (LOGIN, PASSWORD):
        label_at = response.find(label)
        start = label_at + len(label) + 4
        if label_at < 0 or start > len(response):
            continue
        stop = start + int.from_bytes(response[start - 4 : start], "big")
        if stop > len(response):
            continue
        safe[label_at:start] = response[label_at:start]
        if label == LOGIN:
            safe[start:stop] = hide(response[start:stop])
    return bytes(safe)
