# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Columns with the meaning of a message in the framework that sent it.

`amqpsniff.packs` describes the messages of frameworks. A message is recognized by its shape:
exchange, content type and type, the known names of its headers, and those of its body if the rest
leaves it open. The reading of a shape is chosen once and cached; a message of a cached shape costs
a pass over its headers, and one over the first bytes of its body if a pack reads them. Cached
headers without known names need no second pass. A repeated message, mostly the delivery of a
publish, takes its columns from the earlier row.

The columns are an attribute of their rows (`MessageRows.meanings`), only if they are requested.
"""

from __future__ import annotations

import json
import re
import zlib

import cython
from cython.cimports.amqpsniff.columns import Codes, Integers, Octets, Texts, Vocabulary
from cython.cimports.amqpsniff.decode.json_names import ObjectNames
from cython.cimports.amqpsniff.decode.octets import ByteReader, code_of
from cython.cimports.amqpsniff.decode.rows import Vocabularies
from cython.cimports.amqpsniff.decode.values import Cache, TableCache
from cython.cimports.amqpsniff.null import NULL

from amqpsniff.decode.json_objects import read_object
from amqpsniff.decode.octets import own_seed
from amqpsniff.decode.values import MAX_CACHED, integers
from amqpsniff.packs.catalogue import (
    CALLS,
    COLUMNS,
    KEYS,
    LOOKED,
    NUMBERS,
    SAMPLED,
    WORDS,
    Shape,
)
from amqpsniff.packs.forms import FORMS, MAX_US, RELATIVE, SCALES, instant, whole

if cython.compiled:
    from cython.cimports.libc.string import memcmp  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.rows import MessageRows

MAX_BODY_BYTES = 4096
"""Bytes of a body that are looked at: in the bodies of frameworks what names the message stands
before the arguments."""

MAX_WORD_BYTES = 1024
"""Bytes of a value of which the word made of it is remembered: of types, and of stack traces, which
come again with each try."""

MAX_SEEN_BYTES = 1 << 20
"""Bytes of bodies that are remembered at a time: 256 of the longest, and a core's cache has room
for them."""

_SMALL = cython.declare(cython.longlong, 128)
"""Bytes of headers and body below which a message is read sooner than looked for."""


MAX_CLIENTS = 64
"""What clients said of themselves that is remembered: most of them say what others said."""

READS, DEMANDS = 1, 2
"""Bits of a connection: rules look at the bodies of its messages; its client refuses messages
without an id."""

MAX_SHAPES = 4096
"""Shapes that are remembered, and texts of which the word is: both can differ in each message."""

_RECENT = cython.declare(cython.int, 256)
"""Shapes that are told by numbers alone, without making texts of words."""

_MET = cython.declare(cython.int, 1)
_NAMELESS = cython.declare(cython.int, 2)
_BODILESS = cython.declare(cython.int, 4)
_VARIED = cython.declare(cython.int, 8)
"""Bits of `table_bits`: headers that were read; those without a known name; those beside which no
body is looked at; those that came again with another body."""

TEXTS = ("message_id", "correlation_id")
"""Properties that differ from message to message."""

_DEMANDS = cython.declare(cython.int, DEMANDS)
_SEED = cython.declare(cython.ulonglong, own_seed())
_MAX = cython.declare(cython.int, MAX_CACHED)
_MAX_BODY = cython.declare(cython.longlong, MAX_BODY_BYTES)
_MAX_SEEN = cython.declare(cython.longlong, MAX_SEEN_BYTES)
_MOST = (1 << 63) - 1
_QUOTE = cython.declare(cython.int, ord('"'))
_OBJECT = cython.declare(cython.int, ord("{"))
_SPACE = cython.declare(cython.int, ord(" "))
_MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_MIXER = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)


_FIRST_KEY = cython.declare(cython.int, COLUMNS.index(KEYS[0]))
_FIRST_NUMBER = cython.declare(cython.int, COLUMNS.index(NUMBERS[0]))
_NOT_BEFORE = cython.declare(cython.int, COLUMNS.index("not_before"))


@cython.final
@cython.cclass
class MeaningColumns:
    """The columns of packs for the messages of one batch; null where unknown.

    `written` has for each row a bit for each column that has a value, `used` those of all rows:
    the other columns take no room.
    """

    capacity: cython.longlong
    used: cython.int

    by_place: list[Any]
    codes: list[Any]
    words: dict[Any, Any]
    vocabularies: list[Any]
    written: cython.ushort[::1]

    CODES = ("framework", *WORDS)
    TEXTS = KEYS
    INTEGERS = NUMBERS

    def __init__(self) -> None:
        self.capacity = self.used = 0
        self.by_place = [
            Codes() if name in self.CODES else Texts() if name in KEYS else Integers()
            for name in COLUMNS
        ]
        self.words = {name: Vocabulary() for name in self.CODES}
        self.vocabularies = list(self.words.values())
        self.codes = [{} for _ in self.CODES]
        self.written = memoryview(bytearray()).cast("H")

    def columns(self) -> Any:
        """Every column that has a value by name."""
        named = enumerate(zip(COLUMNS, self.by_place, strict=True))
        return dict(pair for place, pair in named if self.used >> place & 1)

    def by_name(self) -> Any:
        """Vocabularies by the name of their columns."""
        return self.words

    def octets(self) -> Any:
        """Bytes of texts."""
        return sum(self.by_place[COLUMNS.index(name)].used for name in KEYS)

    @cython.ccall
    @cython.exceptval(-1)
    def reserve(self, rows: cython.longlong) -> cython.int:
        """Make room for as many rows as their messages have."""
        if rows > self.capacity:
            for column in self.columns().values():
                column.reserve(rows)
            written: Any = memoryview(bytearray(2 * rows)).cast("H")
            written[: self.capacity] = self.written
            self.written = written
            self.capacity = rows
        return 0

    def _mark(self, place: cython.int, row: cython.longlong) -> cython.int:
        """A column has a value in a row."""
        self.written[row] |= 1 << place
        if not (self.used >> place) & 1:
            self.used |= 1 << place
            self.by_place[place].reserve(self.capacity)
        return 0

    def put_word(self, place: cython.int, row: cython.longlong, octets: bytes) -> cython.int:
        """Write a text that repeats, as UTF-8."""
        codes: dict[Any, Any] = self.codes[place]
        code = codes.get(octets)
        if code is None:
            code = codes[octets] = code_of(self.vocabularies[place], octets)
        column: Codes = self.by_place[place]
        self._mark(place, row)
        column.values[row] = code
        return 0

    def put_key(self, place: cython.int, row: cython.longlong, octets: bytes) -> cython.int:
        """Write a text of one message, as UTF-8."""
        column: Texts = self.by_place[place]
        self._mark(place, row)
        column.begin(row)
        column.put_bytes(octets)
        return column.end()

    def put_part(
        self,
        place: cython.int,
        row: cython.longlong,
        names: ObjectNames,
        start: cython.longlong,
        count: cython.longlong,
    ) -> cython.int:
        """Write a text that stands in an object, as UTF-8."""
        self._mark(place, row)
        if place < _FIRST_KEY:
            codes: Codes = self.by_place[place]
            codes.values[row] = names.code_in(self.vocabularies[place], start, count)
            return 0
        texts: Texts = self.by_place[place]
        texts.begin(row)
        names.copy_to(texts, start, count)
        return texts.end()

    def put_number(
        self, place: cython.int, row: cython.longlong, number: cython.longlong
    ) -> cython.int:
        """Write a number."""
        column: Integers = self.by_place[place]
        self._mark(place, row)
        column.values[row] = number
        return 0

    def copy(self, row: cython.longlong, source: cython.longlong) -> cython.int:
        """Write in a row what another one has."""
        written: cython.int = self.written[source]
        self.written[row] = cython.cast(cython.ushort, written)
        place: cython.int = 0
        while written:
            if not written & 1:
                pass
            elif place < _FIRST_KEY:
                codes: Codes = self.by_place[place]
                codes.values[row] = codes.values[source]
            elif place < _FIRST_NUMBER:
                texts: Texts = self.by_place[place]
                texts.repeat(row, source)
            else:
                numbers: Integers = self.by_place[place]
                numbers.values[row] = numbers.values[source]
            written >>= 1
            place += 1
        return 0


@cython.final
@cython.cclass
class SeenBodies(Cache):
    """Rows of a batch by their headers, or by their bodies if equal headers have several bodies:
    most messages are delivered as they were published.

    At each place `rows` has the last row kept, plus one; `starts` and `sizes` are the position in
    `json` of the bytes of its body that packs read.
    """

    batch: MeaningColumns
    rows: cython.longlong[::1]
    sizes: cython.longlong[::1]
    reader: ByteReader

    def __init__(self) -> None:
        self.batch = None
        self.reader = ByteReader()
        self.sizes = integers(MAX_CACHED)
        self.json = Octets(MAX_SEEN_BYTES)
        Cache.__init__(self)

    def clear(self) -> int:
        """Remember nothing."""
        self.rows = integers(MAX_CACHED)
        self.json.used = 0
        return 0

    @cython.exceptval(-2)
    def place(self, body: Octets, count: cython.longlong, table: cython.int) -> cython.Py_ssize_t:
        """The place of a body with headers of the code `table`, -1 for no headers."""
        self.reader.data = body.octets
        digest: cython.ulonglong = self.reader.hash_with((table + 1) ^ _SEED, 0, count)
        return cython.cast(cython.Py_ssize_t, digest & (_MAX - 1))

    @cython.exceptval(-2)
    def row_like(
        self,
        out: MessageRows,
        row: cython.longlong,
        place: cython.Py_ssize_t,
        body: Octets,
        count: cython.longlong,
    ) -> cython.Py_ssize_t:
        """The row at a place if packs see the same, looking at `count` bytes of the body; or -1."""
        same: cython.longlong = self.rows[place] - 1
        if same < 0 or self.sizes[place] != count or not _are_alike(out, row, same):
            return -1
        if count > 0 and not _is_kept(self.json, self.starts[place], body, count):
            return -1
        self.hits += 1
        return same

    def keep(
        self, row: cython.longlong, place: cython.Py_ssize_t, body: Octets, count: cython.longlong
    ) -> cython.int:
        """Remember a row that is written, for `row_like`."""
        if self.json.used + count > _MAX_SEEN:
            self.clear()
        self.rows[place] = row + 1
        self.starts[place], self.sizes[place] = self.json.used, count
        return 0 if count == 0 else self.json.put_from(body, 0, count)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _are_alike(out: MessageRows, one: cython.longlong, other: cython.longlong) -> cython.bint:
    """True if rows have the same headers, and the same of all else that packs look at."""
    return (
        out.exchange.values[one] == out.exchange.values[other]
        and out.routing_key.values[one] == out.routing_key.values[other]
        and out.content_type.values[one] == out.content_type.values[other]
        and out.type.values[one] == out.type.values[other]
        and out.reply_to.values[one] == out.reply_to.values[other]
        and out.app_id.values[one] == out.app_id.values[other]
        and _is_same_text(out.headers, one, other)
        and _is_same_text(out.message_id, one, other)
        and _is_same_text(out.correlation_id, one, other)
    )


@cython.cfunc
@cython.exceptval(-1, check=False)
def _is_kept(
    kept: Octets, start: cython.longlong, body: Octets, count: cython.longlong
) -> cython.bint:
    """True if the first bytes of a body, at least one, are those that were kept at a place."""
    if start + count > kept.used or count > body.used:
        raise IndexError("bytes outside a body")
    if cython.compiled:
        return not memcmp(
            cython.address(kept.octets[start]),
            cython.address(body.octets[0]),
            cython.cast(cython.size_t, count),
        )
    return kept.storage[start : start + count] == body.storage[:count]


@cython.cfunc
@cython.exceptval(-1, check=False)
def _is_same_text(texts: Texts, one: cython.longlong, other: cython.longlong) -> cython.bint:
    """True if rows have the same text, or none."""
    there: cython.bint = one < texts.rows and texts.valid[one] != 0
    if not there or other >= texts.rows or not texts.valid[other]:
        return not there and (other >= texts.rows or texts.valid[other] == 0)
    if cython.compiled:
        start: cython.longlong = texts.offsets[one]
        begin: cython.longlong = texts.offsets[other]
        count: cython.longlong = texts.offsets[one + 1] - start
        if texts.offsets[other + 1] - begin != count:
            return False
        return count == 0 or not memcmp(
            cython.address(texts.octets[start]),
            cython.address(texts.octets[begin]),
            cython.cast(cython.size_t, count),
        )
    return texts.bytes_of(one) == texts.bytes_of(other)


_FIXED = re.compile(r"\^(?:\[0-9a-f\]\{\d+\}|[()]|[\w:-])*")
_PART = re.compile(r"\[0-9a-f\]\{(\d+)\}|([()])|([\w:-])")
_HEX = b"\x00"
"""Stands for a hexadecimal digit in a template."""


def template(pattern: str) -> tuple[bytes, int, int] | None:
    """(a byte for each first character, begin and end of the group) of a pattern; or None."""
    if not _FIXED.fullmatch(pattern):
        return None
    octets, ends = b"", {}
    for count, bracket, character in _PART.findall(pattern):
        if bracket:
            ends[bracket] = len(octets)
        else:
            octets += _HEX * int(count) if count else character.encode()
    return (octets, ends["("], ends[")"]) if len(ends) == 2 else None


@cython.cclass
class Field:
    """A column and one place where its value may stand, made ready to be read; `looked`: rules look
    at it in every message.

    `template`, `begin` and `end` stand for a pattern, None for none, see `template`; `within` and
    `path` lead into a value, see `along`. `plain`: the value at the end is taken as it is. `scale`:
    a whole number up to `most` is multiplied by it; 0: it needs a form.
    """

    place: cython.int
    kind: cython.int
    at: cython.int
    scale: cython.longlong
    most: cython.longlong
    only: Any
    in_body: cython.bint
    looked: cython.bint
    plain: cython.bint
    source: Any

    column: str
    template: bytes | None
    within: cython.int
    path: tuple[bytes | int, ...]
    begin: cython.int
    end: cython.int
    names: ObjectNames

    def __init__(self, column: Any, source: Any, headers: Any, body: Any) -> None:
        self.column = column
        self.place = COLUMNS.index(column) if column in COLUMNS else len(COLUMNS)
        self.kind = 0 if column in WORDS else 2 if column in (*NUMBERS, "most_tries") else 1
        self.looked = self.kind == 2 or column == "error_type" or column in LOOKED
        self.source = source
        self.only = None if source.only is None else headers.names.index(source.only[0])
        self.at = -1
        self.names = headers if source.place == "header" else body
        self.in_body = source.place == "body"
        if source.place != "property":
            self.at = self.names.names.index(source.name)
        steps = source.path
        self.within = -1
        if self.at >= 0 and steps and isinstance(steps[0], str):
            self.within = self.names.inside[self.at].names.index(steps[0])
            steps = steps[1:]
        self.path = tuple(one.encode() if isinstance(one, str) else one for one in steps)
        bare = not (source.form or source.only or (source.path and self.at < 0))
        self.plain = bare and source.pattern is None
        whole_number = self.at >= 0 and not (source.pattern or source.only)
        self.scale = SCALES.get(source.form, 0) if whole_number else 0
        self.most = MAX_US // self.scale if self.scale > 1 else _MOST
        alone = bare and self.at >= 0 and not self.path and source.pattern is not None
        fixed = template(source.pattern.pattern) if alone else None
        self.template, self.begin, self.end = fixed or (None, 0, 0)


def share_templates(fields: list[Field]) -> None:
    """Give fields of the same value the longest template that their own is a prefix of: it is
    compared once, and a value that does not fit is read by the pattern.
    """
    for one in fields:
        for other in fields:
            same = (one.names, one.at, one.within) == (other.names, other.at, other.within)
            if same and one.template and (other.template or b"").startswith(one.template):
                one.template = other.template


@cython.cclass
class MeaningWriter:
    """Writes `MeaningColumns` of the rows that `MessageWriter` makes, from `Packs`.

    `table_bits` has bits by the code of headers that the decoder remembers, `tables` is the cache
    that headers were written from, None for others. `alike` has, by place in `SHAPE` and by code,
    the words that stand for others in a shape; see `Packs.alike`. `fitted` is the template that a
    value of the present message fits.
    """

    packs: Any
    columns: Any

    words: Any
    remembered: Vocabulary
    fitted: bytes
    table_bits: cython.uchar[::1]
    headers: ObjectNames
    body: ObjectNames
    shapes: dict[Any, Any]
    alike: list[Any]
    last: tuple[Any, ...]
    recent: list[Any]
    recent_keys: cython.ulonglong[::1]
    seen: SeenBodies

    def __init__(self, packs: Any, columns: Any = COLUMNS) -> None:
        self.packs = packs
        self.columns = columns
        self.headers = ObjectNames(packs.names("header"))
        self.body = ObjectNames(packs.names("body"))
        self.shapes = {}
        self.words = self.last = self.remembered = self.fitted = None
        self.table_bits = memoryview(bytearray(MAX_CACHED))
        self.seen = None
        self.recent, self.alike = [], []
        self.recent_keys = memoryview(bytearray(8 * 4 * _RECENT)).cast("Q")

    def write(
        self,
        out: MessageRows,
        row: cython.longlong,
        body: Octets,
        count: cython.longlong,
        tables: TableCache,
    ) -> cython.int:
        """Write the meaning of a row that is otherwise complete; `body` has `count` body bytes."""
        found: MeaningColumns = out.meanings
        if found is None:
            found = out.meanings = MeaningColumns()
        if found.capacity < out.capacity:
            found.reserve(out.capacity)
        if self.seen is None:
            self.seen = SeenBodies()
        seen: SeenBodies = self.seen
        if seen.batch is not found:
            seen.batch = found
            seen.clear()
        table: cython.int = self._table(tables)
        known: cython.int = 0 if table < 0 else self.table_bits[table]
        bodiless: cython.bint = known & _BODILESS != 0
        size: cython.longlong = 0 if bodiless or body is None else min(count, _MAX_BODY)
        place: cython.Py_ssize_t = table
        if table < 0 or (known & _VARIED and size > 0):
            place = seen.place(body, size, table) if table >= 0 or size >= _SMALL else -1
        elif bodiless and known & _NAMELESS:
            place = -1
        if place >= 0 and (table < 0 or known != 0):
            same: cython.longlong = -1
            if seen.is_worthwhile():
                same = seen.row_like(out, row, place, body, size)
            if same >= 0:
                return found.copy(row, same)
        fields: tuple[Any, ...] = self._recognised(out, row, body, count, table)
        framework: bytes = fields[0]
        steps: list[Any] = fields[1]
        needs: cython.bint = self.last[2]
        if table >= 0:
            self._note_table(table, known, needs)
            size = size if needs else 0
            place = place if place < 0 or needs else table
        if place >= 0 and seen.skips == 0 and not (bodiless and needs) and not fields[4]:
            seen.keep(row, place, body, size)
        if framework is not None:
            found.put_word(0, row, framework)
        self.fitted = None
        step: Field
        for step in steps:
            if not (found.written[row] >> step.place) & 1:
                self._put(out, row, found, step)
        return 0

    @cython.exceptval(-2)
    def _table(self, tables: TableCache) -> cython.int:
        """The code of the headers that were written last; -1 where they are not remembered."""
        if tables is None or tables.last < 0:
            return -1
        if tables.words is not self.remembered:
            self._forget_tables(tables)
        return tables.last

    def _note_table(self, table: cython.int, known: cython.int, needs: cython.bint) -> cython.int:
        """Note the kind of headers that were read; `known` are the bits so far."""
        bits: cython.int = _MET | (known & _VARIED) | (self.table_bits[table] & _NAMELESS)
        if not needs:
            bits |= _BODILESS
        if known != 0:
            bits |= _VARIED
        self.table_bits[table] = cython.cast(cython.uchar, bits)
        return 0

    def _forget_tables(self, tables: TableCache) -> cython.int:
        self.remembered = tables.words
        self.table_bits = memoryview(bytearray(MAX_CACHED))
        return 0

    @cython.cfunc
    def _recognised(
        self,
        out: MessageRows,
        row: cython.longlong,
        body: Octets,
        count: cython.longlong,
        table: cython.int,
    ) -> tuple[Any, ...]:
        """(framework, fields, whether the body is needed, which of its names, more) of a row's
        shape; None for any names.
        """
        if not out.headers.has(row) or (table >= 0 and self.table_bits[table] & _NAMELESS):
            self.headers.forget()
        else:
            start: cython.longlong = out.headers.offsets[row]
            self.headers.read(out.headers.octets, start, out.headers.offsets[row + 1])
            if table >= 0 and self.headers.shape == 0:
                self.table_bits[table] |= _NAMELESS
        self.last = self._fields(out, row, 0, False)
        if not self.last[2]:
            return self.last
        self._read_body(body, count, self.last[3])
        return self._fields(out, row, self.body.shape, True)

    @cython.cfunc
    @cython.boundscheck(False)  # slots are below `_RECENT`
    def _fields(
        self,
        out: MessageRows,
        row: cython.longlong,
        body_shape: cython.ulonglong,
        opened: cython.bint,
    ) -> tuple[Any, ...]:
        """The reading by headers, exchange and types, and by the body if it was read."""
        if out.vocabularies is not self.words:
            self.words = out.vocabularies
            self.recent = [None] * _RECENT
            self.alike = [[], [], []]
        exchange: cython.ulonglong = out.exchange.values[row] & _MASK32
        content_type: cython.ulonglong = out.content_type.values[row] & _MASK32
        type_: cython.ulonglong = out.type.values[row] & _MASK32
        head: cython.ulonglong = (exchange << 32) | content_type
        rest: cython.ulonglong = (type_ << 1) | opened
        shape: cython.ulonglong = self.headers.shape
        mixed: cython.ulonglong = ((head ^ shape) * _MIXER + (rest ^ body_shape)) * _MIXER
        slot: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, (mixed & _MASK64) >> 56)
        at: cython.Py_ssize_t = slot * 4
        if self.recent[slot] is None or not (
            self.recent_keys[at] == head
            and self.recent_keys[at + 1] == rest
            and self.recent_keys[at + 2] == shape
            and self.recent_keys[at + 3] == body_shape
        ):
            self.recent[slot] = self._reading(self._words(out, row), body_shape, opened)
            known = self.recent_keys
            known[at], known[at + 1], known[at + 2], known[at + 3] = head, rest, shape, body_shape
        return self.recent[slot]

    @cython.cfunc
    def _words(self, out: MessageRows, row: cython.longlong) -> tuple[Any, ...]:
        words: Vocabularies = out.vocabularies
        return (
            self._word(0, out.exchange.values[row], words.exchange),
            self._word(1, out.content_type.values[row], words.content_type),
            self._word(2, out.type.values[row], words.type),
        )

    @cython.cfunc
    def _word(self, place: cython.int, code: cython.int, words: Vocabulary) -> str:
        """The word of a code, or one that meets the same conditions; None for none."""
        alike: list[Any] = self.alike[place]
        if code < 0:
            return None
        if code >= len(alike):
            alike.extend([None] * (code + 1 - len(alike)))
        if alike[code] is None:
            alike[code] = self.packs.alike(place, words.text(code))
        return alike[code]

    @cython.cfunc
    def _reading(
        self, words: tuple[Any, ...], body_shape: cython.ulonglong, opened: cython.bint
    ) -> tuple[Any, ...]:
        """The reading of messages of a shape; headers and body are those of the last ones."""
        key = (words, self.headers.shape, body_shape, opened)
        known = self.shapes.get(key)
        if known is None:
            if len(self.shapes) >= MAX_SHAPES:
                self.shapes.clear()
            known = self.shapes[key] = self._new_reading(words, opened)
        return known

    def _new_reading(self, words: Any, opened: Any) -> Any:
        """The reading of messages of a shape that is new."""
        names = self.body.found() if opened else None
        shape = Shape(words, self.headers.found(), names)
        reading = self.packs.reading(shape, self.columns)
        fields = [
            Field(column, source, self.headers, self.body)
            for column, sources in reading.fields
            for source in sources
        ]
        share_templates(fields)
        framework = reading.framework and reading.framework.encode()
        wanted = None
        if framework is not None:
            read = {field.at for field in fields if field.in_body}
            wanted = bytes(place in read for place in range(len(self.body.names)))
        return (framework, fields, reading.needs_body, wanted, *self._more(reading))

    @cython.cfunc
    def _more(self, reading: Any) -> tuple[Any, ...]:
        """Further facts of a reading: (True if a value depends on the time of the message,)."""
        sources = (one for _, some in reading.fields for one in some)
        return (any(one.form in RELATIVE for one in sources),)

    def _read_body(self, body: Octets, count: cython.longlong, wanted: bytes) -> cython.int:
        """Go through the beginning of a body, which is unpacked where it is packed."""
        if body is None or count < 2:
            return self.body.forget()
        count = min(count, _MAX_BODY)
        if _is_packed(body.octets[0], body.octets[1]):
            return self._read_packed(bytes(body.storage[:count]), wanted)
        return self.body.read(body.octets, 0, count, wanted)

    def _read_packed(self, octets: bytes, wanted: bytes | None) -> cython.int:
        octets = unpacked(octets)
        return self.body.read(octets, 0, len(octets), wanted)

    @cython.cfunc
    def _value(self, out: MessageRows, row: cython.longlong, field: Field) -> Any:
        """The value of a field; None where it has none."""
        value: Any = None
        names: ObjectNames = field.names
        if field.at < 0:
            octets = _property(out, row, field.source.name)
            value = None if octets is None else octets.decode(errors="replace")
        elif field.within >= 0 or field.path:
            value = names.along(field.at, field.within, field.path)
        else:
            value = names.value(field.at)
        if value is None or field.plain:
            return value
        if field.only is not None:
            wanted = field.source.only[1]
            if not self.headers.has(field.only):
                return None
            if wanted not in (None, self.headers.value(field.only)):
                return None
        make = taken if field.at < 0 else fitted
        return make(field.source, value, out.ts_ns.values[row])

    def _put(
        self, out: MessageRows, row: cython.longlong, found: MeaningColumns, field: Field
    ) -> cython.int:
        """Write the value of a field, if it has one."""
        names: ObjectNames = field.names
        place: cython.int = field.at
        if place >= 0 and not names.has(place):
            return 0
        if field.within >= 0:
            names, place = names.enter(place), field.within
            if not names.has(place):
                return 0
        if place >= 0 and names.is_null(place):
            return 0
        if field.kind == 2:
            return self._put_number(out, row, found, field, names, place)
        if place < 0:
            return self._put_text(out, row, found, field, names, place)
        start: cython.longlong = names.starts[place] + 1
        if field.template is not None:
            if field.template is self.fitted or _fits(field.template, names, place):
                self.fitted = field.template
                start += field.begin
                return found.put_part(field.place, row, names, start, field.end - field.begin)
        elif field.plain and not field.path and names.is_plain(place):
            count: cython.longlong = names.ends[place] - 1 - start
            return 0 if count == 0 else found.put_part(field.place, row, names, start, count)
        return self._put_text(out, row, found, field, names, place)

    def _put_text(
        self,
        out: MessageRows,
        row: cython.longlong,
        found: MeaningColumns,
        field: Field,
        names: ObjectNames,
        place: cython.int,
    ) -> cython.int:
        """Write the value of a field of texts, from a property (`place` < 0) or to be made."""
        octets: bytes = None
        word: tuple[Any, ...] = None
        if place < 0:
            if field.plain:
                octets = _property(out, row, field.source.name)
                if octets is None:
                    return 0
        elif field.kind == 0 and field.source.form is None and field.only is None:
            word = _word_of(field, names, place)
            octets = None if word is None else self.shapes.get(word)
        if octets is None:
            octets = as_text(self._value(out, row, field))
            if word is not None and octets:
                if len(self.shapes) >= MAX_SHAPES:
                    self.shapes.clear()
                self.shapes[word] = octets
        if not octets:
            return 0
        if field.kind == 0:
            return found.put_word(field.place, row, octets)
        return found.put_key(field.place, row, octets)

    def _put_number(
        self,
        out: MessageRows,
        row: cython.longlong,
        found: MeaningColumns,
        field: Field,
        names: ObjectNames,
        place: cython.int,
    ) -> cython.int:
        """Write the value of a field of numbers, which may stand at a place of some names."""
        number: cython.longlong = -1
        if field.scale:
            number = names.digits(place, field.path)
            if 0 <= number <= field.most:
                number *= field.scale
            elif field.plain and not field.path and field.place == _NOT_BEFORE:
                number = names.instant(place)
            else:
                number = -1
        if number < 0:
            value = self._value(out, row, field)
            value = None if value is None else as_number(value, COLUMNS[field.place])
            if value is None:
                return 0
            number = value
        return found.put_number(field.place, row, number)


FOLLOWED = 8
"""Of requests that may be answered and need not be, one in so many is followed, by its id: what is
said of them is a matter of shares, and to follow one takes 12 µs."""

TRIES = 5
"""Times that a message was tried before, from which on rules are told of it."""

SAID = (
    "operation", "message_key", "error_type", *NUMBERS, "trace_id", *CALLS, *LOOKED, *SAMPLED,
)  # fmt: skip
"""What rules are told of messages that stand out."""


@cython.cclass
class Note:
    """Facts of a message for rules: one object for all with nothing special, else one of its own.

    `traced`: it carries a trace context. `formats`: the conventions of tracing that it follows.
    `internal`: it is the framework's own. `role`: the role of its `Reading`. `fields`: sources by
    name, if some messages are read in full, else None. `meaning` has `framework`, `findings`
    (codes), `call` (see `NoteWriter`) with `awaited` and `broadcast` of its pack, `delayed` (True
    for a delivery that was scheduled for later) and the values of columns; None without any.
    """

    traced: cython.bint
    internal: cython.bint

    formats: tuple[Any, ...]
    meaning: dict[Any, Any]
    role: Any
    fields: dict[Any, Any]

    def __init__(self, reading: Any) -> None:
        fields = dict(reading.fields)
        self.traced = "trace_id" in fields
        self.formats = reading.traces
        self.internal = reading.internal
        self.role = reading.role
        self.fields = fields if self.traced or "sequence" in fields else None
        self.meaning = None

    @cython.cfunc
    def with_meaning(self, meaning: dict[str, Any]) -> Note:
        """The note of one message that stands out."""
        note: Note = Note.__new__(Note)
        note.traced, note.internal, note.formats = self.traced, self.internal, self.formats
        note.role, note.fields, note.meaning = self.role, self.fields, meaning
        return note


@cython.cclass
class NoteWriter(MeaningWriter):
    """Writes `MessageRows.notes` for rules, and `MessageRows.calls` for links.

    For rules, bodies are read only on connections whose client a pack recognises; for links always,
    unless the headers make it unnecessary.

    Args:
        packs: The `Packs`.
        links: Write `calls`: row → (id of a request, where its reply goes, id of the request that
            is answered), each None for none.
    """

    links: cython.bint
    wants_body: cython.bint
    told_exchange: cython.int
    told_key: cython.int
    told_connection: cython.int
    told_sender: cython.int
    told_role: Note
    told_words: Any

    clients: dict[Any, Any]
    queues: dict[Any, Any]

    def __init__(self, packs: Any, links: Any) -> None:
        MeaningWriter.__init__(self, packs, CALLS if links else SAID)
        self.links = links
        self.wants_body = False
        self.told_role = self.told_words = None
        self.told_exchange = self.told_key = self.told_connection = self.told_sender = -1
        self.clients = {}
        self.queues = {}

    @cython.ccall
    @cython.exceptval(-1)
    def knows(self, start_ok: bytes) -> cython.int:
        """`READS` if a pack recognises a client by its connection.start-ok, as JSON; `DEMANDS` too
        if the pack requires ids of messages.
        """
        known = self.clients.get(start_ok)
        if known is None:
            if len(self.clients) >= MAX_CLIENTS:
                self.clients.clear()
            properties = read_object(start_ok).get("client_properties")
            pack = self.packs.client_pack(properties) if isinstance(properties, dict) else None
            known = 0 if pack is None else READS | DEMANDS if pack.demands else READS
            self.clients[start_ok] = known
        return known

    @cython.ccall
    @cython.exceptval(-1)
    def knows_queue(self, name: Any) -> cython.int:
        """`READS` if the name of a queue identifies the framework of its client."""
        known = self.queues.get(name)
        if known is None:
            if len(self.queues) >= MAX_CLIENTS:
                self.queues.clear()
            known = self.queues[name] = READS if name and self.packs.uses(name) else 0
        return known

    def note(
        self,
        out: MessageRows,
        row: cython.longlong,
        body: Octets,
        count: cython.longlong,
        reads: cython.int,
        tables: TableCache,
    ) -> cython.int:
        """Note the meaning of a row; its body is read only with a bit of `reads`."""
        looked: Octets = body if reads else None
        fields: tuple[Any, ...] = self._recognised(out, row, looked, count, self._table(tables))
        plain: Note = fields[6]
        self.wants_body = self.last[8]
        lacks: cython.bint = (
            reads & _DEMANDS and out.sender.values[row] == 1 and not out.message_id.has(row)
        )
        if not fields[5] and not lacks:
            if plain is not None and not self.links and self._is_news(out, row, plain):
                if out.notes is None:
                    out.notes = {}
                out.notes[row] = plain
            return 0
        if self.links:
            return self._note_call(out, row, fields[1])
        return self._note(out, row, fields, plain, lacks)

    def _is_news(self, out: MessageRows, row: cython.longlong, plain: Note) -> cython.bint:
        """False if a note has only a role, the same as the message before on the same route."""
        if plain.internal or plain.fields is not None:
            return True
        exchange: cython.int = out.exchange.values[row]
        key: cython.int = out.routing_key.values[row]
        connection: cython.int = out.connection.values[row]
        sender: cython.int = out.sender.values[row]
        if (
            plain is self.told_role
            and exchange == self.told_exchange
            and key == self.told_key
            and connection == self.told_connection
            and sender == self.told_sender
            and out.vocabularies is self.told_words
        ):
            return False
        self.told_role, self.told_words = plain, out.vocabularies
        self.told_exchange, self.told_key = exchange, key
        self.told_connection, self.told_sender = connection, sender
        return True

    def _more(self, reading: Any) -> Any:
        """(the reading, True if values are read, its note if rules need it, its note, True if
        values that rules judge are in the body).
        """
        columns = {column for column, _ in reading.fields}
        looked = set(CALLS) if self.links else {"error_type", *NUMBERS, *CALLS, *LOOKED}
        looks = not columns.isdisjoint(looked) or bool(reading.findings)
        note = Note(reading)
        plain = note if note.fields or note.internal or note.role else None
        told = reading.framework is not None
        judged = (some for column, some in reading.fields if column in LOOKED)
        wants = told and any(one.place == "body" for some in judged for one in some)
        return reading, looks, plain, note, wants

    def _note(
        self,
        out: MessageRows,
        row: cython.longlong,
        fields: tuple[Any, ...],
        plain: Note,
        lacks: cython.bint,
    ) -> cython.int:
        """Note a message of a shape in which something may stand out."""
        reading = fields[4]
        meaning: dict[Any, Any] = {}
        step: Field
        delivered: cython.bint = out.sender.values[row] == 1
        if out.notes is None:
            out.notes = {}
        for step in fields[1]:
            if step.column == "not_before" and delivered:
                there = self._value(out, row, step) if step.at < 0 else self._there(step)
                if there:  # its publish has the due time, if it does not
                    meaning["delayed"] = True
                    if step.source.form not in RELATIVE:
                        self._add_value(out, row, step, meaning)
            elif step.looked:
                self._add_value(out, row, step, meaning)
        if "most_tries" in meaning and not 0 < meaning["most_tries"] <= meaning.get(
            "retry_count", 0
        ):
            del meaning["most_tries"]
        call: tuple[Any, ...] = None
        if reading.awaited or _is_followed(fields[1]):
            call = self._call(out, row, fields[1])
        if call is not None and (call[2] is not None or not delivered or reading.broadcast):
            meaning["call"] = call
        tries = meaning.get("retry_count", 0)
        codes = (*reading.findings, "message-id-missing") if lacks else reading.findings
        if tries < TRIES and len(meaning) == ("retry_count" in meaning) and not codes:
            if plain is not None and self._is_news(out, row, plain):
                out.notes[row] = plain
            return 0
        for step in fields[1]:
            if step.column == "operation" or step.column == "message_key":
                self._add_value(out, row, step, meaning)
        meaning["framework"], meaning["findings"] = reading.framework, codes
        if call is not None:
            meaning["awaited"], meaning["broadcast"] = reading.awaited, reading.broadcast
        base: Note = fields[7]
        out.notes[row] = base.with_meaning(meaning)
        return 0

    def _there(self, field: Field) -> cython.bint:
        """True if a field has a value."""
        names: ObjectNames = field.names
        return names.has(field.at) and names.value(field.at) is not None

    def _add_value(
        self, out: MessageRows, row: cython.longlong, field: Field, meaning: dict[Any, Any]
    ) -> cython.int:
        """Add the value of a field, unless another gave one."""
        if field.column in meaning:
            return 0
        value = self._value(out, row, field)
        if value is not None and field.kind == 2:
            value = as_number(value, field.column)
        elif value is not None and not isinstance(value, str):
            octets = as_text(value)
            value = octets.decode(errors="replace") if octets else None
        if value is not None and value != "":
            meaning[field.column] = value
        return 0

    def _note_call(self, out: MessageRows, row: cython.longlong, fields: list[Any]) -> cython.int:
        """Note what links take."""
        call = self._call(out, row, fields)
        if call is not None:
            if out.calls is None:
                out.calls = {}
            out.calls[row] = call
        return 0

    @cython.cfunc
    def _call(self, out: MessageRows, row: cython.longlong, fields: list[Any]) -> tuple[Any, ...]:
        """(id of a request, where its reply goes, id of the request that a message answers), each
        None for none; None for a message that is neither.
        """
        meaning: dict[Any, Any] = {}
        step: Field
        placed = False
        for step in fields:
            if step.column in CALLS:
                placed = placed or step.column == "reply_address"
                self._add_value(out, row, step, meaning)
        asks, answers = meaning.get("request_key"), meaning.get("answers_key")
        if placed and "reply_address" not in meaning:
            asks = None
        if answers is not None and answers == asks:
            answers = None
        if asks is None and answers is None:
            return None
        return asks, meaning.get("reply_address"), answers


@cython.cfunc
@cython.exceptval(-1, check=False)
def _is_followed(fields: list[Any]) -> cython.bint:
    """True if an id of a request is one of those that are followed, see `FOLLOWED`."""
    field: Field
    for field in fields:
        if field.at < 0 or (field.column != "request_key" and field.column != "answers_key"):
            continue
        names: ObjectNames = field.names
        if names.has(field.at):
            octets = names.text(field.at)
            if octets is None or zlib.crc32(octets) % FOLLOWED == 0:
                return True
    return False


@cython.cfunc
@cython.boundscheck(False)  # the range is checked
@cython.exceptval(-1, check=False)
def _fits(template: bytes, names: ObjectNames, place: cython.int) -> cython.bint:
    """True if the value at a place is a text that begins with the template."""
    start: cython.longlong = names.starts[place] + 1
    size: cython.longlong = len(template)
    if names.ends[place] - 1 - start < size or names.ends[place] > len(names.data):
        return False
    if start < 1 or names.data[start - 1] != _QUOTE:
        return False
    at: cython.longlong
    octet: cython.uchar
    odd: cython.uchar = 0
    marks: cython.p_const_uchar = template
    for at in range(size):  # one wide loop instead of tests
        octet = names.data[start + at]
        digit: cython.uchar = ((octet >= 48) & (octet <= 57)) | ((octet >= 97) & (octet <= 102))
        odd |= (octet != marks[at]) & ((marks[at] != 0) | (digit == 0))
    return odd == 0


@cython.cfunc
def _word_of(field: Field, names: ObjectNames, place: cython.int) -> tuple[Any, ...]:
    """A field and its bytes, the key of the word made of them; None if not worth remembering."""
    start: cython.longlong = names.starts[place]
    end: cython.longlong = names.ends[place]
    if end - start > MAX_WORD_BYTES:
        return None
    return field, names.bytes_at(start, end - start)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _is_packed(first: cython.int, second: cython.int) -> cython.bint:
    """True if bytes that begin with these are those of gzip or zlib."""
    if first == 0x1F:
        return second == 0x8B
    return first == 0x78 and ((first << 8) | second) % 31 == 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def may_be_object(first: cython.int, second: cython.int) -> cython.bint:
    """True if a body that begins with these bytes may be an object of JSON, packed or not."""
    return first == _OBJECT or first <= _SPACE or _is_packed(first, second)


def as_number(value: Any, column: Any) -> Any:
    """A value as the number of a column; None if it is not a number."""
    if type(value) is int and -(1 << 63) < value < 1 << 63:
        return value
    number = whole(value)
    return instant(value) if number is None and column == "not_before" else number


def as_text(value: Any) -> Any:
    """A value as UTF-8; None if it is neither a text nor a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return value.encode(errors="replace") if isinstance(value, str) else None


