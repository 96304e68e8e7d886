from amqpsniff.columns cimport Integers
from amqpsniff.decode.rows cimport MessageRows

cdef class RecentPublishes:
    cdef public dict places
    cdef public long long count, forgotten
    cdef public Integers marks, routes, numbers, times, since
    cdef long long first(self, MessageRows messages, long long row) except? -2
    cpdef long long publish(self, long long mark, long long route, bint named, long long number, long long now) except? -2
    cpdef long long place_of(self, long long mark, long long route) except? -2
    cdef long long slot_of(self, MessageRows messages, long long row) except? -2
    cdef long long _free(self) except? -2
    cdef long long _route(self, MessageRows messages, long long row) except? -2
    cpdef int forget(self, long long mark) except? -1
