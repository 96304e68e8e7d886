"""Differences without the credentials in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amqpsniff.decode.redaction import (
    SECRET_METHODS,
    may_hold_secret,
    password,
    redact_quote,
    without_secrets,
)
from amqpsniff.opinion.difference import Difference
from amqpsniff.opinion.sighting import Ours
from amqpsniff.opinion.values import Table, bytes_of

REDACTED = "[redacted]"

_QUOTING = ("reply_text", "reason", "challenge")
"""Arguments in which a broker may quote bytes of a login, and what tshark may take them for."""


def redacted(difference: Difference, secrets: tuple[bytes, ...] = ()) -> Difference:
    """The difference with what may be a secret replaced.

    Of a method that carries a secret, or may, no value is shown; of reply texts, what they quote is
    not, nor are `secrets` that were sent on the connection before.
    """
    frame = difference.our_frame or difference.their_frame
    kind = "method" if frame is None else frame.kind
    may_be_secret = may_hold_secret(kind, difference.channel, difference.method)
    safe: Callable[[Any, tuple[bytes, ...]], Any]
    if may_be_secret and difference.name is not None:
        safe = _hidden
    elif difference.name in _QUOTING:
        safe = _unquoted
    else:
        return difference
    ours, theirs = safe(difference.ours, secrets), safe(difference.theirs, secrets)
    return difference._replace(ours=ours, theirs=theirs)


def sent_secret(frame: Ours) -> bytes:
    """The secret that a frame carries, read with secrets shown; empty without one."""
    if frame.method not in SECRET_METHODS or not isinstance(frame.arguments, Table):
        return b""
    values = dict(frame.arguments)
    response = bytes_of(values.get("response", values.get("new_secret"))) or b""
    return password(bytes_of(values.get("mechanism")) or b"", response)


def _hidden(value: Any, _: tuple[bytes, ...]) -> Any:
    return None if value is None else REDACTED


def _unquoted(value: Any, secrets: tuple[bytes, ...]) -> Any:
    if not isinstance(value, str):
        return value
    text = value.encode(errors="surrogatepass")
    text = redact_quote(text, (0, 0), False) or text
    return (without_secrets(text, secrets) or text).decode(errors="replace")
