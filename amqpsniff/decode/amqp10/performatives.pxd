# Written by `python -m tests.house.declarations`.
from amqpsniff.decode.amqp10.values cimport TypedReader
from amqpsniff.decode.values cimport TableCache

cdef class Performative:
    cdef public int code
    cdef public int state
    cdef public int outcome
    cdef public long long handle
    cdef public long long delivery
    cdef public long long first
    cdef public long long last
    cdef public long long next_incoming_id
    cdef public long long incoming_window
    cdef public long long next_outgoing_id
    cdef public long long delivery_count
    cdef public long long link_credit
    cdef public long long available
    cdef public bint begins
    cdef public bint manages
    cdef public signed char settled
    cdef public signed char more
    cdef public signed char aborted
    cdef public signed char resume
    cdef public signed char role
    cdef public signed char drain
    cdef public signed char failed
    cdef public signed char undeliverable
    cdef public str condition
    cdef public str description
    cdef public str transaction

cdef class PerformativeDecoder:
    cdef public bint show_secrets
    cdef public int code
    cdef public int wrong
    cdef public long long payload
    cdef public long long fields
    cdef public int place
    cdef public long long starts[16]
    cdef public long long ends[16]
    cdef int read(self, TypedReader reader, long long at, long long end) except? -1
    cdef long long start(self, int place) except? -2
    cdef long long number(self, TypedReader reader, int place) except? -2
    cdef bytes octets(self, TypedReader reader, int place)
    cdef int put_json(self, TypedReader reader, long long payload_bytes) except? -1
    cdef int performative(self, TypedReader reader, Performative found) except? -1
    cdef int _error_field(self, TypedReader reader, Performative found, int place) except? -1
    cdef int _state(self, TypedReader reader, Performative found, int place) except? -1
    cdef int _error(self, TypedReader reader, Performative found, long long at, long long end) except? -1

cdef class JsonCache(TableCache):
    cdef public PerformativeDecoder decoder
