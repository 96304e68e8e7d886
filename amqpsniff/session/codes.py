"""Sides of a connection, outcomes of messages, and flags of the records that messages are linked
by. Compiled modules take them as literals.
"""

CLIENT, SERVER = 0, 1

OUTCOMES = (
    "confirmed rejected returned unconfirmed acked requeued discarded automatic unsettled"
).split()
"""Outcomes of messages, by code."""

CONFIRMED, REJECTED, RETURNED, UNCONFIRMED, ACKED, REQUEUED, DISCARDED, AUTOMATIC, UNSETTLED = (
    range(9)
)

IS_PUBLISH, HAS_MESSAGE_ID, IS_REDELIVERED, DEAD_LETTERED, OWN_QUEUE = 1, 2, 4, 8, 16
IS_REQUEST, DIRECT_REPLY, HAS_ROUTING_KEY, DIRECT_ROUTING_KEY, HAS_ADDRESS = 32, 64, 128, 256, 512
"""Flags of a `LinkRecord`. It is a publish, else a delivery; a publish with a message-id. A
delivery that is not the first; one that says how it was published at first; one of a queue that
only its consumer tells. A request; a `reply_to` for direct replies; a known routing key, and one
that is an address of direct replies; a publish with an exchange, so that it may be for an address
of both."""

CONNECTION_CLOSED, CONNECTION_OVER = 1 << 10, 1 << 11
"""Flags of a record that is no message: a connection was closed (`sent_ns`, null for never), and it
is over."""
