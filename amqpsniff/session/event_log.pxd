# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Integers

cdef class EventLog:
    cdef public unsigned long long seed
    cdef public object give
    cdef public bint over
    cdef public long long count
    cdef public long long rows
    cdef public long long most
    cdef public long long last_ns
    cdef public long long last_capture
    cdef public long long last_number
    cdef public long long recent_code
    cdef public list captures
    cdef public dict codes
    cdef public object recent
    cdef public Integers ts_ns
    cdef public Integers capture
    cdef public Integers number
    cpdef int at(self, object capture, long long number, long long ts_ns) except? -1
    cdef long long code_of(self, object capture) except? -2
    cdef int at_end(self, object conversation) except? -1
    cpdef object finish(self)
    cdef long long put_order(self) except? -1
    cdef int end_row(self) except? -1
