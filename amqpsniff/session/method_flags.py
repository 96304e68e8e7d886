"""Kinds and flags of methods for the tracker, by the place in `spec.METHODS`: one byte a method."""

from __future__ import annotations

from sys import intern

from amqpsniff.spec import METHODS

# What a client sends and the server discards once either of them has closed the channel.
_DISCARDED = frozenset(
    "basic.recover basic.recover-async basic.recover-sync tx.commit tx.rollback tx.select "
    "confirm.select basic.qos queue.declare basic.consume basic.cancel basic.get".split()
)

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
ALL = bytes([1]) * len(NAMES)
OF_REPLIES = bytes(kind in (OTHER, GET_OK) for kind in KINDS)  # they ask or reply, or may
ON_CHANNEL_ZERO = bytes(method.class_id == 10 for method in METHODS)
SYNCHRONOUS = bytes(method.synchronous for method in METHODS)
CLOSES = bytes(name in ("channel.close", "connection.close") for name in NAMES)
CLOSING_METHODS = bytes(name in ("connection.close", "connection.close-ok") for name in NAMES)
DISCARDED = bytes(name in _DISCARDED for name in NAMES)
CLOSE_OK_METHODS = bytes(name == "connection.close-ok" for name in NAMES)
HANDSHAKE = (
    "connection.start",
    "connection.start-ok",
    "connection.tune",
    "connection.tune-ok",
    "connection.open",
    "connection.open-ok",
)
"""The methods that open a connection, in their order."""

OF_CLIENT = frozenset(("connection.start-ok", "connection.tune-ok", "connection.open"))
"""Those of them that a client sends."""

STEPS = bytes(HANDSHAKE.index(name) + 1 if name in HANDSHAKE else 0 for name in NAMES)
"""Place of each in it, from 1; 0 for other methods."""

CHANNEL_OPEN, CHANNEL_CLOSE = NAMES.index("channel.open"), NAMES.index("channel.close")
CHANNEL_CLOSE_OK = NAMES.index("channel.close-ok")


def _replies() -> bytes:
    """[request * number of methods + method]: whether a method is a reply to a request."""
    table = bytearray(len(METHODS) * len(METHODS))
    named: dict[str, list[int]] = {}
    for method in METHODS:
        named.setdefault(method.name, []).append(method.index)
    for request in METHODS:
        for name in request.replies if request.synchronous else ():
            for reply in named[name]:
                table[request.index * len(METHODS) + reply] = 1
    return bytes(table)


REPLIES = _replies()
ANSWERS = bytes(any(REPLIES[at :: len(METHODS)]) for at in range(len(METHODS)))
