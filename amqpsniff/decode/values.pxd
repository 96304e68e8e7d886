# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Octets, Texts, Vocabulary
from amqpsniff.decode.octets cimport ByteReader

cdef class ValueReader(ByteReader):
    cdef public bint plain
    cdef public long long next
    cdef public int strange_tag
    cdef public Texts out
    cdef public const unsigned char[::1] base64
    cdef public dict floats
    cdef public dict doubles
    cdef public const unsigned char[::1] kinds
    cdef public const unsigned char[::1] widths
    cdef ValueReader over(self, bytes octets)
    cdef int put_byte(self, long long at, long long end) except? -1
    cdef int put_short(self, long long at, long long end) except? -1
    cdef int put_long(self, long long at, long long end) except? -1
    cdef int put_longlong(self, long long at, long long end) except? -1
    cdef int put_timestamp(self, long long at, long long end) except? -1
    cdef int put_shortstr(self, long long at, long long end) except? -1
    cdef int put_longstr(self, long long at, long long end) except? -1
    cdef int put_table(self, long long at, long long end, int depth=*) except? -1
    cdef int _pairs(self, long long at, long long limit, bint cut, int depth) except? -1
    cdef int _name(self, long long at, long long length) except? -1
    cdef bint _repeated(self, long long at, long long until, long long length) except? -1
    cdef long long _skip(self, long long at, long long limit) except? -2
    cdef unsigned long long table_mark(self, unsigned long long seed, long long at, long long end) except? 1
    cdef int _tagged(self, long long at, long long limit, bint cut, int depth) except? -1
    cdef int _container(self, int kind, long long start, long long limit, bint cut, int depth) except? -1
    cdef int _array(self, long long at, long long limit, bint cut, int depth) except? -1
    cdef int _unread(self, long long at, long long limit) except? -1
    cdef int _scalar(self, int kind, long long at) except? -1
    cdef int _digits(self, long long number) except? -1
    cdef int _padded(self, long long number, int width) except? -1
    cdef int _bytes(self, long long start, long long count) except? -1
    cdef int _base64(self, long long start, long long count) except? -1
    cdef int put_text(self, long long start, long long count) except? -1
    cdef bint _escape(self, long long start, long long count) except? -1
    cdef int _float(self, long long start, int width) except? -1
    cdef int _decimal(self, long long at) except? -1
    cdef long long timestamp_ms(self, long long at) except? -2
    cdef int _timestamp(self, long long at) except? -1
    cdef int _date(self, long long seconds, long long ms) except? -1
    cdef int _unsigned(self, long long at) except? -1

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
