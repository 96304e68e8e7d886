# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Cache of decoded methods, looked up by their payload.

Deliveries and acknowledgements differ only in their tag, so a method is cached without it. A method
that may hold a secret, itself or in a quote of its reply text, is never cached. `values` has the
bounds.

Among payloads with the same few selected bytes, the latest is compared first: mostly it matches,
and needs no look-up.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.columns import Texts, Vocabulary
from cython.cimports.amqpsniff.decode.method_layout import NO_TAG, REPLY_TEXT, TAG_FIRST
from cython.cimports.amqpsniff.decode.rows import copy_text

from amqpsniff.decode import method_layout
from amqpsniff.decode.methods import DecodedMethod
from amqpsniff.decode.values import MAX_CACHED, MAX_CACHED_BYTES, Cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.methods import MethodDecoder
    from amqpsniff.decode.rows import FrameRows
    from amqpsniff.decode.values import ValueReader

_MAX = cython.declare(cython.int, MAX_CACHED)
_LONGEST = cython.declare(cython.longlong, MAX_CACHED_BYTES)
_MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_TAG_KEY = b'"delivery_tag":'
_LAST = 8192
_PLACES = cython.declare(cython.ulonglong, _LAST)


@cython.cclass
class CachedMethod(DecodedMethod):
    """A decoded method of `count` bytes. The `tag` bytes (8 or 0) after the `first` are a delivery
    tag; the others are in the cache's words from `begin` on.

    Its JSON is in the cache's from `json_start` to `json_end`, without the digits of the tag, which
    belong at `json_cut`. The codes of its names hold for the rows of one `serial` number, which
    share vocabularies.
    """

    dialect: cython.int
    exchange: cython.int
    routing_key: cython.int
    queue: cython.int
    consumer_tag: cython.int
    count: cython.longlong
    first: cython.longlong
    tag: cython.longlong
    begin: cython.longlong
    serial: cython.longlong
    json_start: cython.longlong
    json_cut: cython.longlong
    json_end: cython.longlong


