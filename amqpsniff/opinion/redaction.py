"""Differences without the credentials in them."""

from __future__ import annotations

from typing import Any

from amqpsniff.decode.quotes import redact_quote
from amqpsniff.opinion.difference import Difference
from amqpsniff.spec import METHODS

REDACTED = "[redacted]"

_SECRET_METHODS = {method.name for method in METHODS if method.has_secret}
_QUOTING = ("reply_text", "reason")
"""Arguments in which a broker may quote octets of a login, and what tshark may take them for."""


def redacted(difference: Difference) -> Difference:
    """The difference with what may be a secret replaced.

    Of a method that carries a secret no value is shown; of reply texts, what they quote is not.
    """
    if difference.method in _SECRET_METHODS and difference.name is not None:
        safe = _hidden
    elif difference.name in _QUOTING:
        safe = _unquoted
    else:
        return difference
    return difference._replace(ours=safe(difference.ours), theirs=safe(difference.theirs))


def _hidden(value: Any) -> Any:
    return None if value is None else REDACTED


def _unquoted(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    safe = redact_quote(value.encode(errors="surrogatepass"), (0, 0), False)
    return value if safe is None else safe.decode(errors="replace")
