"""Findings about whether what was published is safe."""

from amqpsniff.findings.kind import Kind

from .ends import CHANNEL_ENDS, CONNECTION_ENDS

PUBLISHING = (
    Kind("publishes-unprotected", "warning", "medium",
         "Messages are published without confirms or transactions",
         "basic.publish on a channel that was seen to open and has neither confirm.select nor "
         "tx.select.",
         "Use publisher confirms for what must not be lost; without them a message that the "
         "broker never stored looks sent.",
         "Some data may be lost by design: metrics, for instance.",
         category="note"),
    Kind("message-unroutable", "error", "high",
         "A message was returned because no queue would take it",
         "basic.return 312 NO_ROUTE. In confirm mode a basic.ack follows, so the confirm alone "
         "looks like success.",
         "Bind a queue for that routing key or set an alternate exchange; in the publisher treat "
         "return and ack as failure.",
         "Answers to callers whose reply queue is gone are returned too; answers by direct "
         "reply-to are not counted, because RabbitMQ returns those that it delivers."),
    Kind("publish-rejected", "error", "high",
         "The broker refused published messages",
         "basic.nack from the broker: a queue is full and rejects (x-overflow), or could not "
         "store the message.",
         "Publish them again after a pause; check the limits of the queues and the health of "
         "quorum queues."),
    Kind("publishes-in-doubt", "error", "medium",
         "A channel ended with publishes that the broker had not confirmed",
         "In confirm mode, publishes had neither ack nor nack when the channel or connection "
         "ended.",
         "Whether they were stored is unknown: publish them again, and let consumers recognise "
         "duplicates by message-id.",
         "Confirms may lie in a hole of the capture: see tcp-gap.",
         (*CHANNEL_ENDS, *CONNECTION_ENDS)),
    Kind("publish-repeated", "warning", "low",
         "The same message was published more than once",
         "Two publishes within five minutes have the same message-id, properties, size and route, "
         "and the first was neither returned nor refused.",
         "Usual after publishes in doubt: let consumers recognise duplicates.",
         "A program that gives all its messages one id. A proxy that is captured on both sides: "
         "each message passes twice.",
         ("publishes-in-doubt",)),
    Kind("message-oversized", "warning", "high",
         "A message is very large",
         "The content header declares a body of more than 1 MiB.",
         "While it is on its way, it holds up the other channels and heartbeats of its "
         "connection: store large payloads elsewhere and send their address, or use a connection "
         "of their own.",
         "File transfer may be meant.",
         category="cost"),
    Kind("fanout-amplified", "info", "low",
         "An exchange multiplies what is published to it",
         "More than ten messages and ten bytes are delivered for each that is published to it, "
         "and 1 MiB in all; redeliveries are not counted.",
         "Check that all its bindings are meant; a stream or smaller payloads make broadcasting "
         "cheaper.",
         "Broadcast may be meant. A long queue from before the capture that is worked off looks "
         "the same.",
         category="cost"),
)  # fmt: skip
