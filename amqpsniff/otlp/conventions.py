"""Columns of messages as attributes of spans, by OpenTelemetry's messaging conventions.

The conventions are not stable yet: one version of them is here, as rows. Things that have no name
for is under `amqp.`.

Source: https://github.com/open-telemetry/semantic-conventions/releases/tag/v1.27.0
"""

from __future__ import annotations

from typing import NamedTuple

VERSION = "1.27.0"
SCHEMA_URL = f"https://opentelemetry.io/schemas/{VERSION}"

INTERNAL, CLIENT, PRODUCER, CONSUMER = 1, 3, 4, 5
"""Kinds of spans, as in trace.proto."""


class JourneyStep(NamedTuple):
    """One step of a message's journey: a span.

    Attributes:
        operation: `messaging.operation.name`, and the first word of the span's name.
        type: `messaging.operation.type`; None if the conventions define none.
        kind: Of the span.
    """

    operation: str
    type: str | None
    kind: int


PUBLISH = JourneyStep("publish", "publish", PRODUCER)
CONFIRM = JourneyStep("confirm", None, INTERNAL)
QUEUED = JourneyStep("queue", None, INTERNAL)
DELIVER = JourneyStep("deliver", "process", CONSUMER)
GET = JourneyStep("get", "receive", CONSUMER)
SETTLE = JourneyStep("settle", "settle", CLIENT)

OPERATIONS = {"acked": "ack", "requeued": "requeue", "discarded": "reject"}
"""The name of a `SETTLE` span by the outcome of a delivery."""

FAILED = frozenset(("returned", "rejected", "requeued", "discarded"))
"""Outcomes that are errors; the outcome is the `error.type`."""

SYSTEM = {"messaging.system": "rabbitmq", "network.protocol.name": "amqp"}
"""Attributes of every span."""

ATTRIBUTES = {
    "exchange": "messaging.destination.name",
    "routing_key": "messaging.rabbitmq.destination.routing_key",
    "delivery_tag": "messaging.rabbitmq.message.delivery_tag",
    "message_id": "messaging.message.id",
    "correlation_id": "messaging.message.conversation_id",
    "body_size": "messaging.message.body.size",
    "queue": "amqp.queue",
    "consumer_tag": "amqp.consumer_tag",
    "redelivered": "amqp.redelivered",
    "outcome": "amqp.outcome",
    "delivery_number": "amqp.delivery_number",
    "link_confidence": "amqp.link_confidence",
    "connection_id": "amqp.connection_id",
    "channel": "amqp.channel",
    "packet_number": "amqp.packet_number",
    "capture": "amqp.capture",
}
"""Columns of the table `messages`, and the attribute for each; null makes no attribute."""
