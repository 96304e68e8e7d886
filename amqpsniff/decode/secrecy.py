"""Secrets: which frames may hold one, where it is in their octets, and what stands for it.

Logins are methods on channel 0. A frame there is shown only when its method is known, carries no
secret and is one that its sender may send: a damaged login can look like a frame of another type,
or like a method without numbers, with unknown ones or with those of the other side. Where both type
and channel are wrong, its numbers still tell it.

A method whose lengths do not add up may have its secret in any argument, and one of a client's on
channel 0 may be another with wrong numbers. Where the frame is whole
that shows at its end; where its tail is missing, only the secret's own length can tell.
"""

from __future__ import annotations

from collections.abc import Container

from amqpsniff.spec import METHODS, Method

REDACTED = b'"[redacted]"'
"""What stands for a secret in JSON; its length says nothing about the secret's."""

HEADER_OCTETS = 7
METHOD_OCTETS = 4
"""Octets of a frame header, and of class and method number."""

END_OCTET = 0xCE

_FIXED = {"o": 1, "h": 2, "l": 4, "L": 8, "T": 8}
_COUNTED = {"s": 1, "S": 4, "F": 4, "C": 5}
_CONTENT_TYPES = ("header", "body")

_ROWS: dict[str, list[Method]] = {}
"""Methods by name: one that differs between dialects has several."""

for _method in METHODS:
    _ROWS.setdefault(_method.name, []).append(_method)

SECRET_METHODS = frozenset(method.name for method in METHODS if method.has_secret)
SECRET_NUMBERS = frozenset(
    method.class_id.to_bytes(2, "big") + method.method_id.to_bytes(2, "big")
    for method in METHODS
    if method.has_secret
)
"""What a login begins with, behind its frame's header."""

_SECRET_CLASSES = tuple({f"{method.class_id}." for method in METHODS if method.has_secret})
"""What the name of a method begins with that nobody knows and may carry one."""


def may_hold_secret(
    frame_type: str, channel: int, method: str | None, sender: str | None = None
) -> bool:
    """Whether a frame's payload may hold a secret; arguments as the columns of `frames`.

    Of the methods in `SECRET_METHODS` one argument is secret, of other frames any octet may be.
    """
    if method in SECRET_METHODS:
        return True
    rows = _ROWS.get(method or "")
    if rows is not None:
        return channel == 0 and not any(_is_harmless(row, sender) for row in rows)
    if frame_type in _CONTENT_TYPES or (frame_type == "method" and method is not None):
        return channel == 0 or str(method).startswith(_SECRET_CLASSES)
    return frame_type != "protocol-header"


def _is_harmless(row: Method, sender: str | None) -> bool:
    """Whether a method that carries no secret is what it seems to be, sent by this side."""
    from_other = sender is not None and row.sender not in (sender, "both")
    return row.arguments_known and not from_other


def secret_positions(
    frame_type: str,
    channel: int,
    method: str | None,
    sender: str | None,
    octets: bytes,
    missing: frozenset[int],
) -> range:
    """Where in a frame's octets a secret may be.

    Args:
        frame_type: This and the next three as the columns of `frames`.
        channel: The channel.
        method: The method's name; null where it has none or that was not captured.
        sender: Who sent it; null where that is not known.
        octets: The frame with its header and end octet, or its beginning.
        missing: Positions in `octets` that were not captured.
    """
    if frame_type == "protocol-header":
        return range(0)
    begin = HEADER_OCTETS + (METHOD_OCTETS if method is not None else 0)
    end = len(octets) - 1
    everything = range(begin, max(begin, end))
    size = int.from_bytes(octets[3:HEADER_OCTETS], "big")
    if len(octets) == size + HEADER_OCTETS + 1 and octets[end] != END_OCTET and end not in missing:
        return range(begin, len(octets))  # where it ends is not known: a login may be in it
    rows = _ROWS.get(method or "", [])
    first = HEADER_OCTETS + METHOD_OCTETS
    each = (_secret_of(row, octets, first, end, missing) for row in rows)
    exact = [found for found in each if found is not None]
    if method in SECRET_METHODS:
        return exact[0] if exact and not missing else everything
    if (
        may_hold_secret(frame_type, channel, method, sender)
        or octets[HEADER_OCTETS:first] in SECRET_NUMBERS
    ):
        return everything
    # a method of a client's whose arguments do not end where it does may be another
    doubtful = channel == 0 and sender != "server" and any(row.sender != "server" for row in rows)
    return everything if doubtful and not exact else range(0)


def adds_up(index: int, payload: bytes, size: int) -> bool:
    """Whether the arguments of a cut method end with it; false where too little was captured.

    Args:
        index: The method, in `METHODS`.
        payload: What was captured, class and method numbers included.
        size: Octets of the payload as the frame says.
    """
    missing = range(len(payload), size)
    return _secret_of(METHODS[index], payload, METHOD_OCTETS, size, missing) is not None


def _secret_of(
    row: Method, octets: bytes, at: int, end: int, missing: Container[int]
) -> range | None:
    """Where the secret is of a method whose arguments begin at `at`, empty without one.

    None if they do not end at `end`, or where that is not known, for a length is missing.
    """
    found, bits = range(0), 0
    for argument in row.arguments:
        if argument.type == "b":
            at += bits & 7 == 0
            bits += 1
            continue
        bits = 0
        counted = _COUNTED.get(argument.type, 0)
        start = at + counted
        if any(place in missing for place in range(at, start)):
            return None
        length = int.from_bytes(octets[max(at, start - 4) : start], "big")
        at = start + _FIXED.get(argument.type, length)
        if argument.secret:
            found = range(start, at)
    return found if at == end else None


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
