# Written by `python -m tests.house.declarations`.
from amqpsniff.tcp.half_stream cimport HalfStream

cdef class Deadlines:
    cdef public long long next_ns
    cdef public list heap
    cdef public object queue
    cdef public long long last_ns
    cdef public long long made
    cdef public long long pending_ns
    cdef int clear(self) except? -1
    cdef int expect(self, long long pending_ns) except? -1
    cdef bint any(self) except? -1
    cdef int add(self, HalfStream half, long long deadline_ns, long long conversations) except? -1
    cdef int linger(self, HalfStream half, long long conversations) except? -1
    cdef HalfStream take(self)
    cdef HalfStream _first(self)
    cdef long long _earliest(self) except? -2
    cdef int _clean_heap(self) except? -1
    cdef int _forget_closed(self) except? -1
    cdef int _clean_queue(self) except? -1
cdef int release(HalfStream half, HalfStream other, long long number, long long ts_ns, long long seen) except? -1
cdef bint waits(long long needs, HalfStream other) except? -1
cdef int settle(HalfStream half, HalfStream other, long long ts_ns, long long seen, Deadlines deadlines, long long conversations) except? -1
cdef bint make_room(HalfStream half, HalfStream other, long long seen) except? -1
cdef int flush(HalfStream half, HalfStream other, long long number, long long ts_ns, long long seen) except? -1
