"""Changes in newer versions of RabbitMQ that concern clients of AMQP 0-8 to 0-9-1.

`amqpsniff.analysis.readiness` finds uses of each row in the rows of a capture. Sources are
the release notes of RabbitMQ and measurements: RabbitMQ 3.10.8, 4.0.5 and 4.3.6, with pika 1.4.
"""

from amqpsniff.spec.rows import Row

EFFECTS = ("refused", "ignored", "changed")
"""What becomes of it, the worst first."""

VERSIONS = ((4, 0), (4, 1), (4, 2), (4, 3))
"""The versions that have rows."""


class VersionChange(Row):
    """One change: `code`, `version` (major, minor) that brought it, `effect` (one of `EFFECTS`),
    `what` happens from then on, `advice`, `source`, `measured` (versions on which it was tried).
    """

    __slots__ = ("code", "version", "effect", "what", "advice", "source", "measured")

    code: str
    version: tuple[int, int]
    effect: str
    what: str
    advice: str
    source: str
    measured: tuple[str, ...]


VERSION_CHANGES = (
    VersionChange(
        "dialect-0-8", (4, 0), "refused",
        "The broker answers the protocol header of AMQP 0-8 with another one and closes TCP.",
        "Use a client library that speaks AMQP 0-9-1.",
        "protocol headers sent to each broker", ("3.10.8", "4.0.5", "4.3.6"),
    ),
    VersionChange(
        "message-size", (4, 0), "refused",
        "Messages above 16 MiB are refused with 406 PRECONDITION_FAILED; before, above 128 MiB.",
        "Store large bodies elsewhere and send a reference, or raise max_message_size.",
        "release notes of 4.0.1", ("3.10.8", "4.0.5", "4.3.6"),
    ),
    VersionChange(
        "frame-max", (4, 1), "refused",
        "A client that tunes frame_max below 8,192 cannot connect: TCP is reset after its tune-ok.",
        "Do not set frame_max in the client; amqplib for Node.js needs version 0.10.7.",
        "release notes of 4.1.0", ("4.0.5", "4.3.6"),
    ),
    VersionChange(
        "transient-queue", (4, 3), "refused",
        "A queue that is neither durable nor exclusive is refused with 541 INTERNAL_ERROR, unless "
        "the broker permits the deprecated feature transient_nonexcl_queues.",
        "Declare it durable, with x-expires where it is to go away by itself, or exclusive.",
        "release notes of 4.3.0; 4.3.6 of Debian still takes it", ("3.10.8", "4.0.5", "4.3.6"),
    ),
    VersionChange(
        "queue-version", (4, 3), "refused",
        "x-queue-version=1 is refused with 406 PRECONDITION_FAILED.",
        "Leave the argument out.",
        "release notes of 4.3.0", ("3.10.8", "4.0.5", "4.3.6"),
    ),
    VersionChange(
        "queue-master-locator", (4, 3), "refused",
        "x-queue-master-locator is refused with 541 INTERNAL_ERROR, which closes the connection.",
        "Use x-queue-leader-locator.",
        "feature queue_master_locator, deprecated", ("3.10.8", "4.0.5", "4.3.6"),
    ),
    VersionChange(
        "delayed-exchange", (4, 3), "refused",
        "The plugin for x-delayed-message keeps its messages in Mnesia, which 4.3 does not have: "
        "without it the declaration is refused with 406 PRECONDITION_FAILED, as 3.10 did with 503.",
        "Delay with x-message-ttl and a dead-letter exchange, or outside the broker.",
        "release notes of 4.3.0; a declaration without the plugin", ("3.10.8", "4.3.6"),
    ),
    VersionChange(
        "address-version", (4, 3), "refused",
        "A link of AMQP 1.0 with an address of version 1 is refused with amqp:invalid-field, "
        "unless the broker permits the deprecated feature amqp_address_v1.",
        "Use addresses of version 2: /queues/NAME, /exchanges/NAME/KEY, percent-encoded.",
        "feature amqp_address_v1, deprecated", ("4.3.6",),
    ),
    VersionChange(
        "consumer-timeout-argument", (4, 3), "refused",
        "x-consumer-timeout of a queue that is no quorum queue is refused with 406 "
        "PRECONDITION_FAILED, in queue.declare and in basic.consume.",
        "Leave the argument out: only quorum queues have such a time.",
        "declarations of each type of queue", ("3.10.8", "4.3.6"),
    ),
    VersionChange(
        "queue-mode", (4, 3), "ignored",
        "x-queue-mode has no effect any more; the release notes announce that it is refused.",
        "Leave the argument out: every classic queue keeps its messages on disk.",
        "release notes of 4.3.0", ("3.10.8", "4.0.5", "4.3.6"),
    ),
    VersionChange(
        "mirrored-queue", (4, 0), "ignored",
        "Classic queues are not mirrored any more; x-ha-policy has no effect.",
        "Use quorum queues where messages must survive the loss of a node.",
        "release notes of 4.0.1", ("3.10.8", "4.0.5", "4.3.6"),
    ),
    VersionChange(
        "global-prefetch", (4, 3), "ignored",
        "basic.qos with global set gets its qos-ok and limits each consumer, not the channel.",
        "Set the prefetch of each consumer; a limit of the channel is divided among them.",
        "feature global_qos, deprecated", ("3.10.8", "4.0.5", "4.3.6"),
    ),
    VersionChange(
        "delivery-limit", (4, 0), "changed",
        "A quorum queue drops or dead-letters a message that came back 20 times, unless the queue "
        "has a limit of its own. In 4.3 what a client puts back itself does not count.",
        "Give the queue a dead-letter exchange, and x-delivery-limit where 20 is wrong.",
        "release notes of 4.0.1", ("3.10.8", "4.0.5", "4.3.6"),
    ),
    VersionChange(
        "x-death-published", (4, 0), "changed",
        "x-death headers that a client publishes are not read: counts begin at 1 again.",
        "Count attempts in a header of your own.",
        "release notes of 4.0.1", ("3.10.8", "4.0.5", "4.3.6"),
    ),
    VersionChange(
        "reply-to-mandatory", (4, 2), "changed",
        "A mandatory reply to amq.rabbitmq.reply-to of a requester that has gone is not returned.",
        "Do not rely on basic.return to learn that the requester has gone.",
        "release notes of 4.2.0", ("4.3.6",),
    ),
    VersionChange(
        "consumer-timeout", (4, 3), "changed",
        "The time in which a delivery must be acknowledged belongs to quorum queues: the broker "
        "cancels the consumer of a client that takes cancels, and closes the channel of others. "
        "Classic queues have no such time any more.",
        "Handle basic.cancel of the broker, and set x-consumer-timeout where work takes longer.",
        "channels with x-consumer-timeout", ("4.3.6",),
    ),
)  # fmt: skip
"""The changes, by what becomes of what clients send."""
