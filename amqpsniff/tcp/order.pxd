from amqpsniff.tcp.deadlines cimport Deadlines
from amqpsniff.tcp.half_stream cimport HalfStream

cdef int release(
    HalfStream half, HalfStream other, long long number, long long ts_ns, long long seen
) except? -1
cdef bint waits(long long needs, HalfStream other) except? -1
cdef int settle(
    HalfStream half, HalfStream other, long long ts_ns, long long seen, Deadlines deadlines,
    long long conversations
) except? -1
cdef bint make_room(HalfStream half, HalfStream other, long long seen) except? -1
cdef int flush(HalfStream half, HalfStream other, long long number, long long ts_ns, long long seen) except? -1
