# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Codes, Integers
from amqpsniff.decode.rows cimport MessageRows

cdef class RecentPublishes:
    cdef public long long count
    cdef public long long forgotten
    cdef public long long published
    cdef public long long hidden
    cdef public dict lost
    cdef public Codes heads
    cdef public Codes before
    cdef public Integers owners
    cdef public Integers stamps
    cdef public Integers marks
    cdef public Integers routes
    cdef public Integers numbers
    cdef public Integers times
    cdef public Integers since
    cdef int _make_room(self) except? -1
    cdef long long first(self, MessageRows messages, long long row, long long owner, bint answered) except? -2
    cpdef long long publish(self, long long mark, long long route, bint named, long long number, long long now, long long owner) except? -2
    cpdef int lose(self, long long owner, int side) except? -1
    cdef bint _may_be_refused(self, long long slot) except? -1
    cdef long long slot_of(self, MessageRows messages, long long row) except? -2
    cpdef long long place_of(self, long long mark, long long route) except? -2
    cdef long long _last(self, long long mark) except? -2
    cdef long long _find(self, long long mark) except? -2
    cdef bint _unlink(self, long long slot) except? -1
    cdef long long _free(self) except? -2
    cdef long long _route(self, MessageRows messages, long long row) except? -2
    cpdef int forget(self, long long mark) except? -1
