"""What each method is to the tracker, by its place in `spec.METHODS`: one octet a method."""

from __future__ import annotations

from sys import intern

from amqpsniff.session import methods as handlers
from amqpsniff.session.states import CONNECTION
from amqpsniff.spec import METHODS

OTHER, PUBLISH, DELIVER, GET_OK, RETURN, ACK, NACK, REJECT = range(8)
"""OTHER: a method of `amqpsniff.session.methods`, or of none."""

_KINDS = {
    "basic.publish": PUBLISH,
    "basic.deliver": DELIVER,
    "basic.get-ok": GET_OK,
    "basic.return": RETURN,
    "basic.ack": ACK,
    "basic.nack": NACK,
    "basic.reject": REJECT,
}

NAMES = [intern(method.name) for method in METHODS]  # the one that the tables of states have
KINDS = bytes(_KINDS.get(name, OTHER) for name in NAMES)
ON_CHANNEL_ZERO = bytes(method.class_id == 10 for method in METHODS)
STEPS = bytes(name in CONNECTION.methods for name in NAMES)
SYNCHRONOUS = bytes(method.synchronous for method in METHODS)
CLOSES = bytes(name in ("channel.close", "connection.close") for name in NAMES)
PARTINGS = bytes(name in ("connection.close", "connection.close-ok") for name in NAMES)
DISCARDED = bytes(name in handlers.DISCARDED for name in NAMES)
FAREWELL = NAMES.index("connection.close-ok")

CHANNEL_HANDLERS = [handlers.ON_CHANNEL.get(name) for name in NAMES]
CONNECTION_HANDLERS = [handlers.ON_CONNECTION.get(name) for name in NAMES]
STATE_HANDLERS = [one if one is not handlers.learn else None for one in CONNECTION_HANDLERS]
"""Those of connections where nobody asks what the peers said of themselves."""


def _replies() -> bytes:
    """[request * number of methods + method]: whether a method is a reply to a request."""
    table = bytearray(len(METHODS) * len(METHODS))
    for request in METHODS:
        for reply in METHODS:
            if request.synchronous and reply.name in request.replies:
                table[request.index * len(METHODS) + reply.index] = 1
    return bytes(table)


REPLIES = _replies()
