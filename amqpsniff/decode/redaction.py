"""Secrets: the frames that may hold one, its position in their bytes, and its replacement.

Logins are methods on channel 0. A frame there is shown only when its method is known, carries no
secret and is one that its sender may send: a damaged login can look like a frame of another type,
or like a method without numbers, with unknown ones or with those of the other side. Where both type
and channel are wrong, its numbers still tell it.

A method whose lengths do not add up may have its secret in any argument, and one of a client's on
channel 0 may be another with wrong numbers. Where the frame is whole that shows at its end; where
its tail is missing, only the secret's own length can tell.

A secret that was sent on the connection is taken out of any text of the broker's, wherever it
stands. A broker's own words are not mistaken for it: an ordinary word (lower-case letters or digits
alone, `ORDINARY_BYTES` at most) is taken out only between quotation marks.

RabbitMQ answers a frame that it cannot read with its bytes, as Erlang prints them: `cannot decode
<<0,5,…>>`, blaming the method, or `type 1, all octets = <<0,10,0,11,…>>: unknown_frame`, blaming
none, and `<<"abcd">>` where all of them are printable (measured on RabbitMQ 3.10.8). The frame may
be any piece of a login, for its boundaries may be wrong.

A quote is kept only when it is harmless: empty; of a method that is blamed and carries no secret;
or, once the login is over, all bytes of a method or a content header that are numbers, begin with
its class and hold no method that carries a secret. Texts are cut at 255 bytes, in a quote too.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Container
from functools import lru_cache
from itertools import pairwise

from amqpsniff.decode import method_layout
from amqpsniff.spec import METHODS, Method

REDACTED = b'"[redacted]"'
"""The replacement of a secret in JSON, of the same length for all."""

HEADER_BYTES = 7
METHOD_BYTES = 4
"""Bytes of a frame header, and of class and method number."""

END_BYTE = 0xCE

_FIXED = {"o": 1, "h": 2, "l": 4, "L": 8, "T": 8}
_COUNTED = {"s": 1, "S": 4, "F": 4, "C": 5}
_CONTENT_TYPES = ("header", "body")

_ROWS: dict[str, list[Method]] = {}
"""Methods by name: one that differs between dialects has several."""

for _method in METHODS:
    _ROWS.setdefault(_method.name, []).append(_method)

SECRET_METHODS = frozenset(method.name for method in METHODS if method.has_secret)
SECRET_NUMBERS = frozenset(
    method.class_id.to_bytes(2, "big") + method.method_id.to_bytes(2, "big")
    for method in METHODS
    if method.has_secret
)
"""What a login begins with, behind its frame's header."""

_SECRET_CLASSES = tuple({f"{method.class_id}." for method in METHODS if method.has_secret})
"""Beginnings of names of unknown methods that may carry a secret."""

LOGIN = b"\x05LOGINS"
PASSWORD = b"\x08PASSWORDS"
"""Names in an AMQPLAIN response, with the tag of a long string behind them."""

MIN_SECRET_BYTES = 4
"""Secrets shorter than this are not looked for: a text holds so few bytes by chance, and the gap
would reveal more than the text."""

MAX_SECRET_BYTES = 255
"""Bytes remembered of a secret: a broker's text holds no more."""

MAX_SECRETS = 8
"""Secrets remembered of a connection, the latest: a client may renew its token without end."""

LONG_LOGIN_BYTES = 1024
"""Payloads of start-ok above this are not kept for their name alone: there may be very many."""

MAX_LOGINS = 256
"""Different logins that are read once, in a quarter of a megabyte."""

ORDINARY_BYTES = 15
"""The longest password that may be one of a broker's words: `authentication` has 14 bytes."""

CUT_FROM_BYTES = 252
"""Bytes of a text that may have been cut, with or without dots: a short string holds 255."""

_ALL_BYTES = re.compile(rb"type ([12]), all octets = <<((?:\d{1,3},)*\d{1,3})(?:>>|\.{0,3}$)")
_ORDINARY = re.compile(rb"[a-z]+|\d+")
_TAIL = re.compile(rb">>(?:: (?:\w+|\{\w+(?:,\d+)*\}))?$")


# which frames may hold a secret, and where


def may_hold_secret(
    frame_type: str, channel: int, method: str | None, sender: str | None = None
) -> bool:
    """True if a frame's payload may hold a secret; arguments as the columns of `frames`.

    Of the methods in `SECRET_METHODS` one argument is secret, of other frames any byte may be.
    """
    if method in SECRET_METHODS:
        return True
    rows = _ROWS.get(method or "")
    if rows is not None:
        return channel == 0 and not any(_is_credible(row, sender) for row in rows)
    if frame_type in _CONTENT_TYPES or (frame_type == "method" and method is not None):
        return channel == 0 or str(method).startswith(_SECRET_CLASSES)
    return frame_type != "protocol-header"


def _is_credible(row: Method, sender: str | None) -> bool:
    """True if a method without secrets is plausible for this side, and not a damaged login."""
    from_other = sender is not None and row.sender not in (sender, "both")
    return row.arguments_known and not from_other


