from amqpsniff.columns cimport Texts, Vocabulary
from amqpsniff.decode.octets cimport ByteReader
from amqpsniff.decode.rows cimport MessageRows, Vocabularies

cpdef unsigned long long mixed(unsigned long long hash_, unsigned long long more) except? 1
cdef unsigned long long coded(Vocabulary vocabulary, int code) except? 1
cdef long long _end_of_string(
    unsigned char[::1] octets, long long at, long long end
) except? -1
cdef bint is_direct(Vocabulary vocabulary, int code) except? -1

cdef class Fingerprinter:
    cdef public ByteReader reader
    cdef public bint added, died, streamed, timestamped, own
    cdef public unsigned long long seed, exchange, routing_key, expiration, correlation
    cdef unsigned long long word(self, Vocabulary vocabulary, int code) except? 1
    cdef unsigned long long of(self, MessageRows messages, long long row) except? 1
    cdef unsigned long long bare(self, MessageRows messages, long long row) except? 1
    cdef unsigned long long identity(self, MessageRows messages, long long row) except? 1
    cdef unsigned long long id_of(self, Texts column, long long row) except? 1
    cdef unsigned long long text(self, Texts column, long long row) except? 1
    cpdef unsigned long long octets(self, bytes octets) except? 1
    cdef unsigned long long _reply_to(self, Vocabulary vocabulary, int code) except? 1
    cdef unsigned long long _headers(self, Texts column, long long row) except? 1
    cdef unsigned long long _members(
        self, unsigned char[::1] octets, long long start, long long end
    ) except? 1
    cdef bint _is_added(
        self, unsigned char[::1] octets, long long start, long long end
    ) except? -1
    cdef int _learn(self, bytes octets) except? -1
