from amqpsniff.columns cimport Texts, Vocabulary
from amqpsniff.decode.octets cimport ByteReader
from amqpsniff.decode.rows cimport MessageRows, Vocabularies

cpdef unsigned long long mixed(unsigned long long hash_, unsigned long long more) except? 1
cpdef bytes without_added(bytes octets)
cdef unsigned long long coded(Vocabulary vocabulary, int code) except? 1
cdef bint _may_be_added(Texts column, long long start, long long end) except? -1
cdef bint is_direct(Vocabulary vocabulary, int code) except? -1

cdef class Fingerprinter:
    cdef public ByteReader reader
    cdef public bint died, streamed, timestamped, own
    cdef public unsigned long long seed, exchange, routing_key, expiration, correlation
    cdef unsigned long long word(self, Vocabulary vocabulary, int code) except? 1
    cdef unsigned long long of(self, MessageRows messages, long long row) except? 1
    cdef unsigned long long bare(self, MessageRows messages, long long row) except? 1
    cdef unsigned long long identity(self, MessageRows messages, long long row) except? 1
    cdef unsigned long long text(self, Texts column, long long row) except? 1
    cpdef unsigned long long octets(self, bytes octets) except? 1
    cdef unsigned long long _reply_to(self, Vocabulary vocabulary, int code) except? 1
    cdef unsigned long long _headers(self, Texts column, long long row) except? 1
    cdef int _learn(self, bytes octets) except? -1
