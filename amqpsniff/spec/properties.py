"""Content properties: what a content header may carry, by class.

The property list of a content header begins with flag words; the property at position 0 of a class
owns bit 15 of the first word, the next one bit 14. Bit 0 of a word means that another word follows,
so a class of more than 15 properties would need two; no class has.
"""

from .rows import DIALECTS, Row, columns


class Property(Row):
    """One content property. `type` is one letter, as of an argument: o, s, T or F."""

    __slots__ = columns("name type")
    name: str
    type: str


def _properties(text: str) -> tuple[Property, ...]:
    return tuple(Property(*word.split(":")) for word in text.split())


# cluster_id is reserved in 0-9-1, in use again in RabbitMQ's definition, sender-id in OpenAMQ's
_BASIC = _properties(
    "content_type:s content_encoding:s headers:F delivery_mode:o priority:o correlation_id:s "
    "reply_to:s expiration:s message_id:s timestamp:T type:s user_id:s app_id:s cluster_id:s"
)
_FILE = _properties(
    "content_type:s content_encoding:s headers:F priority:o reply_to:s message_id:s filename:s "
    "timestamp:T cluster_id:s"
)
_STREAM = _properties("content_type:s content_encoding:s headers:F priority:o timestamp:T")
_TUNNEL = _properties("headers:F proxy_name:s data_name:s durable:o broadcast:o")

_OLD = {60: _BASIC, 70: _FILE, 80: _STREAM, 110: _TUNNEL}
_BY_DIALECT: dict[str | None, dict[int, tuple[Property, ...]]] = {
    "0-8": {**_OLD, 120: ()},  # test: a content without properties
    "0-9": _OLD,  # message carries its properties and its body as arguments
    "0-9-1": {60: _BASIC},
    None: {**_OLD, 120: ()},
}

CONTENT_CLASSES: dict[str, frozenset[int]] = {
    dialect: frozenset(_BY_DIALECT[dialect]) for dialect in DIALECTS
}
"""By dialect the ids of the classes whose methods may be followed by a content header."""


def properties_for(dialect: str | None, class_id: int) -> tuple[Property, ...]:
    """The properties of a class in flag order from bit 15; `()` for a class without any.

    `None` is an unknown dialect; no two dialects disagree.
    """
    return _BY_DIALECT.get(dialect, {}).get(class_id, ())
