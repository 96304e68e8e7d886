# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Texts, Vocabulary
from amqpsniff.decode.octets cimport ByteReader
from amqpsniff.decode.rows cimport MessageRows

cpdef unsigned long long mixed(unsigned long long hash_, unsigned long long more) except? 1

cdef class Fingerprinter:
    cdef public bint added
    cdef public bint died
    cdef public bint streamed
    cdef public bint timestamped
    cdef public bint own
    cdef public unsigned long long seed
    cdef public unsigned long long exchange
    cdef public unsigned long long routing_key
    cdef public unsigned long long expiration
    cdef public unsigned long long correlation
    cdef public ByteReader reader
    cdef unsigned long long of(self, MessageRows messages, long long row) except? 1
    cdef unsigned long long bare(self, MessageRows messages, long long row) except? 1
    cdef unsigned long long identity(self, MessageRows messages, long long row) except? 1
    cdef unsigned long long id_of(self, Texts column, long long row) except? 1
    cdef unsigned long long word(self, Vocabulary vocabulary, int code) except? 1
    cdef unsigned long long text(self, Texts column, long long row) except? 1
    cpdef unsigned long long octets(self, bytes octets) except? 1
    cdef unsigned long long _reply_to(self, Vocabulary vocabulary, int code) except? 1
    cdef unsigned long long _headers(self, Texts column, long long row) except? 1
    cdef unsigned long long _members(self, unsigned char[::1] octets, long long start, long long end) except? 1
    cdef bint _is_added(self, unsigned char[::1] octets, long long start, long long end) except? -1
    cdef int _learn(self, bytes octets) except? -1
cdef unsigned long long coded(Vocabulary vocabulary, int code) except? 1
cdef bint is_direct(Vocabulary vocabulary, int code) except? -1
