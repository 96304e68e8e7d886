"""Properties of client and broker that they send as they connect: `client_properties` of
connection.start-ok, `server_properties` of connection.start.

The protocol asks for `product`, `version` and `platform` (0-9-1 §1.4.2.2.1); libraries have names
of their own for them.
"""

from __future__ import annotations

_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_UUID_LENGTHS = ([8, 4, 4, 4, 12], [32])

PEER_PROPERTIES: dict[str, tuple[str, ...]] = {
    "product": ("product", "library"),
    "version": ("version", "product_version", "library_version"),
    "platform": ("platform",),
    "connection_name": ("connection_name",),
}
"""Fact -> the keys under which clients give it, the usual one first: `product_version` is that
of py-amqp (Celery, Kombu), `library` and `library_version` are those of py-amqplib."""


def given_name(*names: str | None) -> str | None:
    """The first name that is not empty and not made at random, else None."""
    return next((name for name in names if name and not _is_uuid(name)), None)


def _is_uuid(name: str) -> bool:
    """True for a UUID, which clients of AMQP 1.0 make for a container without a name.

    Without `re`: `amqpsniff.spec` loads nothing but itself.
    """
    parts = name.split("-", 5)
    return [len(part) for part in parts] in _UUID_LENGTHS and _HEX_DIGITS.issuperset("".join(parts))


def peer_property(properties: dict[str, object], name: str) -> str | None:
    """A text of a client's or a broker's properties by its name in `PEER_PROPERTIES`.

    Null when it is missing or not a text.
    """
    empty: str | None = None
    for key in PEER_PROPERTIES[name]:
        text = properties.get(key)
        if isinstance(text, str):
            if text:
                return text
            empty = text
    return empty
