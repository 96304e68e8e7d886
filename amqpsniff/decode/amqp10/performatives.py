# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Performatives: the described list in the body of a frame, read once.

`PerformativeDecoder` notes where each field is, writes the fields that were sent as JSON, and reads
the few numbers that the session goes by into a `Performative`.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.columns import Texts
from cython.cimports.amqpsniff.decode.amqp10.codes import (
    ATTACH,
    BEGIN,
    CLOSE,
    DECLARED,
    DETACH,
    DISPOSITION,
    END,
    ERROR,
    EXACT,
    FLOW,
    LONG,
    MODIFIED,
    RECEIVED,
    REJECTED,
    SASL_OUTCOME,
    SHORT,
    TRANSACTIONAL,
    TRANSFER,
    UNKNOWN,
    UNREAD,
)
from cython.cimports.amqpsniff.decode.values import TableCache

from amqpsniff.spec.amqp10 import (
    COMPOSITES,
    ENCODINGS,
    LAST_PERFORMATIVE,
    PERFORMATIVES,
    SASL_CODES,
    SECRETS,
    base_type,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.amqp10.values import TypedReader

MAX_FIELDS = 16
"""Fields that there is room for; no performative has more."""

STATES = {row.code: row.name for row in COMPOSITES if row.code in range(0x23, 0x35)}
"""Names of delivery states by descriptor."""


def _steps(field: Any) -> Any:
    """The steps of a field, see `_STEPS`."""
    kind = base_type(field.type)
    allowed = {row.code for row in ENCODINGS if row.type == kind}
    if field.multiple:
        allowed |= {row.code for row in ENCODINGS if row.category == "array"}
    if kind in {row.name for row in COMPOSITES}:
        allowed.add(0)
    return bytes(
        _WIDTHS.get(code, BY_LENGTH) | (0 if kind == "*" or code in allowed else WRONG)
        for code in range(256)
    )


NO_PLACE = 100
"""In place of the place of a performative: a descriptor is none."""


def _table(values: Any, missing: Any) -> Any:
    """One byte for each descriptor there may be."""
    return bytes(values.get(code, missing) for code in range(256))


_FIELDS = {row.code: [field.name for field in row.fields] for row in PERFORMATIVES}
_COUNTS = cython.declare(bytes, _table({code: len(names) for code, names in _FIELDS.items()}, 0))
_PLACES = cython.declare(
    bytes, _table({row.code: place for place, row in enumerate(PERFORMATIVES)}, NO_PLACE)
)
WRONG, BY_LENGTH, OCTET_LENGTH = 0x80, 0x60, 0x20
_WRONG = cython.declare(cython.int, WRONG)
_BY_LENGTH = cython.declare(cython.int, BY_LENGTH)
_OCTET_LENGTH = cython.declare(cython.int, OCTET_LENGTH)
_WIDTHS = {row.code: 1 + row.width for row in ENCODINGS if row.category == "fixed"}
_WIDTHS |= dict.fromkeys((0xA0, 0xA1, 0xA3), OCTET_LENGTH | 2)
_STEPS = cython.declare(
    bytes,
    b"".join(
        b"".join(map(_steps, row.fields)).ljust(256 * MAX_FIELDS, b"\0") for row in PERFORMATIVES
    ),
)
"""By performative, field and constructor: bytes that a value takes at least, or only the bit
`BY_LENGTH` where it has to be skipped; `OCTET_LENGTH` where an octet says how many come behind
these; `WRONG` where the field has another type."""
_SECRETS = cython.declare(
    dict,
    {
        code: sum(1 << place for place, name in enumerate(names) if name in SECRETS)
        for code, names in _FIELDS.items()
    },
)
_KEYS = cython.declare(
    list, [[f'"{field.name}":'.encode() for field in row.fields] for row in PERFORMATIVES]
)

_LAST = cython.declare(cython.int, LAST_PERFORMATIVE)

_NO_PLACE = cython.declare(cython.int, NO_PLACE)
_ROOM = cython.declare(cython.longlong, MAX_FIELDS)


@cython.cclass
class Performative:
    """The fields that the session reads: `code`, and those that are there.

    Numbers are -1 where they are not there, truths too. `state` is the descriptor of a delivery
    state, 0 for none, `outcome` that of the one inside a transactional state. `condition` and
    `description` are of an error, `transaction` is the id of one in hex; None without. `delivery`
    counts the deliveries of a decoder: the one that a transfer is of. `manages`: a transfer with a
    request to RabbitMQ's management or its answer.
    """

    code: cython.int
    state: cython.int
    outcome: cython.int
    handle: cython.longlong
    delivery: cython.longlong
    first: cython.longlong
    last: cython.longlong
    next_incoming_id: cython.longlong
    incoming_window: cython.longlong
    next_outgoing_id: cython.longlong
    delivery_count: cython.longlong
    link_credit: cython.longlong
    available: cython.longlong
    begins: cython.bint
    manages: cython.bint
    settled: cython.schar
    more: cython.schar
    aborted: cython.schar
    resume: cython.schar
    role: cython.schar
    drain: cython.schar
    failed: cython.schar
    undeliverable: cython.schar
    condition: str
    description: str
    transaction: str

    def __init__(self) -> None:
        self.condition = self.description = self.transaction = None


@cython.cclass
class PerformativeDecoder:
    """Reads bodies of frames.

    After `read`, `code` is the descriptor, `place` that of its performative in `spec.amqp10`, and
    `payload` where the list ends. `starts` and `ends` are of fields that are not null, a start of
    -1 of others. `wrong` is the place of the first field that has another type than the
    standard's, -1 for none.
    """

    show_secrets: cython.bint
    code: cython.int
    wrong: cython.int
    payload: cython.longlong
    fields: cython.longlong

    place: cython.int
    starts: cython.longlong[16]
    ends: cython.longlong[16]

    def __init__(self, show_secrets: Any) -> None:
        self.show_secrets = show_secrets
        self.code = self.wrong = -1
        self.payload = 0
        self.fields = 0
        if not cython.compiled:
            self.starts = [-1] * MAX_FIELDS
            self.ends = [-1] * MAX_FIELDS

    def read(self, reader: TypedReader, at: cython.longlong, end: cython.longlong) -> cython.int:
        """Find the fields of the list that begins at `at`; gives how it was read."""
        self.code = self.wrong = -1
        self.payload = end
        self.fields = 0
        place: cython.longlong = at + 3
        code: cython.int
        if at < 0 or end > len(reader.data):
            raise IndexError("a performative outside the data")
        with cython.boundscheck(False):  # the range was checked
            if place < end and reader.data[at] == 0 and reader.data[at + 1] == 0x53:
                code = reader.code = reader.data[at + 2]
            else:
                place = reader.descriptor(at, end)
                code = reader.code
        if place < 0:
            return UNREAD
        if code < 0 or code > 255 or _PLACES[code] == _NO_PLACE:
            return UNKNOWN
        self.code = code
        self.place = _PLACES[code]
        if not reader.open_list(place, end):
            return UNREAD if reader.limit <= end else SHORT
        limit: cython.longlong = reader.limit
        count: cython.longlong = reader.count
        answer: cython.int = EXACT
        if limit > end:
            answer = SHORT
            limit = end
        self.payload = limit
        if count > _COUNTS[code]:
            answer = LONG
            count = _COUNTS[code]
        steps: cython.longlong = 256 * _ROOM * self.place
        at = reader.items
        i: cython.longlong = 0
        octet: cython.int
        step: cython.int
        after: cython.longlong
        with cython.boundscheck(False):  # the range was checked, and tables have a place for each
            while i < count and at < limit:
                octet = reader.data[at]
                if octet == 0x40:
                    self.starts[i] = -1
                    at += 1
                else:
                    step = _STEPS[steps + octet]
                    after = at + (step & 0x1F)
                    if step & _BY_LENGTH:
                        if step & _BY_LENGTH == _OCTET_LENGTH and at + 1 < limit:
                            after += reader.data[at + 1]
                        else:
                            after = reader.skip(at, limit)
                    if after < 0 or after > limit:
                        break
                    if step & _WRONG and self.wrong < 0:
                        self.wrong = cython.cast(cython.int, i)
                    self.starts[i] = at
                    self.ends[i] = at = after
                steps += 256
                i += 1
        self.fields = i
        return answer if i == count else SHORT

    @property
    def wrong_field(self) -> Any:
        """The name of the field of a wrong type."""
        return _FIELDS[self.code][self.wrong]

    @cython.exceptval(-2)
    def start(self, place: cython.int) -> cython.longlong:
        """The offset of a field; -1 for one that is not there."""
        return self.starts[place] if place < self.fields else -1

    @cython.exceptval(-2)
    def number(self, reader: TypedReader, place: cython.int) -> cython.longlong:
        """An unsigned number; -1 for one that is not there."""
        return _number(self, reader, place)

    @cython.cfunc
    def octets(self, reader: TypedReader, place: cython.int) -> bytes:
        """The bytes of a text or binary; None for one that is not there."""
        if place >= self.fields or self.starts[place] < 0:
            return None
        length: cython.longlong = reader.text_at(self.starts[place], self.ends[place])
        return None if length < 0 else reader.bytes_at(reader.items, length)

    def put_json(self, reader: TypedReader, payload_bytes: cython.longlong) -> cython.int:
        """Write the fields as JSON into the open row of `reader.out`."""
        out: Texts = reader.out
        keys: list[Any] = _KEYS[self.place]
        secrets: cython.int = 0
        if not self.show_secrets and self.code > CLOSE:
            secrets = _SECRETS[self.code]
        i: cython.longlong
        first: cython.bint = True
        out.put_byte(123)
        for i in range(self.fields):
            if self.starts[i] < 0:
                continue
            if not first:
                out.put_byte(44)
            first = False
            out.put_bytes(keys[i])
            if secrets >> i & 1:
                out.put_bytes(b'"[redacted]"')
            else:
                reader.put_value(self.starts[i], self.ends[i])
        if payload_bytes >= 0:
            out.put_bytes(b'"payload_bytes":' if first else b',"payload_bytes":')
            reader._digits(payload_bytes)
        return out.put_byte(125)

    def performative(self, reader: TypedReader, found: Performative) -> cython.int:
        """Read the fields that the session needs into an object, which may be of another one."""
        code: cython.int = self.code
        found.code = code
        if found.condition is not None or found.transaction is not None:
            found.condition = found.description = found.transaction = None
        found.begins = found.manages = False
        found.state = found.outcome = 0
        found.handle = found.delivery = found.first = found.last = -1
        found.settled = found.failed = found.undeliverable = -1
        if code == TRANSFER:
            found.handle = _number(self, reader, 0)
            found.first = _number(self, reader, 1)
            found.settled = _truth(self, reader, 4)
            found.more = _truth(self, reader, 5)
            found.aborted = found.resume = -1
            if self.fields > 6:
                found.resume = _truth(self, reader, 8)
                found.aborted = _truth(self, reader, 9)
                self._state(reader, found, 7)
        elif code == DISPOSITION:
            found.role = _truth(self, reader, 0)
            found.first = _number(self, reader, 1)
            found.last = _number(self, reader, 2)
            if found.last < 0:
                found.last = found.first
            found.settled = _truth(self, reader, 3)
            self._state(reader, found, 4)
        elif code == FLOW:
            found.next_incoming_id = _number(self, reader, 0)
            found.incoming_window = _number(self, reader, 1)
            found.next_outgoing_id = _number(self, reader, 2)
            found.handle = _number(self, reader, 4)
            found.delivery_count = _number(self, reader, 5)
            found.link_credit = _number(self, reader, 6)
            found.available = _number(self, reader, 7)
            found.drain = _truth(self, reader, 8)
        elif code == ATTACH:
            found.handle = _number(self, reader, 1)
            found.role = _truth(self, reader, 2)
            found.delivery_count = _number(self, reader, 9)
        elif code == BEGIN:
            found.first = _number(self, reader, 0)
            found.next_outgoing_id = _number(self, reader, 1)
            found.incoming_window = _number(self, reader, 2)
        elif code == DETACH:
            found.handle = _number(self, reader, 0)
            found.settled = _truth(self, reader, 1)
            self._error_field(reader, found, 2)
        elif code == END or code == CLOSE:
            self._error_field(reader, found, 0)
        elif code == SASL_OUTCOME:
            number: cython.longlong = _number(self, reader, 0)
            if number > 0:
                found.condition = dict(enumerate(SASL_CODES)).get(number, str(number))
        return 0

    def _error_field(
        self, reader: TypedReader, found: Performative, place: cython.int
    ) -> cython.int:
        """Read the error of a detach, an end or a close."""
        if self.start(place) >= 0:
            self._error(reader, found, self.starts[place], self.ends[place])
        return 0

    def _state(self, reader: TypedReader, found: Performative, place: cython.int) -> cython.int:
        """Read a delivery state."""
        if place >= self.fields or self.starts[place] < 0:
            return 0
        end: cython.longlong = self.ends[place]
        at: cython.longlong = reader.descriptor(self.starts[place], end)
        if at < 0:
            return 0
        found.state = found.outcome = reader.code
        if found.state < RECEIVED or not reader.open_list(at, end):
            return 0
        at = reader.items
        limit: cython.longlong = reader.limit
        if found.state == TRANSACTIONAL or found.state == DECLARED:
            length: cython.longlong = reader.text_at(at, limit)
            if length >= 0:
                found.transaction = reader.bytes_at(reader.items, min(length, 64)).hex()
            at = reader.skip(at, limit)
            found.outcome = 0
            if found.state == TRANSACTIONAL and at >= 0:
                at = reader.descriptor(at, limit)
                if at >= 0:
                    found.outcome = reader.code
                    if reader.code == REJECTED and reader.open_list(at, limit):
                        self._error(reader, found, reader.items, reader.limit)
        elif found.state == REJECTED:
            self._error(reader, found, at, limit)
        elif found.state == MODIFIED:
            found.failed = reader.truth(at, limit)
            at = reader.skip(at, limit)
            found.undeliverable = reader.truth(at, limit) if at >= 0 else -1
        return 0

    def _error(
        self, reader: TypedReader, found: Performative, at: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """Read an error's condition and description."""
        at = reader.descriptor(at, end)
        if at < 0 or reader.code != ERROR or not reader.open_list(at, end):
            return 0
        end = min(end, reader.limit)
        at = reader.items
        length: cython.longlong = reader.text_at(at, end)
        if length < 0:
            return 0
        found.condition = reader.bytes_at(reader.items, length).decode(errors="replace")
        at = reader.skip(at, end)
        length = reader.text_at(at, end) if at >= 0 else -1
        if length >= 0:
            found.description = reader.bytes_at(reader.items, length).decode(errors="replace")
        return 0


@cython.cfunc
@cython.inline
@cython.exceptval(-2, check=False)
def _number(fields: PerformativeDecoder, reader: TypedReader, place: cython.int) -> cython.longlong:
    """An unsigned number; -1 for one that is not there."""
    if place >= fields.fields or fields.starts[place] < 0:
        return -1
    at: cython.longlong = fields.starts[place]
    octet: cython.int = reader.data[at]
    if octet == 0x43:
        return 0
    if octet == 0x52:
        return reader.data[at + 1]  # a field is whole
    return reader.number(at, fields.ends[place])


@cython.cfunc
@cython.inline
@cython.exceptval(-2, check=False)
def _truth(fields: PerformativeDecoder, reader: TypedReader, place: cython.int) -> cython.int:
    """1 or 0; -1 for a truth that is not there."""
    if place >= fields.fields or fields.starts[place] < 0:
        return -1
    octet: cython.int = reader.data[fields.starts[place]]
    if octet == 0x41 or octet == 0x42:
        return octet == 0x41
    return reader.truth(fields.starts[place], fields.ends[place])


@cython.cclass
class JsonCache(TableCache):
    """Cache of performatives and their JSON: different peers send equal ones."""

    decoder: PerformativeDecoder

    def __init__(self, decoder: Any) -> None:
        TableCache.__init__(self)
        self.decoder = decoder

    def _write(self, reader: Any, at: Any, end: Any) -> Any:
        """Write the JSON of a performative that is not in the cache."""
        self.decoder.put_json(reader, -1)
        return 0
