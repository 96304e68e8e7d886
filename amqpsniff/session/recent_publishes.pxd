from amqpsniff.columns cimport Codes, Integers
from amqpsniff.decode.rows cimport MessageRows

cdef class RecentPublishes:
    cdef public dict lost
    cdef public long long count, forgotten, published, hidden
    cdef public Integers marks, routes, numbers, times, since, owners, stamps
    cdef Codes heads, before
    cdef long long first(self, MessageRows messages, long long row, long long owner, bint answered) except? -2
    cpdef long long publish(self, long long mark, long long route, bint named, long long number, long long now, long long owner) except? -2
    cpdef int lose(self, long long owner, int side) except? -1
    cdef bint _may_be_refused(self, long long slot) except? -1
    cpdef long long place_of(self, long long mark, long long route) except? -2
    cdef long long slot_of(self, MessageRows messages, long long row) except? -2
    cdef long long _last(self, long long mark) except? -2
    cdef long long _find(self, long long mark) except? -2
    cdef bint _unlink(self, long long slot) except? -1
    cdef int _make_room(self) except? -1
    cdef long long _free(self) except? -2
    cdef long long _route(self, MessageRows messages, long long row) except? -2
    cpdef int forget(self, long long mark) except? -1
