# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Octets, Vocabulary

cdef class ByteReader:
    cdef public int oddities
    cdef public const unsigned char[::1] data
    cpdef int read_from(self, const unsigned char[::1] data) except? -1
    cdef long long u16(self, long long at) except? -1
    cdef long long u32(self, long long at) except? -1
    cdef long long i64(self, long long at) except? -1
    cdef bytes bytes_at(self, long long start, long long count)
    cdef bint has_twice(self, int octet, long long start, long long end) except? -1
    cdef int copy_to(self, Octets column, long long start, long long count) except? -1
    cdef bint is_ascii(self, long long start, long long count) except? -1
    cdef bint is_text(self, long long start, long long count) except? -1
    cdef int code_in(self, Vocabulary vocabulary, long long start, long long count) except? -1
    cdef unsigned long long hash_of(self, long long start, long long count) except? 1
    cdef unsigned long long hash_with(self, unsigned long long seed, long long start, long long count) except? 1
    cdef unsigned long long hash_part(self, unsigned long long seed, long long start, long long count, long long position) except? 1
    cdef unsigned long long sketch(self, long long start, long long count) except? 1
    cdef bint equals_but(self, Vocabulary vocabulary, long long begin, long long start, long long count, long long first, long long gap) except? -1
    cdef bint is_word(self, Vocabulary vocabulary, int code, long long start, long long count) except? -1
    cdef bint _equals(self, Vocabulary vocabulary, long long first, long long start, long long count) except? -1
cdef int code_of(Vocabulary vocabulary, bytes text) except? -1
