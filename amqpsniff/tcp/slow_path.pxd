cimport cython
from amqpsniff.tcp.conversation cimport Conversation
from amqpsniff.tcp.half_stream cimport HalfStream, HoldingPool
from amqpsniff.tcp.out_of_order cimport Deadlines
from amqpsniff.tcp.retransmissions cimport History
from amqpsniff.tcp.stream cimport EventWriter
from amqpsniff.tcp.table cimport ConversationTable

@cython.final
@cython.no_gc
@cython.freelist(8)
cdef class Segment:
    cdef bytes octets
    cdef long long[::1] rows
    cdef long long at, number, ts_ns, seq, ack, length
    cdef int flags
    cdef HalfStream half, other
    cdef Conversation conversation

cdef Segment segment_of(
    bytes octets, long long[::1] rows, long long at, long long number, long long ts_ns
)

cdef class SlowPath:
    cdef object limits
    cdef HoldingPool pool
    cdef readonly ConversationTable table
    cdef long long most, linger, near
    cdef readonly EventWriter writer
    cdef readonly History history
    cdef readonly Deadlines deadlines
    cdef object pending
    cdef dict early
    cdef public object joined
    cdef long long serial
    cdef readonly long long cut, retransmissions, duplicates, out_of_order, impossible
    cdef bint limit_reported
    cdef public object places
    cdef HalfStream find(self, long long[::1] rows, long long at)
    cdef int note_unreachable(self, long long[::1] rows, long long at) except? -1
    cdef int unknown(
        self, bytes octets, long long[::1] rows, long long at, long long number, long long ts_ns
    ) except? -2
    cdef object _begin_pending(self, bytes key, Segment segment, long long serial)
    cdef int _wait(self, pending, bytes key, Segment segment) except? -1
    cdef int _enter(self, pending) except? -1
    cdef int _follow_kept(self, segments) except? -1
    cdef object _keep(self, bytes key, Segment segment)
    cdef Segment _recall(self, kept)
    cdef int _follow(self, kept, Segment segment) except? -1
    cdef int _open(self, Segment segment, long long serial) except? -1
    cdef int _evict(self, long long number, long long ts_ns) except? -1
    cdef int _close(self, Conversation conversation, long long number, long long ts_ns, int over) except? -1
    cpdef int close_all(self, long long most) except? -1
    cdef int handle_segment(
        self, bytes octets, int index, long long[::1] rows, long long at, long long number,
        long long ts_ns
    ) except? -1
    cdef int _handle(self, Segment segment, int index) except? -1
    cdef int _is_others(self, Segment segment) except? -1
    cdef int _possible(self, Segment segment) except? -1
    cdef bint _is_early(self, Segment segment) except? -1
    cdef int _doubt_another(self, Segment segment) except? -1
    cdef int _reset(self, Segment segment) except? -1
    cdef int _weigh(self, Segment segment) except? -1
    cdef int _ignore_reset(self, Conversation conversation, long long number) except? -1
    cdef int _apply_reset(self, Conversation conversation) except? -1
    cdef long long _reset_wait(self, Conversation conversation) except? -1
    cdef bint _is_far(self, Segment segment) except? -1
    cdef int _again(self, Segment segment) except? -1
    cdef bint _believe(self, Segment segment) except? -1
    cdef int _payload(self, Segment segment) except? -1
    cdef int _note_resent(self, Segment segment) except? -1
    cdef int _tell(self, code, Segment segment, detail, int most) except? -1
    cdef int _report(
        self, code, Conversation conversation, long long number, long long ts_ns, detail, int most
    ) except? -1
    cdef int _end(
        self, Conversation conversation, HalfStream half, HalfStream other, long long number, long long ts_ns
    ) except? -1
    cdef int expire(self, long long ts_ns) except? -1
    cdef int _expire(self, HalfStream half, long long ts_ns) except? -1