@cython.cfunc
def _property(out: MessageRows, row: cython.longlong, name: str) -> bytes:
    """A property of a message as UTF-8; None where it has none."""
    if name in TEXTS:
        texts: Texts = getattr(out, name)
        return texts.bytes_of(row)
    codes: Codes = getattr(out, name)
    words: Vocabulary = getattr(out.vocabularies, name)
    code: cython.int = codes.values[row]
    return None if code < 0 else words.bytes_between(words.ends[code], words.ends[code + 1])


def taken(source: Any, value: Any, ts_ns: Any) -> Any:
    """The value that a source takes by path, pattern and form; None for nothing."""
    for step in source.path:
        try:
            value = json.loads(value) if isinstance(value, str) else value
            value = None if isinstance(value, str) else value[step]
        except (ValueError, RecursionError, KeyError, IndexError, TypeError):
            return None
    return fitted(source, value, ts_ns)


def fitted(source: Any, value: Any, ts_ns: Any) -> Any:
    """The value at the end of the path, after the source's pattern and form; or None."""
    if source.pattern is not None:
        match = source.pattern.search(value) if isinstance(value, str) else None
        value = match[1] if match else None
    if source.form is not None and value is not None:
        return FORMS[source.form](value, None if ts_ns == NULL or ts_ns <= 0 else ts_ns)
    return value


def unpacked(octets: Any) -> Any:
    """The beginning of gzip or zlib data, uncompressed; empty if it is damaged from the start."""
    machine = zlib.decompressobj(32 + zlib.MAX_WBITS)
    try:
        return machine.decompress(octets, MAX_BODY_BYTES)
    except zlib.error:
        return b""
