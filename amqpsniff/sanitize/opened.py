"""Records of TLS that were opened: what they carry is made safe, and protected again.

What a direction said inside TLS is a stream of its own (`OpenedStreams.data`), made safe as one in
clear is: filler, and over it what was understood. Then every record is sealed again with what
stands there, under keys that the safe capture carries with it. So all of TLS stays as it was: its
records, their sizes, which of them have a hole.

Records wait in a temporary file in the order in which they opened; of what they carry only that of
handshakes (made safe) is in it, and bodies that are kept.
"""

from __future__ import annotations

import struct
import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from typing import IO, Any

from amqpsniff.sanitize.filling import filler
from amqpsniff.sanitize.records import RecordCleaner
from amqpsniff.sanitize.streams import SafeStreams
from amqpsniff.sanitize.values import ValueCleaner
from amqpsniff.tls.claims import Keys, OpenedClaim, RecordClaim
from amqpsniff.tls.hello import TLS_1_3
from amqpsniff.tls.records import ALERT, DATA, HANDSHAKE

MAX_SEALERS = 16_384
"""Directions whose cipher is kept while records are sealed; of another it is made again."""

_ROW = struct.Struct("<qBq5sHB16sqIBqIHI")
"""A record in the file: as in `OpenedClaim`, with lengths before what has none, keys by number, and
behind it the bytes that are kept."""


class OpenedStreams:
    """What conversations said inside TLS: records are taken first, then sealed.

    Args:
        values: What cleans names.
        keep_bodies: Whether bytes of data may be asked for as they are.

    Attributes:
        data: The bytes that records of data carry, as they stand in the safe capture.
    """

    def __init__(self, values: ValueCleaner, *, keep_bodies: bool) -> None:
        self.data = SafeStreams()
        self._keep_bodies = keep_bodies
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed with us)
        self._serials: set[int] = set()
        self._keys: list[Keys] = []
        self._numbers: dict[Keys, int] = {}
        self._messages = SafeStreams()
        self._cleaners = (RecordCleaner(values), RecordCleaner(values, inside=True))
        self._said = 0
        self._own: Any = None

    def __contains__(self, conversation: int) -> bool:
        """Whether records of a conversation opened."""
        return conversation in self._serials

    def take(self, claim: OpenedClaim) -> None:
        """The next record that opened."""
        self._serials.add(claim.conversation)
        if claim.keys not in self._numbers:
            self._numbers[claim.keys] = len(self._keys)
            self._keys.append(claim.keys)
        at, kept = claim.at, b""
        if claim.kind == HANDSHAKE:
            at = self._handshake(claim)
        elif claim.kind == DATA:
            kept = claim.text if self._keep_bodies else b""
        elif claim.kind == ALERT and len(claim.text) == 2:
            kept = claim.text
        self._file.write(
            _ROW.pack(
                claim.conversation, claim.direction, claim.offset, claim.header, claim.size,
                len(claim.prefix), claim.prefix, claim.number, self._numbers[claim.keys],
                claim.kind, at, len(claim.text), claim.padding, len(kept),
            )
        )  # fmt: skip
        self._file.write(kept)

    def _handshake(self, claim: OpenedClaim) -> int:
        """Clean what a record of the handshake carries; where it stands among all that are."""
        cleaner = self._cleaners[claim.keys.version == TLS_1_3]
        header = bytes((HANDSHAKE,))
        message = RecordClaim(claim.conversation, claim.direction, self._said, header, claim.text)
        for span in cleaner.clean(message):
            self._messages.put(*span)
        at = self._said + len(header)
        self._said = at + len(claim.text)
        return at

    def seal(self, streams: SafeStreams) -> None:
        """Put every record as it stands in the safe capture, protected with keys of its own."""
        if not self._keys:
            return
        from amqpsniff.tls.sealing import SecretsOfOwn, sealer

        for cleaner in self._cleaners:
            for span in cleaner.finish():
                self._messages.put(*span)
        self.data.seal()
        self._messages.seal()
        self._own = SecretsOfOwn()
        sealers: OrderedDict[Keys, Any] = OrderedDict()
        for claim, kept in self._records():
            made = sealers.get(claim.keys)
            if made is None:
                made = sealers[claim.keys] = sealer(claim.keys, self._own.secret(claim.keys))
                if len(sealers) > MAX_SEALERS:
                    sealers.popitem(last=False)
            else:
                sealers.move_to_end(claim.keys)
            payload = made.seal(claim, self._text(claim, kept))
            place = (claim.conversation, claim.direction, claim.offset)
            streams.put(*place, claim.header + payload)

    def _records(self) -> Iterator[tuple[OpenedClaim, bytes]]:
        """The records again, with the bytes of each that were kept."""
        self._file.seek(0)
        while row := self._file.read(_ROW.size):
            (serial, direction, offset, header, size, length, prefix, number, keys, kind, at,
             octets, padding, kept) = _ROW.unpack(row)  # fmt: skip
            text = filler(octets)
            place = (serial, direction, offset, header, size, prefix[:length], number)
            claim = OpenedClaim(*place, self._keys[keys], kind, at, text, padding)
            yield claim, self._file.read(kept)

    def _text(self, claim: OpenedClaim, kept: bytes) -> bytes:
        """What a record carries in the safe capture."""
        own = kept or claim.text
        if claim.kind == DATA:
            return bytes(self.data.read(claim.conversation, claim.direction, claim.at, own))
        if claim.kind == HANDSHAKE:
            return bytes(self._messages.read(claim.conversation, claim.direction, claim.at, own))
        return own

    def key_log(self) -> Iterator[bytes]:
        """Lines of a key log that opens the safe capture."""
        if self._own is not None:
            yield from self._own.lines()

    def close(self) -> None:
        """Let go of the files."""
        self.data.close()
        self._messages.close()
        self._file.close()
