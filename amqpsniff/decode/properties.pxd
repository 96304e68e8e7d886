# Written by `python -m tests.house.declarations`.
from amqpsniff.decode.values cimport ValueReader

cdef class PropertyDecoder:
    cdef public int present
    cdef public long long located
    cdef public long long starts[16]
    cdef public long long lengths[16]
    cdef public long long known[64]
    cdef public unsigned char orders[2048]
    cdef public dict rows
    cdef int _order(self, int class_id, int flags) except? -1
    cdef int _learn(self, int order, int class_id, int flags) except? -1
    cdef int locate(self, ValueReader reader, int class_id, long long at, long long end) except? -1
