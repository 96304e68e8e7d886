"""Values of AMQP 1.0, cleaned in place: every size stays the same.

A value is walked by its constructors and sizes (§1.2). What cannot be walked (an unknown
constructor, a size beyond its container, nesting without end) is filler from there to the end of
the container. A value whose end is missing is cleaned up to there.
"""

from __future__ import annotations

import re

from amqpsniff.sanitize import policy
from amqpsniff.sanitize.credentials import safe_login
from amqpsniff.sanitize.policy import (
    ADDRESS,
    ARGUMENTS,
    BODY,
    COUNT,
    DECLARATION,
    FILL,
    HEADERS,
    HIDDEN,
    HOST,
    INSIDE,
    KEEP,
    LOGIN,
    NAME,
    PEER,
    REQUEST,
    SUBJECT,
    TAGS,
    TEXT,
    WORD,
    fill,
    filler,
    is_word,
)
from amqpsniff.sanitize.replies import safe_reply
from amqpsniff.sanitize.values import Choose, ValueCleaner
from amqpsniff.spec.amqp10 import COMPOSITES, ENCODINGS, SECTIONS, base_type

MAX_DEPTH = 32
"""Nesting that is walked, as deep as it is read (`decode.amqp10.values`)."""

_ENCODINGS = {row.code: row for row in ENCODINGS}
_CODES = {row.code for row in COMPOSITES} | {row.code for row in SECTIONS}
SYMBOLS = {
    **{f"amqp:{row.name}:list".encode(): row.code for row in COMPOSITES},
    **{f"amqp:{row.name}:{row.kind}".encode(): row.code for row in SECTIONS},
}
"""Descriptors by their symbols."""
_FIELDS = policy.actions(policy.AMQP10_FIELDS)
_NUMBERS = {row.type for row in ENCODINGS if row.category == "fixed"}
_FIXED_KEPT = frozenset((KEEP, NAME, COUNT, ADDRESS))
_MAPS = frozenset((HEADERS, PEER, REQUEST))
_VHOST = b"vhost:"
_IS_REQUEST = re.compile(rb"GET|PUT|POST|DELETE|[1-5][0-9][0-9]")
_FALSE, _TRUE, _UUID = 0x42, 0x41, 0x98


def _field_action(name: str, kind: str) -> str:
    """What becomes of a field: a number stays a number, other values go by the rules."""
    return _FIELDS.get(name.encode(), COUNT if base_type(kind) in _NUMBERS else FILL)


ACTIONS = {
    row.code: [_field_action(field.name, field.type) for field in row.fields] for row in COMPOSITES
}
"""Actions for the fields of composites, by descriptor."""


