# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Methods that came before: looked up by their payload and not decoded again.

Of a delivery or an acknowledgement only the tag is new, so a method is remembered without it. One
that may hold a secret, itself or in what its reply text quotes, never is. `memory` says how much
is, and when a memory rests.
"""

import cython

from amqpsniff.columns import NULL
from amqpsniff.decode import plan
from amqpsniff.decode.memory import MAX_OCTETS, MAX_REMEMBERED, integers

if cython.compiled:
    from cython.cimports.amqpsniff.columns import Texts, Vocabulary  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.decode.memory import Memory  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.decode.rows import copy_text  # type: ignore[import-not-found]
else:
    from amqpsniff.columns import Texts, Vocabulary
    from amqpsniff.decode.memory import Memory
    from amqpsniff.decode.rows import copy_text

_NULL = cython.declare(cython.longlong, NULL)
_MAX = cython.declare(cython.int, MAX_REMEMBERED)
_LONGEST = cython.declare(cython.longlong, MAX_OCTETS)
_MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_REPLY_TEXT = cython.declare(cython.int, plan.REPLY_TEXT)
_NO_TAG = cython.declare(cython.int, plan.NO_TAG)
_TAG_FIRST = cython.declare(cython.int, plan.TAG_FIRST)
_FACTS = cython.declare(cython.int, 12)
"""Numbers that are kept of a method, in the order of `_recite`."""
_TAG_KEY = b'"delivery_tag":'


class MethodMemory(Memory):
    """Methods without secrets: their payloads but for a delivery tag, and what they came to.

    `recall` and `learn` answer the code of what is remembered, -1 for nothing.
    """

    def __init__(self):
        Memory.__init__(self)
        self.places = bytes(plan.tag_places)
        self.cuts = integers(MAX_REMEMBERED)
        self.facts = integers(_FACTS * MAX_REMEMBERED)
        self.spans = integers(12 * MAX_REMEMBERED)
        self.names = integers(4 * MAX_REMEMBERED)
        self.serials = integers(MAX_REMEMBERED)
        self.digest = 0
        self.method = -1
        self.tag_at = -1

    def recall(self, decoder, reader, dialect, at, end):
        """Leave in the decoder, and write, what decoding the payload `at`..`end` would.

        After -1 the payload is to be decoded, and can be learnt.
        """
        self.method = -1
        if end - at < 4 or end - at > _LONGEST:
            return -1
        choice: cython.int = decoder.find(dialect, reader.u16(at), reader.u16(at + 2))
        if choice < 0:
            return -1
        method: cython.int = decoder.choices[choice]
        place: cython.int = self.places[method]
        if place == 0 or not self._locate(reader, place, at, end) or not self.awake():
            return -1
        self.method = method
        first: cython.longlong = self.tag_at - at
        rest: cython.longlong = end - at - first
        if place != _NO_TAG:
            rest -= 8
        self.digest = reader.hash_of(at, first) ^ cython.cast(cython.ulonglong, dialect)
        if rest:
            self.digest = (self.digest + 3 * reader.hash_of(end - rest, rest)) & _MASK64
        words: Vocabulary = self.words
        code: cython.int = words.find(self.digest, first + rest)
        while code >= 0:
            if (
                self.facts[_FACTS * code] == dialect
                and reader._equals(words, words.ends[code], at, first)
                and reader._equals(words, words.ends[code] + first, end - rest, rest)
            ):
                self.found += 1
                return self._recite(decoder, reader, code, place, at)
            code = words.next(self.digest, first + rest)
        return -1

    def _locate(self, reader, place, at, end):
        """Note where the delivery tag is, the end where there is none; false when it is odd."""
        self.tag_at = end
        if place == _NO_TAG:
            return True
        if place == _TAG_FIRST:
            self.tag_at = at + 4
        else:
            if at + 5 > end:
                return False
            self.tag_at = at + 5 + reader.data[at + 4]
        return self.tag_at + 8 <= end and reader.i64(self.tag_at) >= 0

    def _recite(self, decoder, reader, code, place, at):
        """Leave what is remembered under a code in the decoder."""
        i: cython.int
        fact: cython.int = _FACTS * code
        span: cython.int = 12 * code
        if code >= _MAX:
            raise IndexError("nothing is remembered under this code")
        with cython.boundscheck(False):  # there is room for what is remembered under any code
            decoder.method = cython.cast(cython.int, self.facts[fact + 1])
            decoder.class_id = cython.cast(cython.int, self.facts[fact + 2])
            decoder.method_id = cython.cast(cython.int, self.facts[fact + 3])
            decoder.flags = cython.cast(cython.int, self.facts[fact + 4])
            decoder.written = self.facts[fact + 5] != 0
            decoder.reply_code = cython.cast(cython.int, self.facts[fact + 6])
            decoder.frame_max = self.facts[fact + 7]
            decoder.about_class = cython.cast(cython.int, self.facts[fact + 8])
            decoder.about_method = cython.cast(cython.int, self.facts[fact + 9])
            decoder.version_major = cython.cast(cython.int, self.facts[fact + 10])
            decoder.version_minor = cython.cast(cython.int, self.facts[fact + 11])
            for i in range(6):
                decoder.lengths[i] = self.spans[span + i + 6]
                decoder.starts[i] = at + self.spans[span + i] if self.spans[span + i] >= 0 else -1
        decoder.delivery_tag = _NULL if place == _NO_TAG else reader.i64(self.tag_at)
        decoder.safe_text = None
        if not decoder.written:
            return code
        out: Texts = reader.out
        start: cython.longlong = self.starts[code]
        out.put_from(self.json, start, self.cuts[code] - start)
        if place != _NO_TAG:
            reader._digits(decoder.delivery_tag)
        out.put_from(self.json, self.cuts[code], self.starts[code + 1] - self.cuts[code])
        return code

    def learn(self, decoder, reader, dialect, at, end, mark):
        """Remember the payload that `recall` did not know; its JSON was written from `mark` on."""
        if self.method < 0 or decoder.method != self.method or decoder.quoted:
            return -1
        place: cython.int = self.places[self.method]
        first: cython.longlong = self.tag_at - at
        rest: cython.longlong = end - self.tag_at - (0 if place == _NO_TAG else 8)
        if self.words.count >= _MAX:
            self.forget()
            self.words.find(self.digest, first + rest)
        code: cython.int = self.words.count
        reader.copy_to(self.words, at, first)
        reader.copy_to(self.words, end - rest, rest)
        self.words.add(self.digest)
        i: cython.int
        fact: cython.int = _FACTS * code
        self.facts[fact] = dialect
        self.facts[fact + 1] = decoder.method
        self.facts[fact + 2] = decoder.class_id
        self.facts[fact + 3] = decoder.method_id
        self.facts[fact + 4] = decoder.flags
        self.facts[fact + 5] = decoder.written
        self.facts[fact + 6] = decoder.reply_code
        self.facts[fact + 7] = decoder.frame_max
        self.facts[fact + 8] = decoder.about_class
        self.facts[fact + 9] = decoder.about_method
        self.facts[fact + 10] = decoder.version_major
        self.facts[fact + 11] = decoder.version_minor
        for i in range(6):
            self.spans[12 * code + i] = decoder.starts[i] - at if decoder.starts[i] >= 0 else -1
            self.spans[12 * code + i + 6] = decoder.lengths[i]
        self.serials[code] = -1
        self._learn_json(reader, code, place, mark)
        return code

    def _learn_json(self, reader, code, place, mark):
        """Remember the JSON from `mark` on, cut where the digits of the delivery tag were."""
        out: Texts = reader.out
        text: bytes = bytes(out.octets[mark : out.used])
        head, key, tail = text.partition(_TAG_KEY) if place != _NO_TAG else (text, b"", b"")
        self.starts[code] = self.json.used
        self.json.put_bytes(head + key)
        self.cuts[code] = self.json.used
        self.json.put_bytes(tail.lstrip(b"0123456789"))
        self.starts[code + 1] = self.json.used
        return 0

    def end_row(self, frames, decoder, reader, code, serial):
        """Close a frame's row of what is remembered under a code, in the rows of a serial number.

        The codes of its names hold for the rows of one serial number, which share vocabularies.
        """
        row: cython.longlong = frames.rows
        if self.serials[code] != serial:
            frames.end_method(decoder.method, decoder, reader)
            self.names[4 * code] = frames.exchange.values[row]
            self.names[4 * code + 1] = frames.routing_key.values[row]
            self.names[4 * code + 2] = frames.queue.values[row]
            self.names[4 * code + 3] = frames.consumer_tag.values[row]
            self.serials[code] = serial
            return 0
        if row >= frames.capacity:
            raise IndexError("no room for a row")
        with cython.boundscheck(False):  # every column has room for as many rows
            frames.method.values[row] = decoder.method
            frames.reply_code.values[row] = decoder.reply_code
            frames.delivery_tag.values[row] = decoder.delivery_tag
            frames.flags.values[row] = decoder.flags
            frames.exchange.values[row] = cython.cast(cython.int, self.names[4 * code])
            frames.routing_key.values[row] = cython.cast(cython.int, self.names[4 * code + 1])
            frames.queue.values[row] = cython.cast(cython.int, self.names[4 * code + 2])
            frames.consumer_tag.values[row] = cython.cast(cython.int, self.names[4 * code + 3])
        if decoder.written:
            frames.arguments.end()
        start: cython.longlong = decoder.starts[_REPLY_TEXT]
        if start >= 0:
            copy_text(frames.reply_text, row, reader, start, decoder.lengths[_REPLY_TEXT])
        frames.rows = row + 1
        return 0
