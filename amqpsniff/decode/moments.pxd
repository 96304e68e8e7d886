# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Integers

cdef class Moments:
    cdef public long long number
    cdef public long long ts_ns
    cdef public long long count
    cdef public long long next
    cdef public long long next_loss
    cdef public long long frame_rows
    cdef public long long message_rows
    cdef public list sources
    cdef public object capture
    cdef public Integers numbers
    cdef public Integers times
    cdef public list losses
    cdef public list late_rows
    cdef public dict late
    cdef int begin(self, object batch, long long frames, long long messages) except? -1
    cdef int note(self, Py_ssize_t event, long long number, long long ts_ns, long long frames, long long messages, Py_ssize_t losses) except? -1
    cpdef object clear(self)
    cdef bint meet(self) except? -1
    cdef object of_next_loss(self)
    cdef object of_frame(self, long long row)
    cdef object _moment(self, long long number, long long ts_ns)