def secret_positions(
    frame_type: str,
    channel: int,
    method: str | None,
    sender: str | None,
    octets: bytes,
    missing: frozenset[int],
) -> range:
    """Positions in a frame's bytes that may hold a secret.

    Args:
        frame_type: This and the next three as the columns of `frames`.
        channel: The channel.
        method: The method's name; None without one, or if it was not captured.
        sender: The sending side; None if unknown.
        octets: The frame with its header and end byte, or its beginning.
        missing: Positions in `octets` that were not captured.
    """
    if frame_type == "protocol-header":
        return range(0)
    begin = HEADER_BYTES + (METHOD_BYTES if method is not None else 0)
    end = len(octets) - 1
    whole_payload = range(begin, max(begin, end))
    size = int.from_bytes(octets[3:HEADER_BYTES], "big")
    if len(octets) == size + HEADER_BYTES + 1 and octets[end] != END_BYTE and end not in missing:
        return range(begin, len(octets))  # its end is unknown: a login may be in it
    rows = _ROWS.get(method or "", [])
    first = HEADER_BYTES + METHOD_BYTES
    positions = (_secret_of(row, octets, first, end, missing) for row in rows)
    exact = [position for position in positions if position is not None]
    if method in SECRET_METHODS:
        return exact[0] if exact and not missing else whole_payload
    if (
        may_hold_secret(frame_type, channel, method, sender)
        or octets[HEADER_BYTES:first] in SECRET_NUMBERS
    ):
        return whole_payload
    # a client's method whose arguments do not fill its payload may be another method
    doubtful = channel == 0 and sender != "server" and any(row.sender != "server" for row in rows)
    return whole_payload if doubtful and not exact else range(0)


def adds_up(index: int, payload: bytes, size: int) -> bool:
    """True if the arguments of a cut method end with it; False if too few bytes were captured.

    Args:
        index: The method, in `METHODS`.
        payload: What was captured, class and method numbers included.
        size: Bytes of the payload as the frame says.
    """
    missing = range(len(payload), size)
    return _secret_of(METHODS[index], payload, METHOD_BYTES, size, missing) is not None


def _secret_of(
    row: Method, octets: bytes, at: int, end: int, missing: Container[int]
) -> range | None:
    """Position of the secret of a method whose arguments begin at `at`, empty without one.

    None if the arguments do not end at `end`, or if a length is missing.
    """
    position, bits = range(0), 0
    for argument in row.arguments:
        if argument.type == "b":
            at += bits & 7 == 0
            bits += 1
            continue
        bits = 0
        counted = _COUNTED.get(argument.type, 0)
        start = at + counted
        if any(index in missing for index in range(at, start)):
            return None
        length = int.from_bytes(octets[max(at, start - 4) : start], "big")
        at = start + _FIXED.get(argument.type, length)
        if argument.secret:
            position = range(start, at)
    return position if at == end else None


def is_in_place(index: int, payload: bytes, size: int) -> bool:
    """True if the secret of a cut method is at its proper position, or wholly behind the cut.

    The position is proper if the secret reaches to the cut, and not beyond the frame: after a wrong
    length, other bytes stand for the secret's length, and mean gigabytes. A table that reaches
    beyond the cut is enough, because a table is self-checking. A text is not.

    Args:
        index: The method, in `METHODS`.
        payload: What was captured, class and method numbers included.
        size: Bytes of the payload as the frame says.
    """
    at = 4
    for argument in METHODS[index].arguments:
        start = at + _COUNTED[argument.type]
        if start > len(payload):
            return False
        at = start + int.from_bytes(payload[at:start], "big")
        if argument.secret:
            return len(payload) <= at <= size
        if at > len(payload):
            return argument.type == "F" and at <= size
    return False


# the name and the secrets of a login


def without_properties(payload: bytes) -> bytes:
    """A start-ok's payload without the client properties. Only the login is left, so that
    connections with different names have equal payloads.
    """
    return payload[:4] + bytes(4) + payload[8 + int.from_bytes(payload[4:8], "big") :]


def shortened(payload: bytes) -> bytes:
    """A short start-ok's payload with the same name; empty if it has no name or a long one."""
    name = login_name(payload)
    if name is None or len(name) > LONG_LOGIN_BYTES:
        return b""
    response = b"\0" + name.encode() + b"\0"
    return payload[:4] + bytes(4) + b"\x05PLAIN" + struct.pack(">I", len(response)) + response


def login_name(payload: bytes) -> str | None:
    """The user's name in a start-ok's payload, class and method numbers included; payloads that
    are alike are read once.

    Of the mechanisms PLAIN (RFC 4616: authorization id, name, password, between zero bytes) and
    AMQPLAIN (a field table with LOGIN and PASSWORD). Null for others, when it is cut, and when it
    is not exactly that: the bytes in the name's place may be the password then.
    """
    return (_known_name if len(payload) <= LONG_LOGIN_BYTES else _login_name)(payload)


