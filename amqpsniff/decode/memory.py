# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""What came before: octets that come again are looked up and not read again.

A publisher sends to the same few exchanges and routing keys and puts the same headers on its
messages, and clients of one kind introduce themselves in the same way. A memory keeps octets that
were read without anything odd about them, and what they came to. It holds no more than a fixed
number of them, forgets all when it is full, and rests for a while when it sees that nothing comes
twice.
"""

import cython
from cython.cimports.amqpsniff.columns import Octets, Texts, Vocabulary

MAX_REMEMBERED = 2048
"""Distinct methods, and distinct field tables, in a memory: what a busy broker's connections send
at one time. Each entry takes some 300 octets beside its own."""

MAX_OCTETS = 1024
"""Longest method or field table that is remembered: longer ones seldom come twice."""

TRIES = 2048
"""Octets looked up before a memory asks itself whether that is worth it."""

RESTS = 16 * TRIES
"""Octets that are not looked up after it was not: the time lost is then below a tenth."""

_MAX = cython.declare(cython.int, MAX_REMEMBERED)
_LONGEST = cython.declare(cython.longlong, MAX_OCTETS)
_TRIES = cython.declare(cython.int, TRIES)
_RESTS = cython.declare(cython.int, RESTS)


def integers(count):
    """Room for so many 64-bit integers."""
    return memoryview(bytearray(8 * count)).cast("q")


class Memory:
    """Octets that were read before, by code, and the JSON that each of them came to."""

    def __init__(self):
        self.tried = 0
        self.found = 0
        self.resting = 0
        self.starts = integers(MAX_REMEMBERED + 1)
        self.forget()

    def forget(self):
        """Remember nothing."""
        self.words = Vocabulary()
        self.json = Octets()
        return 0

    def awake(self):
        """Whether it is worth looking something up now."""
        if self.resting > 0:
            self.resting -= 1
            return False
        self.tried += 1
        if self.tried > _TRIES:
            if 4 * self.found < self.tried:
                self.resting = _RESTS
            self.tried = 1
            self.found = 0
        return True


class TableMemory(Memory):
    """Field tables and their JSON."""

    def put_table(self, reader, at, end):
        """Write the field table `at`..`end` of a reader's data as an object, as the reader does."""
        count: cython.longlong = end - at
        if count > _LONGEST or not self.awake():
            return reader.put_table(at, end)
        out: Texts = reader.out
        words: Vocabulary = self.words
        digest: cython.ulonglong = reader.hash_of(at, count)
        code: cython.int = words.find(digest, count)
        while code >= 0:
            if reader._equals(words, words.ends[code], at, count):
                self.found += 1
                return out.put_from(
                    self.json, self.starts[code], self.starts[code + 1] - self.starts[code]
                )
            code = words.next(digest, count)
        odd: cython.int = reader.oddities
        mark: cython.longlong = out.used
        reader.oddities = 0
        answer: cython.int = reader.put_table(at, end)
        if answer == 0 and reader.oddities == 0:
            self._learn(reader, digest, at, count, mark)
        reader.oddities |= odd
        return answer

    def _learn(self, reader, digest, at, count, mark):
        """Remember a table that was not found, and the JSON from `mark` on."""
        if self.words.count >= _MAX:
            self.forget()
            self.words.find(digest, count)
        code: cython.int = self.words.count
        reader.copy_to(self.words, at, count)
        self.words.add(digest)
        self.starts[code] = self.json.used
        self.json.put_from(reader.out, mark, reader.out.used - mark)
        self.starts[code + 1] = self.json.used
        return 0
