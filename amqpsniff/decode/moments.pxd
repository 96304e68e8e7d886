from amqpsniff.columns cimport Integers

cdef class Moments:
    cdef list sources, losses, late_rows
    cdef dict late
    cdef object capture
    cdef long long number, ts_ns, made, next, next_loss, frame_rows, message_rows
    cdef Integers numbers, times
    cdef int begin(self, object batch, long long frames, long long messages) except? -1
    cdef int note(
        self, Py_ssize_t event, long long number, long long ts_ns, long long frames,
        long long messages, Py_ssize_t losses
    ) except? -1
    cpdef clear(self)
    cdef bint meet(self) except? -1
    cdef of_next_loss(self)
    cdef of_frame(self, long long row)
    cdef _moment(self, long long number, long long ts_ns)
