"""What records of TLS are, for those who write their octets again: a claim for each whole record.

Claims are made of conversations that are TLS for sure, in the order of their records, as long as
nothing is lost of a direction. Nothing is opened for them.
"""

from __future__ import annotations

from typing import NamedTuple


class RecordClaim(NamedTuple):
    """A record of one direction of one conversation.

    `conversation` is the serial number of the conversation and `direction` that of its half-stream;
    `offset` is the stream offset of the record's `header` of five octets. `payload` is None where
    it is encrypted, or may be.
    """

    conversation: int
    direction: int
    offset: int
    header: bytes
    payload: bytes | None