@cython.cclass
class MethodCache(Cache):
    """Methods without secrets: their payloads without the delivery tag, and their values."""

    digest: cython.ulonglong
    method: cython.int
    place: cython.int
    tag_at: cython.longlong

    places: cython.const[cython.uchar][::1]
    last: cython.int[::1]
    methods: list[Any]

    def __init__(self) -> None:
        Cache.__init__(self)
        self.places = bytes(method_layout.tag_places)
        self.last = memoryview(bytearray(4 * _LAST)).cast("i")
        self.digest = 0
        self.method = -1
        self.tag_at = -1
        self.place = 0

    @cython.ccall
    @cython.exceptval(-1)
    def clear(self) -> cython.int:
        """Remember nothing."""
        Cache.clear(self)
        self.methods = []
        return 0

    @cython.cfunc
    def look_up(
        self,
        decoder: MethodDecoder,
        reader: ValueReader,
        frames: FrameRows,
        dialect: cython.int,
        at: cython.longlong,
        end: cython.longlong,
    ) -> CachedMethod:
        """The cached method of the payload `at`..`end`, with its delivery tag, or None.

        Its JSON is written for the next frame row, as by decoding. After None the caller decodes
        the payload, and can add it.
        """
        self.method = -1
        if end - at < 4 or end - at > _LONGEST:
            return None
        sketch: cython.ulonglong = reader.sketch(at, end - at)
        self.place = cython.cast(cython.int, sketch & (_PLACES - 1))
        code: cython.int = self.last[self.place]
        if self._matches(reader, code, dialect, at, end):
            self.lookups += 1
        else:
            code = self._search(decoder, reader, dialect, at, end)
            if code < 0:
                return None
            self.last[self.place] = code
        self.hits += 1
        known: CachedMethod = self.methods[code]
        if known.written:
            self._write_json(reader, frames, known)
        return known

    def _matches(
        self,
        reader: ValueReader,
        code: cython.int,
        dialect: cython.int,
        at: cython.longlong,
        end: cython.longlong,
    ) -> cython.bint:
        """True if the payload `at`..`end` matches the entry of a code, which then has its tag."""
        if code >= len(self.methods):
            return False
        known: CachedMethod = self.methods[code]
        if known.dialect != dialect or known.count != end - at:
            return False
        if not reader.equals_but(self.words, known.begin, at, known.count, known.first, known.tag):
            return False
        if known.tag:
            tag: cython.longlong = reader.i64(at + known.first)
            if tag < 0:
                return False
            known.delivery_tag = tag
        return True

    @cython.exceptval(-2)
    def _search(
        self,
        decoder: MethodDecoder,
        reader: ValueReader,
        dialect: cython.int,
        at: cython.longlong,
        end: cython.longlong,
    ) -> cython.int:
        """The code of a payload; -1 where it is not remembered."""
        choice: cython.int = decoder.find(dialect, reader.u16(at), reader.u16(at + 2))
        if choice < 0:
            return -1
        method: cython.int = decoder.choices[choice]
        place: cython.int = self.places[method]
        if place == 0 or not self._locate(reader, place, at, end) or not self.is_worthwhile():
            return -1
        self.method = method
        first: cython.longlong = self.tag_at - at
        rest: cython.longlong = end - at - first
        if place != NO_TAG:
            rest -= 8
        self.digest = reader.hash_of(at, first) ^ cython.cast(cython.ulonglong, dialect)
        if rest:
            self.digest = (self.digest + 3 * reader.hash_of(end - rest, rest)) & _MASK64
        words: Vocabulary = self.words
        code: cython.int = words.find(self.digest, first + rest)
        while code >= 0:
            if self._matches(reader, code, dialect, at, end):
                return code
            code = words.next(self.digest, first + rest)
        return -1

    def _locate(
        self, reader: ValueReader, place: cython.int, at: cython.longlong, end: cython.longlong
    ) -> cython.bint:
        """Note the position of the delivery tag, or the end; False if it is cut or negative."""
        self.tag_at = end
        if place == NO_TAG:
            return True
        if place == TAG_FIRST:
            self.tag_at = at + 4
        else:
            if at + 5 > end:
                return False
            self.tag_at = at + 5 + reader.data[at + 4]
        return self.tag_at + 8 <= end and reader.i64(self.tag_at) >= 0

    def _write_json(
        self, reader: ValueReader, frames: FrameRows, known: CachedMethod
    ) -> cython.int:
        """Write the JSON of a cached method with its tag."""
        frames.open_arguments()
        out: Texts = reader.out
        out.put_from(self.json, known.json_start, known.json_cut - known.json_start)
        if known.tag:
            reader._digits(known.delivery_tag)
            out.put_from(self.json, known.json_cut, known.json_end - known.json_cut)
        return 0

    @cython.cfunc
    def store(
        self,
        decoder: MethodDecoder,
        reader: ValueReader,
        dialect: cython.int,
        at: cython.longlong,
        end: cython.longlong,
        mark: cython.longlong,
    ) -> CachedMethod:
        """Remember the payload that `look_up` did not know; its JSON was written from `mark` on.

        Returns the entry, or None if nothing was stored.
        """
        if self.method < 0 or decoder.method != self.method or decoder.quoted:
            return None
        known: CachedMethod = CachedMethod()
        known.copy(decoder)
        known.dialect = dialect
        known.count = end - at
        known.first = self.tag_at - at
        known.tag = 0 if self.places[self.method] == NO_TAG else 8
        known.serial = -1
        rest: cython.longlong = known.count - known.first - known.tag
        if self.words.count >= _MAX:
            self.clear()
            self.words.find(self.digest, known.first + rest)
        known.begin = self.words.used
        reader.copy_to(self.words, at, known.first)
        reader.copy_to(self.words, end - rest, rest)
        self.last[self.place] = self.words.add(self.digest)
        self._store_json(reader, known, mark)
        self.methods.append(known)
        return known

    def _store_json(
        self, reader: ValueReader, known: CachedMethod, mark: cython.longlong
    ) -> cython.int:
        """Remember the JSON from `mark` on, cut where the digits of the delivery tag were."""
        out: Texts = reader.out
        text: bytes = bytes(out.octets[mark : out.used])
        head, key, tail = text.partition(_TAG_KEY) if known.tag else (text, b"", b"")
        known.json_start = self.json.used
        self.json.put_bytes(head + key)
        known.json_cut = self.json.used
        self.json.put_bytes(tail.lstrip(b"0123456789"))
        known.json_end = self.json.used
        return 0

    def end_row(
        self,
        frames: FrameRows,
        known: CachedMethod,
        reader: ValueReader,
        at: cython.longlong,
        serial: cython.longlong,
    ) -> cython.int:
        """Close the frame row of a cached method, in the rows of a serial number."""
        row: cython.longlong = frames.rows
        if known.serial != serial:
            frames.end_method(known, reader, at)
            known.exchange = frames.exchange.values[row]
            known.routing_key = frames.routing_key.values[row]
            known.queue = frames.queue.values[row]
            known.consumer_tag = frames.consumer_tag.values[row]
            known.serial = serial
            return 0
        if row >= frames.capacity:
            raise IndexError("no room for a row")
        with cython.boundscheck(False):  # every column has room for as many rows
            frames.method.values[row] = known.method
            frames.reply_code.values[row] = known.reply_code
            frames.delivery_tag.values[row] = known.delivery_tag
            frames.flags.values[row] = known.flags
            frames.exchange.values[row] = known.exchange
            frames.routing_key.values[row] = known.routing_key
            frames.queue.values[row] = known.queue
            frames.consumer_tag.values[row] = known.consumer_tag
        if known.written:
            frames.arguments.end()
        start: cython.longlong = known.starts[REPLY_TEXT]
        if start >= 0:
            copy_text(frames.reply_text, row, reader, at + start, known.lengths[REPLY_TEXT])
        frames.rows = row + 1
        return 0
