from amqpsniff.decode.state cimport Allowance

cdef class Window:
    cdef Allowance allowance
    cdef public bytearray buffer
    cdef public long long first, used, base
    cdef object marks
    cdef bint fits(self, long long count) except? -1
    cdef long long end(self) except? -1
    cdef int append(self, bytes octets, object number, object ts_ns, long long moment) except? -1
    cdef object packet_of(self, long long end)
    cdef int trim(self, long long keep) except? -1
    cdef int jump(self, long long offset) except? -1
    cdef list pieces(self, long long start, long long end)
