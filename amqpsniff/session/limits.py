"""How much a tracker remembers, each bound with its reason."""

from typing import NamedTuple


class Limits(NamedTuple):
    """Bounds on what is remembered at once; a finding says when one was hit.

    Attributes:
        channels: Channel numbers in use, over all connections. RabbitMQ allows 2,047 in one; a
            hostile client may claim 65,535 in each of its connections.
        outstanding: Publishes and deliveries not settled, over all connections: some 200 octets
            each. Later ones have no outcome.
        requests: Requests of one channel that wait for their replies; a client that waits has one.
        consumers: Consumers of one channel.
        disorder: Deliveries of one channel whose tag is not above the last: a broker counts, so
            beyond this the tags mean nothing, and the channel's acknowledgements are not followed.
    """

    channels: int = 131_072
    outstanding: int = 1_000_000
    requests: int = 1_024
    consumers: int = 16_384
    disorder: int = 10_000
