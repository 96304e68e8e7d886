"""Differences without the credentials in them."""

from __future__ import annotations

from typing import Any

from amqpsniff.decode import plan
from amqpsniff.decode.quotes import redact_quote
from amqpsniff.opinion.difference import Difference
from amqpsniff.spec import METHODS

REDACTED = "[redacted]"

_SECRET_METHODS = {method.name for method in METHODS if method.has_secret}
_SECRET_CLASSES = tuple(f"{class_id}." for class_id in plan.secret_classes)
"""What the name of a method begins with that nobody knows and may carry one."""
_QUOTING = ("reply_text", "reason")
"""Arguments in which a broker may quote octets of a login, and what tshark may take them for."""


def redacted(difference: Difference) -> Difference:
    """The difference with what may be a secret replaced.

    Of a method that carries a secret, or may, no value is shown; of reply texts, what they quote is
    not.
    """
    method = difference.method or ""
    may_be_secret = method in _SECRET_METHODS or method.startswith(_SECRET_CLASSES)
    if may_be_secret and difference.name is not None:
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
