from amqpsniff.columns cimport Integers

cdef class EventLog:
    cdef public unsigned long long seed
    cdef public object give
    cdef public list captures
    cdef public dict codes
    cdef public bint over
    cdef public long long count, rows, most, last_ns, last_capture, last_number
    cdef object recent
    cdef long long recent_code
    cdef public Integers ts_ns, capture, number
    cpdef int at(self, object capture, long long number, long long ts_ns) except? -1
    cdef long long code_of(self, object capture) except? -2
    cdef int at_end(self, object conversation) except? -1
    cpdef finish(self)
    cdef long long put_order(self) except? -1
    cdef int end_row(self) except? -1
