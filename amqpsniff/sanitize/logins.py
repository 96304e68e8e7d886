"""SASL responses: nothing of them is kept, but for pseudonyms of the user where names have them.

Without pseudonyms all of a response is filler, so that not even the lengths of name and password can
be told apart. With them the user's name stays where it was: in PLAIN between zero octets (RFC 4616),
in AMQPLAIN under LOGIN of a field table.
"""

from __future__ import annotations

from amqpsniff.sanitize.filling import filler
from amqpsniff.sanitize.names import Pseudonyms

_LOGIN = b"\x05LOGINS"
_PASSWORD = b"\x08PASSWORDS"


def safe_login(mechanism: bytes, response: bytes, names: Pseudonyms | None) -> bytes:
    """A response of the same length without credentials; `names` gives the user's pseudonym."""
    if names is None:
        return filler(len(response))
    if mechanism == b"PLAIN" and response.count(b"\0") == 2:
        identity, user, password = response.split(b"\0")
        return b"\0".join((names.name(identity), names.name(user), filler(len(password))))
    if mechanism == b"AMQPLAIN":
        return _amqplain(response, names)
    return filler(len(response))


def _amqplain(response: bytes, names: Pseudonyms) -> bytes:
    made = bytearray(filler(len(response)))
    for label in (_LOGIN, _PASSWORD):
        place = response.find(label)
        start = place + len(label) + 4
        if place < 0 or start > len(response):
            continue
        stop = start + int.from_bytes(response[start - 4 : start], "big")
        if stop > len(response):
            continue
        made[place:start] = response[place:start]
        if label == _LOGIN:
            made[start:stop] = names.name(response[start:stop])
    return bytes(made)
