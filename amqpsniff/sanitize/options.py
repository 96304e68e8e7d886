"""What is replaced in a capture, and what is not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SanitizeOptions:
    """How a capture is made safe.

    Attributes:
        headers: Names of the headers whose values are replaced; None for all that brokers and
            libraries do not write themselves.
        keep_headers: Names of headers whose values are kept.
        keep_bodies: Whether bodies of messages are kept.
        names: Whether names are replaced by pseudonyms.
        addresses: Whether addresses and the ports of clients are replaced by pseudonyms.
        drop_foreign: Whether packets are left out that belong to no AMQP connection; otherwise they
            are kept without their contents.
    """

    headers: frozenset[str] | None = None
    keep_headers: frozenset[str] = frozenset()
    keep_bodies: bool = False
    names: bool = False
    addresses: bool = False
    drop_foreign: bool = False
