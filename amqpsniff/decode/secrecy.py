"""What stands for a secret, and where that of a method is that was captured in part.

A method whose lengths do not add up may have its secret in any argument. Where the frame is whole
that shows at its end; where its tail is missing, only the secret's own length can tell.
"""

from __future__ import annotations

from amqpsniff.spec import METHODS

REDACTED = b'"[redacted]"'
"""What stands for a secret in JSON; its length says nothing about the secret's."""

_COUNTED = {"s": 1, "S": 4, "F": 4}


def is_in_place(index: int, payload: bytes, size: int) -> bool:
    """Whether the secret of a cut method is where it belongs, or wholly behind the cut.

    It is where it belongs if it reaches to the cut, and not beyond the frame: a wrong length before
    it takes other octets for its length, which say gigabytes. A table that goes on behind the cut
    is enough, for what it takes for names and values shows that it is none; a text takes anything.

    Args:
        index: The method, in `METHODS`.
        payload: What was captured, class and method numbers included.
        size: Octets of the payload as the frame says.
    """
    at = 4
    for argument in METHODS[index].arguments:
        start = at + _COUNTED[argument.type]
        if start > len(payload):
            return False
        at = start + int.from_bytes(payload[at:start], "big")
        if argument.secret:
            return len(payload) <= at <= size
        if at > len(payload):
            return argument.type == "F" and at <= size
    return False
