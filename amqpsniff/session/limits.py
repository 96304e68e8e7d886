"""Bounds on what a tracker remembers, each with its reason."""

from typing import NamedTuple


class Limits(NamedTuple):
    """Bounds on what is remembered at once; a finding says when one was hit.

    Attributes:
        channels: Channel numbers in use, over all connections. RabbitMQ allows 2,047 in one; a
            hostile client may claim 65,535 in each of its connections.
        outstanding: Publishes and deliveries not settled, over all connections: some 200 bytes
            each, so 40 MB in all where nothing settles. More than the rows that wait
            (`held_rows`). Later ones have no outcome.
        returnable: Mandatory publishes that may come back, over all connections: some 300 bytes
            each in addition. A broker gives back what it cannot route when it reads it: the oldest
            are taken for done with, where a confirm is to come only for not returned.
        requests: Requests of one channel that wait for their replies; a client that waits has one.
        consumers: Consumers of one channel; as many, and gets, wait for a queue's name.
        all_consumers: Consumers over all connections: some 200 bytes each, and 600 more where
            names are as long as they may be.
        fact: Bytes of one method of the handshake, as JSON; a client's is some 500.
        facts: The same over all connections that are open, what many say alike counted once: that
            of 20,000 that all say something else.
        disorder: Deliveries of one channel whose tag is not above the last: a broker counts, so
            beyond this the tags mean nothing, and the channel's acknowledgements are not followed.
            Of AMQP 1.0: deliveries of a session that dispositions name again and again.
        held_rows: Rows that wait for replies and acknowledgements, some 130 bytes each. Beyond,
            the oldest are given out as they are: what is not settled by then has no outcome, and
            no reply.
        held_bytes: Bytes of texts and bodies in rows that wait, for rows may be large; the same
            beyond. That is 190 for each of them.
        open_rows: Rows that wait as they were made. More are packed: an ordinary capture never has
            them.
        open_bytes: Bytes of texts and bodies in them; the same beyond, for columns of texts have
            room for twice as many as they hold.
        silences: Channels and consumers of a connection that are looked at to tell its silences: a
            day of ten channels with a consumer each and a silence all the time. Without it,
            thousands of both take minutes.
    """

    channels: int = 131_072
    outstanding: int = 200_000
    returnable: int = 100_000
    requests: int = 1_024
    consumers: int = 16_384
    all_consumers: int = 100_000
    fact: int = 65_536
    facts: int = 33_554_432
    disorder: int = 10_000
    held_rows: int = 131_072
    held_bytes: int = 24 * 1024 * 1024
    open_rows: int = 65_536
    open_bytes: int = 8 * 1024 * 1024
    silences: int = 500_000


class Memory(NamedTuple):
    """Bounds on what is remembered of messages, to link others with them.

    Attributes:
        publishes: Publishes whose deliveries may come: some 130 bytes each, 26 MB in all. A
            broker may hold messages for days; who wants those needs the queue, not the wire.
        age_ns: How long a publish is remembered, one hour: alike messages of yesterday would only
            make the match of today's doubtful.
        positions: How far each queue is with alike publishes, over all of them. A hostile server
            may claim to deliver each message from a million queues.
        calls: Requests whose replies may come. A client waits for one or a few of them.
        vhosts: Virtual hosts searched for a connection whose own is unknown; messages of
            later ones are found by connections that are known to be there.
    """

    publishes: int = 200_000
    age_ns: int = 3_600_000_000_000
    positions: int = 500_000
    calls: int = 100_000
    vhosts: int = 16
