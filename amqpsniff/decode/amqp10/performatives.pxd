from amqpsniff.decode.amqp10.values cimport TypedReader
from amqpsniff.decode.cache cimport TableCache

cdef class Performative:
    cdef public int code, state, outcome
    cdef public long long handle, delivery, first, last
    cdef public long long next_incoming_id, incoming_window, next_outgoing_id
    cdef public long long delivery_count, link_credit, available
    cdef public bint begins
    cdef public signed char settled, more, aborted, resume, role, drain, echo, failed, undeliverable
    cdef public str condition, description, transaction

cdef class PerformativeDecoder:
    cdef public bint show_secrets
    cdef public int code, place, wrong
    cdef public long long payload, fields
    cdef long long starts[16]
    cdef long long ends[16]
    cdef int read(self, TypedReader reader, long long at, long long end) except? -1
    cdef long long start(self, int place) except? -2
    cdef long long number(self, TypedReader reader, int place) except? -2
    cdef int truth(self, TypedReader reader, int place) except? -2
    cdef bytes octets(self, TypedReader reader, int place)
    cdef int put_json(self, TypedReader reader, long long payload_bytes) except? -1
    cdef int performative(self, TypedReader reader, Performative found) except? -1
    cdef int _state(self, TypedReader reader, Performative found, int place) except? -1
    cdef int _error_field(self, TypedReader reader, Performative found, int place) except? -1
    cdef int _error(self, TypedReader reader, Performative found, long long at, long long end) except? -1

cdef class JsonCache(TableCache):
    cdef PerformativeDecoder decoder
