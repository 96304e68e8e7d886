# Written by `python -m tests.house.declarations`.
cimport cython
from amqpsniff.tcp.stream cimport EventWriter

@cython.no_gc
cdef class Segment:
    cdef public long long[::1] rows
    cdef public long long at
    cdef public long long number
    cdef public long long ts_ns
    cdef public long long seq
    cdef public long long payload_seq
    cdef public long long ack
    cdef public int flags
    cdef public bytes octets
    cdef public long long extra
    cdef public long long start
    cdef public long long captured
    cdef public long long length
    cdef public long long seen
    cdef int read(self, EventWriter writer, bytes octets, long long[::1] rows, long long at, long long number, long long ts_ns) except? -1
