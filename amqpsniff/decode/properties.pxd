from amqpsniff.decode.values cimport ValueReader

cdef class PropertyDecoder:
    cdef long long[::1] starts, lengths
    cdef dict plans
    cdef public int class_id, present
    cdef public long long located
    cdef const unsigned char[::1] types, places
    cdef int _select(self, int class_id) except? -1
    cdef int locate(self, ValueReader reader, int class_id, long long at, long long end) except? -1
    cdef long long _one(self, ValueReader reader, int i, long long at, long long end, long long base) except? -1
