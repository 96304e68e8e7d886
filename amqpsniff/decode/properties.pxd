from amqpsniff.decode.values cimport ValueReader

cdef class PropertyDecoder:
    cdef long long starts[16]
    cdef long long lengths[16]
    cdef long long known[64]
    cdef unsigned char orders[2048]
    cdef dict rows
    cdef public int present
    cdef public long long located
    cdef int _order(self, int class_id, int flags) except? -1
    cdef int _learn(self, int order, int class_id, int flags) except? -1
    cdef int locate(self, ValueReader reader, int class_id, long long at, long long end) except? -1