class TypedCleaner:
    """Cleans values of AMQP 1.0 by the actions of the policy.

    `mechanism` is the SASL mechanism of the response that is cleaned; `declares`: the properties
    are those of a message to or from `/management`.
    """

    def __init__(self, values: ValueCleaner) -> None:
        self._values = values
        self.mechanism = b""
        self.declares = False
        peer = policy.actions((*policy.PEER_PROPERTIES, *policy.LINK_PROPERTIES))
        request = policy.actions(policy.REQUEST_HEADERS)
        declared = policy.actions(policy.DECLARATIONS)
        self._choosers: dict[str, Choose] = {
            HEADERS: values.header,
            PEER: lambda name: peer.get(name, FILL),
            REQUEST: lambda name: request.get(name) or values.header(name),
            DECLARATION: lambda name: declared.get(name, FILL),
            ARGUMENTS: values.choosers[ARGUMENTS],
            BODY: lambda _: BODY,
        }

    def text(self, text: bytes, action: str) -> bytes:
        """A text after an action; as long as it was."""
        if action == WORD:
            return text if is_word(text) else filler(len(text))
        if action == ADDRESS:
            return self._values.address(text)
        if action == SUBJECT:
            is_kept = self.declares and _IS_REQUEST.fullmatch(text)
            return text if is_kept else self._values.text(text, NAME)
        if action == TEXT:
            return safe_reply(text, self._values.text)
        if action == LOGIN:
            return safe_login(self.mechanism, text, lambda user: self._values.text(user, HIDDEN))
        if action == HOST:
            if text.startswith(_VHOST):
                return _VHOST + self._values.text(text[len(_VHOST) :], NAME)
            return self._values.text(text, HIDDEN)
        return self._values.text(text, action)

    def value(self, octets: bytearray, at: int, end: int, action: str, depth: int = 0) -> int:
        """Clean the value at `at`; the position behind it, -1 where all to the end is cleaned."""
        if at >= end:
            return -1
        if depth > MAX_DEPTH:
            return fill(octets, at, end)
        if octets[at] == 0:
            return self._described(octets, at, end, action, depth)
        if octets[at] == _TRUE and action not in _FIXED_KEPT:
            octets[at] = _FALSE
        return self._bare(octets, octets[at], at, at + 1, end, action, depth)

    def descriptor(self, octets: bytearray, at: int, end: int) -> tuple[int, int]:
        """The code of the descriptor whose constructor is at `at`, and the position behind it.

        The code is -1 for one that is no row's. It is cleaned unless it is known to be of a
        standard or a broker; the position is -1 where it is not whole, or neither number nor
        symbol.
        """
        kind = octets[at] if at < end else 0
        row = _ENCODINGS.get(kind)
        if row is None or row.type not in ("ulong", "symbol"):
            return -1, fill(octets, at, end)
        start = at + 1
        if row.category == "fixed":
            stop = start + row.width
            if stop > end:
                return -1, fill(octets, start, end)
            code = int.from_bytes(octets[start:stop], "big")
            if code not in _CODES and not _is_registered(code):
                octets[start:stop] = bytes(row.width)
            return (code if code in _CODES else -1), stop
        start += row.width
        stop = start + int.from_bytes(octets[at + 1 : start], "big")
        if stop > end:
            return -1, fill(octets, min(start, end), end)
        symbol = bytes(octets[start:stop])
        octets[start:stop] = self.text(symbol, WORD)
        return SYMBOLS.get(symbol, -1), stop

    def fields(self, octets: bytearray, at: int, end: int, code: int, depth: int = 0) -> int:
        """Clean the list of a composite with a descriptor; as `value` does."""
        span = _open(octets, at, end)
        if span is None:
            return self.value(octets, at, end, FILL, depth)
        first, limit, count, is_whole = span
        actions = ACTIONS[code]
        for index in range(count):
            if not first < limit:
                break
            action = actions[index] if index < len(actions) else FILL
            first = self.value(octets, first, limit, action, depth + 1)
            if first < 0:
                return limit if is_whole else -1
        fill(octets, first, limit)
        return limit if is_whole else -1

    def _described(self, octets: bytearray, at: int, end: int, action: str, depth: int) -> int:
        code, body_at = self.descriptor(octets, at + 1, end)
        if body_at < 0:
            return -1
        if action == INSIDE and code in ACTIONS and body_at < end:
            return self.fields(octets, body_at, end, code, depth + 1)
        return self.value(octets, body_at, end, FILL if action == INSIDE else action, depth + 1)

    def _bare(
        self, octets: bytearray, code: int, at: int, start: int, end: int, action: str, depth: int
    ) -> int:
        """Clean the value at `start`, behind its constructor at `at` or that of an array."""
        row = _ENCODINGS.get(code)
        if row is None or start + row.width > end:
            return fill(octets, at, end)
        body = start + row.width
        if row.category == "fixed":
            if code == _UUID and action in (NAME, ADDRESS):
                octets[start:body] = self._values.whole(bytes(octets[start:body]))
            elif action not in _FIXED_KEPT:
                octets[start:body] = bytes(row.width)
            return body
        size = int.from_bytes(octets[start:body], "big")
        stop = min(body + size, end)
        if row.category == "variable":
            octets[body:stop] = self.text(bytes(octets[body:stop]), action)
        elif depth >= MAX_DEPTH or body + row.width > stop:
            fill(octets, body, stop)
        else:
            count = int.from_bytes(octets[body : body + row.width], "big")
            first = body + row.width
            if row.category == "array":
                self._array(octets, first, stop, count, action, depth + 1)
            elif row.type == "map":
                self._map(octets, first, stop, count, action, depth + 1)
            else:
                self._list(octets, first, stop, count, action, depth + 1)
        return stop if stop == body + size else -1

    def _list(
        self, octets: bytearray, at: int, end: int, count: int, action: str, depth: int
    ) -> None:
        inside = FILL if action in _MAPS or action == INSIDE else action
        while count > 0 and 0 <= at < end:
            at = self.value(octets, at, end, inside, depth)
            count -= 1
        if at >= 0:
            fill(octets, at, end)

    def _map(
        self, octets: bytearray, at: int, end: int, count: int, action: str, depth: int
    ) -> None:
        choose = self._choosers.get(action) or self._values.inside(action)
        while count > 1 and 0 <= at < end:
            key = self._key(octets, at, end)
            if action == TAGS:
                at, chosen = self.value(octets, at, end, NAME, depth), INSIDE
            elif key is None or action == BODY:
                chosen = BODY if action == BODY else FILL
                at = self.value(octets, at, end, chosen, depth)
            else:
                chosen, at = choose(key[0]), key[1]
            if at >= 0:
                at = self.value(octets, at, end, chosen, depth)
            count -= 2
        if at >= 0:
            fill(octets, at, end)

    def _key(self, octets: bytearray, at: int, end: int) -> tuple[bytes, int] | None:
        """A key that is a text, and the position behind it; None for another."""
        row = _ENCODINGS.get(octets[at])
        if row is None or row.type not in ("symbol", "string") or at + 1 + row.width > end:
            return None
        start = at + 1 + row.width
        stop = start + int.from_bytes(octets[at + 1 : start], "big")
        return (bytes(octets[start:stop]), stop) if stop <= end else None

    def _array(
        self, octets: bytearray, at: int, end: int, count: int, action: str, depth: int
    ) -> None:
        """Clean the elements of an array, which have one constructor."""
        if at < end and octets[at] == 0:
            _, at = self.descriptor(octets, at + 1, end)
        if not 0 <= at < end:
            return
        code = octets[at]
        if code == _TRUE and action not in _FIXED_KEPT:
            octets[at] = _FALSE
        row = _ENCODINGS.get(code)
        if row is None:
            fill(octets, at, end)
            return
        at += 1
        inside = FILL if action == INSIDE else action
        while count > 0 and 0 <= at < end:
            at = self._bare(octets, code, at, at, end, inside, depth)
            count -= 1
        if at >= 0:
            fill(octets, at, end)


def _open(octets: bytearray, at: int, end: int) -> tuple[int, int, int, bool] | None:
    """Of a list: begin and end of its items, their number, and True if it is whole.

    None for another value, or if the list's head is not complete.
    """
    row = _ENCODINGS.get(octets[at]) if at < end else None
    if row is None or row.type != "list":
        return None
    width = row.width
    first = at + 1 + 2 * width
    if width == 0:
        return at + 1, at + 1, 0, True
    if first > end:
        return None
    stop = at + 1 + width + int.from_bytes(octets[at + 1 : at + 1 + width], "big")
    count = int.from_bytes(octets[first - width : first], "big")
    return first, max(first, min(stop, end)), count, stop <= end and stop >= first


def _is_registered(code: int) -> bool:
    """True if a descriptor has the number of a filter that brokers know (Apache, OASIS)."""
    return 0x468C00000000 <= code <= 0x468C0000000F or code in (0x120, 0x173, 0x174)
