"""Redaction of the parts of a login that a broker quotes in its texts.

A secret that was sent on the connection is taken out of any text of the broker's, wherever it
stands. A broker's own words are not mistaken for it: an ordinary word (lower-case letters or digits
alone, `ORDINARY_OCTETS` at most) is taken out only between quotation marks.

RabbitMQ answers a frame that it cannot read with its octets, as Erlang prints them: `cannot decode
<<0,5,…>>`, blaming the method, or `type 1, all octets = <<0,10,0,11,…>>: unknown_frame`, blaming
none, and `<<"abcd">>` where all of them are printable (measured on RabbitMQ 3.10.8). The frame may
be any piece of a login, for its boundaries may be wrong.

A quote is kept only when it is harmless: empty; of a method that is blamed and carries no secret;
or, once the login is over, all octets of a method or a content header that are numbers, begin with
its class and hold no method that carries a secret. Texts are cut at 255 octets, in a quote too.
"""

import re
from itertools import pairwise

from amqpsniff.decode import plan
from amqpsniff.decode.login import LEAST_SECRET_OCTETS

ORDINARY_OCTETS = 15
"""The longest password that may be one of a broker's words: `authentication` has 14 octets."""

CUT_FROM_OCTETS = 252
"""Octets of a text that may have been cut, with or without dots: a short string holds 255."""

_ALL_OCTETS = re.compile(rb"type ([12]), all octets = <<((?:\d{1,3},)*\d{1,3})(?:>>|\.{0,3}$)")
_ORDINARY = re.compile(rb"[a-z]+|\d+")
_TAIL = re.compile(rb">>(?:: (?:\w+|\{\w+(?:,\d+)*\}))?$")


def redact_quote(text: bytes, blamed: tuple[int, int], past_login: bool) -> bytes | None:
    """A reply text without the octets that it quotes; None when it may be shown as it is.

    Args:
        text: The reply text.
        blamed: (class, method) that the closing method blames; zeros for none.
        past_login: Whether the broker has accepted the client on this connection.
    """
    opened = text.find(b"<<")
    if opened < 0 or (text.startswith(b"<<>>", opened) and text.count(b"<<") == 1):
        return None
    if blamed in plan.harmless_methods or (past_login and _is_harmless(text)):
        return None
    tail = _TAIL.search(text, opened) if len(text) < CUT_FROM_OCTETS else None
    return text[: opened + 2] + b"[redacted]" + (tail[0] if tail else b"")


def without_secrets(text: bytes, secrets: tuple[bytes, ...]) -> bytes | None:
    """A broker's text without these secrets; None when none of them is in it."""
    safe = text
    for secret in secrets:
        if secret in safe:
            safe = _without(safe, secret)
        if len(text) >= CUT_FROM_OCTETS:
            safe = _without_begin(safe, secret)
    return None if safe == text else safe


def _without(text: bytes, secret: bytes) -> bytes:
    """A text without a secret that is in it."""
    if len(secret) > ORDINARY_OCTETS or not _ORDINARY.fullmatch(secret):
        return text.replace(secret, b"[redacted]")
    for mark in (b"'", b'"', b"`"):
        text = text.replace(mark + secret + mark, mark + b"[redacted]" + mark)
    return text


def _without_begin(text: bytes, secret: bytes) -> bytes:
    """A text that was cut, without the begin of a secret at its end."""
    kept = text.rstrip(b".")
    for length in range(min(len(secret), len(kept)), LEAST_SECRET_OCTETS - 1, -1):
        if kept.endswith(secret[:length]):
            return kept[:-length] + b"[redacted]" + text[len(kept) :]
    return text


def _is_harmless(text: bytes) -> bool:
    """Whether a text quotes a method or a content header, and no secret in or behind it."""
    found = _ALL_OCTETS.search(text)
    if found is None or text.count(b"<<") > 1:
        return False
    octets = found[2].split(b",")
    numbers = [256 * int(high) + int(low) for high, low in pairwise(octets)]
    pairs = list(zip(numbers, numbers[2:], strict=False))
    if not pairs or any(pair in plan.secret_methods for pair in pairs):
        return False
    if found[1] == b"1":
        return pairs[0] in plan.harmless_methods
    return pairs[0][0] in plan.content_classes[0] and pairs[0][1] == 0
