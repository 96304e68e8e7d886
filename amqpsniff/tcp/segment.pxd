cimport cython
from amqpsniff.tcp.stream cimport EventWriter

@cython.no_gc
cdef class Segment:
    cdef long long[::1] rows
    cdef bytes octets
    cdef readonly long long number, ts_ns, seq, payload_seq, ack, length
    cdef readonly int flags
    cdef long long at, extra, start, captured, seen
    cdef int read(
        self, EventWriter writer, bytes octets, long long[::1] rows, long long at,
        long long number, long long ts_ns
    ) except? -1
