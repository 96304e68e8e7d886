from amqpsniff.tcp.half_stream cimport HalfStream

cdef int release(
    HalfStream half, HalfStream other, long long number, long long ts_ns, long long seen
) except? -1
cdef bint waits(long long needs, HalfStream other) except? -1
cdef bint watch(HalfStream half, HalfStream other, long long segments, long long ts_ns) except? -1
cdef bint due(HalfStream half, long long segments, long long ts_ns) except? -1
cdef int forsake(HalfStream half, HalfStream other, long long seen) except? -1
cdef bint make_room(HalfStream half, HalfStream other, long long seen) except? -1
cdef int flush(HalfStream half, HalfStream other, long long number, long long ts_ns, long long seen) except? -1
