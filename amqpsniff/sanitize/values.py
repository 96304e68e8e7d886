"""Values and field tables, cleaned in place: every length stays the same.

A table is walked by its lengths. What cannot be walked (an unknown tag, a length beyond its
container, nesting without end) is filler from there to the end of the container.
"""

from __future__ import annotations

from collections.abc import Callable

from amqpsniff.decode.values import MAX_TABLE_DEPTH
from amqpsniff.sanitize import policy
from amqpsniff.sanitize.names import Pseudonyms
from amqpsniff.sanitize.policy import COUNT, FILL, HIDDEN, KEEP, NAME, SanitizeOptions, fill, filler
from amqpsniff.spec import FIELD_TYPES, field_tags

_TYPES = [FIELD_TYPES[code] for code in field_tags("rabbitmq")]
_WIDTHS = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4,
    "int64": 8, "uint64": 8, "float": 4, "double": 8, "decimal": 5, "timestamp": 8, "void": 0,
}  # fmt: skip
_TEXTS = ("longstr", "octets")
_PEER = policy.actions(policy.PEER_PROPERTIES)
_DECLARED = policy.actions(policy.DECLARED)
_BROKER_HEADERS = policy.actions(policy.BROKER_HEADERS)
_NESTED = policy.actions(policy.NESTED)

Choose = Callable[[bytes], str]
"""The action for a value by the name it has in its table."""


class ValueCleaner:
    """Cleans values by the options.

    `unseen` are names of headers in the options that no message had so far.
    """

    def __init__(self, options: SanitizeOptions) -> None:
        self.names = Pseudonyms()
        self._pseudonymous = options.names
        self._chosen = None
        if options.headers is not None:
            self._chosen = frozenset(name.encode() for name in options.headers)
        self._kept_headers = frozenset(name.encode() for name in options.keep_headers)
        self.unseen = set(self._kept_headers | (self._chosen or frozenset()))
        self.choosers: dict[str, Choose] = {
            policy.PEER: lambda name: _PEER.get(name, FILL),
            policy.ARGUMENTS: lambda name: _DECLARED.get(name, FILL),
            policy.HEADERS: self.header,
        }

    def header(self, name: bytes) -> str:
        """Action for the value of a header."""
        self.unseen.discard(name)
        if name in self._kept_headers:
            return KEEP
        if self._chosen is not None:
            return FILL if name in self._chosen else _BROKER_HEADERS.get(name, KEEP)
        return _BROKER_HEADERS.get(name, FILL)

    def text(self, text: bytes, action: str) -> bytes:
        """A text after an action; as long as it was."""
        if action == KEEP:
            return text
        if action == NAME:
            return self.names.name(text) if self._pseudonymous else text
        if action == HIDDEN and self._pseudonymous:
            return self.names.name(text)
        return filler(len(text))

    def address(self, address: bytes) -> bytes:
        """An address of AMQP 1.0; as long as it was."""
        scheme, separator, location = address.partition(b"://")
        if separator:
            host, slash, path = location.partition(b"/")
            return scheme + separator + self.text(host, HIDDEN) + slash + self.address(path)
        return self.names.address(address) if self._pseudonymous else address

    def whole(self, octets: bytes) -> bytes:
        """A name that is not taken apart: the bytes of a UUID."""
        return self.names.whole(octets) if self._pseudonymous else octets

    def table(self, octets: bytearray, at: int, end: int, choose: Choose, depth: int = 0) -> None:
        """Clean the name/value pairs of a table at `at` to `end`, behind its length."""
        while at < end:
            name_end = at + 1 + octets[at]
            if name_end >= end:
                break
            action = choose(bytes(octets[at + 1 : name_end]))
            at = self._value(octets, name_end, end, action, depth)
            if at < 0:
                return
        fill(octets, at, end)

    def _value(self, octets: bytearray, at: int, end: int, action: str, depth: int) -> int:
        """Clean the value whose tag is at `at`; the position behind it, -1 if all became filler."""
        kind = _TYPES[octets[at]]
        start = at + 1
        width = _WIDTHS.get(kind)
        if width is not None:
            if start + width > end:
                return fill(octets, start, end)
            if action not in (KEEP, NAME, COUNT):
                octets[start : start + width] = bytes(width)
            return start + width
        if kind == "" or start + 4 > end:
            return fill(octets, start, end)
        stop = start + 4 + int.from_bytes(octets[start : start + 4], "big")
        start += 4
        if stop > end:
            return fill(octets, start, end)
        if kind in _TEXTS:
            octets[start:stop] = self.text(bytes(octets[start:stop]), action)
        elif depth >= MAX_TABLE_DEPTH:  # as deep as it is read
            octets[start:stop] = filler(stop - start)
        elif kind == "table":
            self.table(octets, start, stop, self.inside(action), depth + 1)
        else:
            self._array(octets, start, stop, action, depth + 1)
        return stop

    def _array(self, octets: bytearray, at: int, end: int, action: str, depth: int) -> None:
        while 0 <= at < end:
            at = self._value(octets, at, end, action, depth)

    def inside(self, action: str) -> Choose:
        """Action for values in a table that is itself a value."""
        if action == NAME:
            return lambda name: _NESTED.get(name, NAME)
        if action == KEEP and self._chosen:
            return self._chosen_within
        return lambda _: action

    def _chosen_within(self, name: bytes) -> str:
        """The action for a value inside a kept header: chosen names apply there too."""
        assert self._chosen is not None
        self.unseen.discard(name)
        return FILL if name in self._chosen else KEEP
