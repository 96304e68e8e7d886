# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""What links need to know of a message, in numbers, and what they come to.

A message is made such by whoever reads it (`journeys`), for the linker of the same process or to be
written down for one that is fed by many (`linkables`). Texts are hashes, the same in all processes.
"""

import cython

from amqpsniff.columns import NULL

_NULL = cython.declare(cython.longlong, NULL)

PUBLISH, IDENTIFIED, AGAIN, DIED, OWN_QUEUE = 1, 2, 4, 8, 16
ASKS, DIRECT_REPLY, ROUTED, DIRECT_KEY, ADDRESSED = 32, 64, 128, 256, 512
"""Flags. It is a publish, else a delivery; a publish with a message-id. A delivery that is not the
first; one that says how it was published at first; one of a queue that only its consumer tells. A
request; a `reply_to` for direct replies; a routing key that is known, and one that is an address of
direct replies; a publish with an exchange, so that it may be for an address of both."""

NUMBERS = (
    "flags connection channel packet_number sent_ns connection_id vhost line other routing_key "
    "queue correlation reply_to deadline"
).split()
"""Integers of a message. `connection` counts connections, negative for an unknown one;
`connection_id` is its id as a number. `line`: size, properties, exchange and routing key. `other`:
of a delivery that died, the same with what it was published with; of a publish, exchange and
routing key as one address. `queue`: its name, or the consumer's tag. `correlation`: the
correlation-id. `reply_to`: an address. `deadline`: when a request expires, null for never."""


class Linkable:
    """A message; used again for the next one.

    `session` is the connection that sent or got it, None where that is elsewhere. Once a linker had
    it: `published` says that its publish is known, `replies` that it is the reply to a request that
    is known, `found_…` is what is known of them; `delivery_number` is negative for none, times are
    null where they are not known.
    """

    def __init__(self):
        self.session = None
        for name in NUMBERS:
            setattr(self, name, 0)
        self.clear()

    def clear(self):
        """Nothing is known of what it belongs to."""
        self.published = self.replies = self.reply_late = False
        self.published_number = self.request_number = 0
        self.published_id = self.request_id = 0
        self.published_ns = self.request_ns = _NULL
        self.link_confidence = -1
        self.delivery_number = -1
        return 0
