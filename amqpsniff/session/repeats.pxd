from amqpsniff.columns cimport Integers
from amqpsniff.decode.rows cimport MessageRows

cdef class Repeats:
    cdef public dict places
    cdef public long long count, forgotten
    cdef public Integers marks, routes, numbers, times, since
    cdef long long first(self, MessageRows messages, long long row) except? -2
    cdef long long slot_of(self, MessageRows messages, long long row) except? -2
    cdef long long _free(self) except? -2
    cdef long long _route(self, MessageRows messages, long long row) except? -2
    cpdef int forget(self, long long mark) except? -1
