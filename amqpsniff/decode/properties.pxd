from amqpsniff.decode.values cimport ValueReader

cdef class PropertyDecoder:
    cdef long long[::1] starts, lengths, known
    cdef unsigned char[::1] orders
    cdef dict rows
    cdef public int present
    cdef public long long located
    cdef int _order(self, int class_id, int flags) except? -1
    cdef int locate(self, ValueReader reader, int class_id, long long at, long long end) except? -1