def _login_name(payload: bytes) -> str | None:
    try:
        at = 8 + struct.unpack_from(">I", payload, 4)[0]
        mechanism = payload[at + 1 : at + 1 + payload[at]]
        at += 1 + len(mechanism)
        size = struct.unpack_from(">I", payload, at)[0]
        response = payload[at + 4 : at + 4 + size]
        if mechanism == b"PLAIN":
            _, name, _ = response.split(b"\0")
        elif mechanism == b"AMQPLAIN":
            start = response.index(LOGIN) + len(LOGIN)
            length = struct.unpack_from(">I", response, start)[0]
            name = response[start + 4 : start + 4 + length]
            if len(name) < length or PASSWORD in name:
                return None
        else:
            return None
    except (IndexError, ValueError, struct.error):
        return None
    return name.decode(errors="replace")


_known_name = lru_cache(MAX_LOGINS)(_login_name)


def with_secrets(
    earlier: tuple[bytes, ...] | None, method: int, payload: bytes
) -> tuple[bytes, ...] | None:
    """The secrets of a connection with those of another method, the latest first; connections with
    equal secrets share one object.

    Args:
        known: The secrets before it, or None.
        method: Its index in `METHODS`.
        payload: Its captured payload, class and method numbers included.
    """
    add = _known_secrets if len(payload) <= LONG_LOGIN_BYTES else _with_secrets
    return add(earlier, method, payload)


def _with_secrets(
    earlier: tuple[bytes, ...] | None, method: int, payload: bytes
) -> tuple[bytes, ...] | None:
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
            if len(secret) < MIN_SECRET_BYTES or secret == (login_name(payload) or "").encode():
                return earlier
            secrets = (secret[:MAX_SECRET_BYTES], *(earlier or ()))
            return _alike(tuple(dict.fromkeys(secrets))[:MAX_SECRETS])
    return earlier


_known_secrets = lru_cache(MAX_LOGINS)(_with_secrets)
_alike: Callable[[tuple[bytes, ...]], tuple[bytes, ...]] = lru_cache(MAX_LOGINS)(tuple)
"""Gives one object for secrets that are equal: very many connections have one password."""


def password(mechanism: bytes, response: bytes) -> bytes:
    """The secret part of a SASL response; the whole response for an unknown mechanism."""
    if mechanism == b"PLAIN":
        return response.rpartition(b"\0")[2]
    if mechanism == b"AMQPLAIN":
        return response.partition(PASSWORD)[2][4:]
    return response


# texts of the broker


def redact_quote(text: bytes, blamed: tuple[int, int], past_login: bool) -> bytes | None:
    """A reply text without the bytes that it quotes; None if it may be shown unchanged.

    Args:
        text: The reply text.
        blamed: (class, method) that the closing method blames; zeros without one.
        past_login: True if the broker has accepted the client on this connection.
    """
    opened = text.find(b"<<")
    if opened < 0 or (text.startswith(b"<<>>", opened) and text.count(b"<<") == 1):
        return None
    if blamed in method_layout.harmless_methods or (past_login and _is_harmless(text)):
        return None
    tail = _TAIL.search(text, opened) if len(text) < CUT_FROM_BYTES else None
    return text[: opened + 2] + b"[redacted]" + (tail[0] if tail else b"")


def without_secrets(text: bytes, secrets: tuple[bytes, ...]) -> bytes | None:
    """A broker's text without these secrets; None if it does not contain them."""
    safe = text
    for secret in secrets:
        if secret in safe:
            safe = _without(safe, secret)
        if len(text) >= CUT_FROM_BYTES:
            safe = _without_begin(safe, secret)
    return None if safe == text else safe


def _without(text: bytes, secret: bytes) -> bytes:
    """A text without a secret that is in it."""
    if len(secret) > ORDINARY_BYTES or not _ORDINARY.fullmatch(secret):
        return text.replace(secret, b"[redacted]")
    for mark in (b"'", b'"', b"`"):
        text = text.replace(mark + secret + mark, mark + b"[redacted]" + mark)
    return text


def _without_begin(text: bytes, secret: bytes) -> bytes:
    """A text that was cut, without the begin of a secret at its end."""
    trimmed = text.rstrip(b".")
    for length in range(min(len(secret), len(trimmed)), MIN_SECRET_BYTES - 1, -1):
        if trimmed.endswith(secret[:length]):
            return trimmed[:-length] + b"[redacted]" + text[len(trimmed) :]
    return text


def _is_harmless(text: bytes) -> bool:
    """True if a text quotes a method or a content header, and no secret in or behind it."""
    match = _ALL_BYTES.search(text)
    if match is None or text.count(b"<<") > 1:
        return False
    octets = match[2].split(b",")
    numbers = [256 * int(high) + int(low) for high, low in pairwise(octets)]
    pairs = list(zip(numbers, numbers[2:], strict=False))
    if not pairs or any(pair in method_layout.secret_methods for pair in pairs):
        return False
    if match[1] == b"1":
        return pairs[0] in method_layout.harmless_methods
    return pairs[0][0] in method_layout.content_classes[0] and pairs[0][1] == 0
