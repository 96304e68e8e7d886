# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Octets, Vocabulary
from amqpsniff.decode.values cimport ValueReader

cdef class Cache:
    cdef public int lookups
    cdef public int hits
    cdef public int skips
    cdef public Vocabulary words
    cdef public Octets json
    cdef public long long[::1] starts
    cpdef int clear(self) except? -1
    cdef bint is_worthwhile(self) except? -1

cdef class TableCache(Cache):
    cdef public int last
    cdef int put_table(self, ValueReader reader, long long at, long long end) except? -1
    cdef int _write(self, ValueReader reader, long long at, long long end) except? -1
    cdef int _store(self, ValueReader reader, unsigned long long digest, long long at, long long count, long long mark) except? -1
