"""Flags of the records that links are made from."""

PUBLISH, IDENTIFIED, AGAIN, DIED, OWN_QUEUE = 1, 2, 4, 8, 16
ASKS, DIRECT_REPLY, ROUTED, DIRECT_KEY, ADDRESSED = 32, 64, 128, 256, 512
"""Flags. It is a publish, else a delivery; a publish with a message-id. A delivery that is not the
first; one that says how it was published at first; one of a queue that only its consumer tells. A
request; a `reply_to` for direct replies; a known routing key, and one that is an address of direct
replies; a publish with an exchange, so that it may be for an address of both."""

CLOSED, OVER = 1 << 10, 1 << 11
"""Flags of a row that is no message: a connection was closed (`sent_ns`, null for never), and it is
over."""
