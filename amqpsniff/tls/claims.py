"""What records of TLS are, for those who write their bytes again.

A `RecordClaim` is made for each whole record of a conversation that is TLS for sure, in the order
of the records, as long as nothing is lost of a direction. Nothing is opened for it. An
`OpenedClaim` is made for each record that opened, also behind a hole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .suites import Suite


class RecordClaim(NamedTuple):
    """A record of one direction of one conversation.

    `conversation` is the serial number of the conversation and `direction` that of its half-stream;
    `offset` is the stream offset of the record's `header` of five bytes. `payload` is None where
    it is encrypted, or may be.
    """

    conversation: int
    direction: int
    offset: int
    header: bytes
    payload: bytes | None


@dataclass(frozen=True, eq=False)
class Keys:
    """The keys of some records of one direction, without what they are: whoever protects the same
    records again makes others of the same kind.

    Attributes:
        suite: The cipher suite.
        version: The version, as on the wire.
        side: 0 for what the client sends, 1 for what the server sends.
        label: That of its secret in a key log; empty for the keys after a KeyUpdate.
        client_random, server_random: The randoms of the handshake.
        session: The client's random of the connection that first had the same secret.
        mac_last: Whether the MAC comes after encryption, before TLS 1.3.
        before: Those that a KeyUpdate replaced; None for the first ones.
    """

    suite: Suite
    version: int
    side: int
    label: bytes
    client_random: bytes
    server_random: bytes
    session: bytes
    mac_last: bool
    before: Keys | None


class OpenedClaim(NamedTuple):
    """A record of one direction of one conversation that opened, or of which a part did.

    `conversation`, `direction`, `offset` and `header` are as in `RecordClaim`; `size` is the length
    of the record's payload and `prefix` what stands before its ciphertext. `number` is the record's
    under its `keys`. `kind` is what the record carries, `at` where that stands in the stream of
    data that was encrypted. `text` is what it carries, filler of the same length where only a part
    was captured; `padding` are the zeros behind it, in TLS 1.3.
    """

    conversation: int
    direction: int
    offset: int
    header: bytes
    size: int
    prefix: bytes
    number: int
    keys: Keys
    kind: int
    at: int
    text: bytes
    padding: int
