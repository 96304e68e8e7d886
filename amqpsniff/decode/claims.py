"""Labels for all bytes of a half-stream, for code that rewrites them.

A claim is made for every frame that is read (for a body when it begins), for every valid end byte,
for protocol headers, and for preambles before them. Bytes without a claim were not decoded, or are
inside a body.
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
"""The begin of a frame whose rest never came; `payload` is that begin, header included."""
AMQP10 = 260
"""A frame of AMQP 1.0; `payload` is the captured part, header included."""
AMQP10_PAYLOAD = 261
"""More of the payload of the transfer that was claimed last in this direction."""


class Claim(NamedTuple):
    """A claim about one direction of one conversation.

    `conversation` is the serial number of the conversation and `direction` that of its half-stream;
    `kind` is a frame type or one of the constants here, `offset` the stream offset of its first
    byte, `size` the payload size in the frame header. `payload` has the captured bytes of it, empty
    for a body. `method` is the index in `METHODS`, -1 if no row has the numbers or if any argument
    may be a secret; `exact`: the payload is complete and its arguments end with it.
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
