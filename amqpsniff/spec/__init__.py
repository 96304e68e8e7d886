"""The protocol as rows: AMQP 0-8, 0-9 and 0-9-1 with the extensions of RabbitMQ, Qpid and OpenAMQ.

Everything that decodes, tracks, documents or tests the protocol reads these rows; no other module
has an id, an argument or a code. `describe` finds rows for a person and is
imported from `amqpsniff.spec.describe`.
"""

from .constants import (
    CONSTANTS,
    FIRST_ERROR_CODE,
    FRAME_OVERHEAD_BYTES,
    FRAME_TYPES,
    PROTOCOL_HEADER_BYTES,
    PROTOCOL_HEADERS,
    REPLY_CODES,
    Constant,
    FrameType,
    ProtocolHeader,
    ReplyCode,
    protocol_of,
    reply_code,
)
from .methods import DELIVERIES, METHODS, PUBLISHES, Argument, Method, methods_for
from .peers import PEER_PROPERTIES, given_name, peer_property
from .properties import CONTENT_CLASSES, Property, properties_for
from .rows import DIALECTS, SIDES, Row
from .tags import FIELD_TAGS, FIELD_TYPES, READINGS, FieldTag, field_tags, unusual_tags

__all__ = [
    "CONSTANTS",
    "CONTENT_CLASSES",
    "DELIVERIES",
    "DIALECTS",
    "FIELD_TAGS",
    "FIELD_TYPES",
    "FIRST_ERROR_CODE",
    "FRAME_OVERHEAD_BYTES",
    "FRAME_TYPES",
    "METHODS",
    "PEER_PROPERTIES",
    "PROTOCOL_HEADERS",
    "PROTOCOL_HEADER_BYTES",
    "PUBLISHES",
    "READINGS",
    "REPLY_CODES",
    "SIDES",
    "Argument",
    "Constant",
    "FieldTag",
    "FrameType",
    "Method",
    "Property",
    "ProtocolHeader",
    "ReplyCode",
    "Row",
    "field_tags",
    "given_name",
    "methods_for",
    "peer_property",
    "properties_for",
    "protocol_of",
    "reply_code",
    "unusual_tags",
]
