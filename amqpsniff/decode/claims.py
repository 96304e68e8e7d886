"""Names for all bytes of a half-stream, for those who write them again and must know each one.

A claim is made for every frame that is read (a body's when it begins), for every end byte that is
right, for protocol headers, and for what stands before them. Bytes that no claim covers were not
understood, or are inside a body.
"""

from __future__ import annotations

from typing import NamedTuple

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
PROTOCOL_HEADER = 256
END = 257
"""One byte, 0xCE, behind a payload."""
PROXY = 258
"""A proxy's header before the first bytes of a connection."""
UNFINISHED = 259
"""The begin of a frame whose rest never came; `payload` is all of it that did, header included."""
AMQP10 = 260
"""A frame of AMQP 1.0; `payload` is what is there of it, header included."""
AMQP10_PAYLOAD = 261
"""More of the payload of the transfer that was claimed last in this direction."""


class Claim(NamedTuple):
    """A claim about one direction of one conversation.

    `conversation` is the serial number of the conversation and `direction` that of its half-stream;
    `kind` is a frame type or one of the constants here, `offset` the stream offset where it begins,
    `size` the payload's bytes as the frame says. `payload` is what was captured of it, empty for a
    body. `method` is the index in `METHODS`, -1 where no row has the numbers or any argument may be
    a secret; `exact`: the payload is whole and its arguments end where it does.
    """

    conversation: int
    direction: int
    kind: int
    offset: int
    channel: int = 0
    size: int = 0
    payload: bytes = b""
    method: int = -1
    exact: bool = False
