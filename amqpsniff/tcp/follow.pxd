from amqpsniff.tcp.events cimport EventWriter
from amqpsniff.tcp.half_stream cimport HalfStream
from amqpsniff.tcp.history cimport History

cdef class Follower:
    cdef object limits, pool
    cdef readonly object table
    cdef readonly EventWriter writer
    cdef readonly History history
    cdef list deadlines
    cdef long long deadlines_made, next_deadline, serial
    cdef readonly long long cut, retransmissions, duplicates, out_of_order, impossible
    cdef bint limit_reported
    cdef object octets_of_rows
    cdef dict keys
    cpdef int use(self, rows) except? -1
    cdef bytes _key(self, long long at)
    cdef int find(self, long long at) except? -2
    cdef int unknown(
        self, long long[::1] rows, long long at, long long number, long long ts_ns
    ) except? -2
    cdef int open(self, long long[::1] rows, long long at, long long number, long long ts_ns) except? -1
    cdef int _evict(self, long long number, long long ts_ns) except? -1
    cdef int _close(self, conversation, long long number, long long ts_ns, int over) except? -1
    cpdef int close_all(self) except? -1
    cdef int unusual(
        self, bytes octets, int index, long long[::1] rows, long long at, long long number,
        long long ts_ns
    ) except? -1
    cdef int _again(
        self, conversation, bytes octets, long long[::1] rows, long long at, long long number,
        long long ts_ns
    ) except? -1
    cdef int _count(self, HalfStream half, long long number, long long ts_ns) except? -1
    cdef bint _believe(
        self, conversation, HalfStream half, long long seq, long long length, long long number,
        long long ts_ns
    ) except? -1
    cdef int _payload(
        self, conversation, HalfStream half, bytes octets, long long[::1] rows, long long at,
        long long seq, long long number, long long ts_ns
    ) except? -1
    cdef int _report(
        self, code, conversation, long long number, long long ts_ns, detail, int most
    ) except? -1
    cdef int _settle(self, HalfStream half, HalfStream other, long long ts_ns) except? -1
    cdef int _overdue(self, HalfStream half, long long segments, long long ts_ns) except? -1
    cdef int _end(
        self, conversation, HalfStream half, HalfStream other, long long number, long long ts_ns
    ) except? -1
    cdef int _deadline(self, HalfStream half, long long deadline_ns) except? -1
    cdef int _clean_deadlines(self) except? -1
    cdef int expire(self, long long ts_ns) except? -1
