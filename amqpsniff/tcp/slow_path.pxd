from amqpsniff.tcp.conversation cimport Conversation
from amqpsniff.tcp.half_stream cimport HalfStream, HoldingPool
from amqpsniff.tcp.out_of_order cimport Deadlines
from amqpsniff.tcp.retransmissions cimport History
from amqpsniff.tcp.stream cimport EventWriter
from amqpsniff.tcp.table cimport ConversationTable

cdef class SlowPath:
    cdef object limits
    cdef HoldingPool pool
    cdef readonly ConversationTable table
    cdef long long most, linger, near
    cdef readonly EventWriter writer
    cdef readonly History history
    cdef readonly Deadlines deadlines
    cdef object rooms
    cdef dict early
    cdef public object joined
    cdef long long serial
    cdef readonly long long cut, retransmissions, duplicates, out_of_order, impossible
    cdef bint limit_reported
    cdef public object places
    cdef dict keys
    cdef HalfStream find(self, long long[::1] rows, long long at)
    cdef int note_unreachable(self, long long[::1] rows, long long at) except? -1
    cdef int unknown(
        self, bytes octets, long long[::1] rows, long long at, long long number, long long ts_ns
    ) except? -2
    cdef object _room(
        self, bytes key, long long[::1] rows, long long at, long long serial, long long ts_ns
    )
    cdef int _wait(
        self, room, bytes key, bytes octets, long long[::1] rows, long long at, long long number,
        long long ts_ns
    ) except? -1
    cdef int _enter(self, room) except? -1
    cdef object _keep(
        self, bytes key, bytes octets, long long[::1] rows, long long at, long long number,
        long long ts_ns
    )
    cdef int _recall(self, segment) except? -1
    cdef int _follow_kept(self, segments) except? -1
    cdef int open(
        self, long long[::1] rows, long long at, long long number, long long ts_ns, long long serial
    ) except? -1
    cdef int _evict(self, long long number, long long ts_ns) except? -1
    cdef int _close(self, Conversation conversation, long long number, long long ts_ns, int over) except? -1
    cpdef int close_all(self, long long most) except? -1
    cdef int handle_segment(
        self, bytes octets, int index, long long[::1] rows, long long at, long long number,
        long long ts_ns
    ) except? -1
    cdef int _is_others(
        self, Conversation conversation, HalfStream half, bytes octets, long long[::1] rows,
        long long at, long long number, long long ts_ns
    ) except? -1
    cdef int _possible(
        self, Conversation conversation, HalfStream half, HalfStream other, bytes octets,
        long long[::1] rows, long long at, long long seq, long long number, long long ts_ns
    ) except? -1
    cdef bint _is_early(
        self, Conversation conversation, HalfStream half, HalfStream other, bytes octets,
        long long[::1] rows, long long at, long long number, long long ts_ns
    ) except? -1
    cdef int _doubt_another(
        self, Conversation conversation, HalfStream half, HalfStream other, bytes octets,
        long long[::1] rows, long long at, long long number, long long ts_ns
    ) except? -1
    cdef int _reset(
        self, Conversation conversation, HalfStream half, HalfStream other, long long[::1] rows,
        long long at, long long number, long long ts_ns
    ) except? -1
    cdef int _weigh(
        self, Conversation conversation, HalfStream half, HalfStream other, long long[::1] rows,
        long long at, long long seq, long long number, long long ts_ns
    ) except? -1
    cdef int _ignore_reset(self, Conversation conversation, long long number) except? -1
    cdef int _apply_reset(self, Conversation conversation) except? -1
    cdef long long _reset_wait(self, Conversation conversation) except? -1
    cdef bint _is_far(self, Conversation conversation, HalfStream half, long long seq) except? -1
    cdef int _again(
        self, Conversation conversation, bytes octets, long long[::1] rows, long long at, long long number,
        long long ts_ns
    ) except? -1
    cdef bint _believe(
        self, Conversation conversation, HalfStream half, long long seq, long long length, long long number,
        long long ts_ns
    ) except? -1
    cdef int _payload(
        self, Conversation conversation, HalfStream half, HalfStream other, bytes octets,
        long long[::1] rows, long long at, long long seq, long long number, long long ts_ns
    ) except? -1
    cdef int _report(
        self, code, Conversation conversation, long long number, long long ts_ns, detail, int most
    ) except? -1
    cdef int _end(
        self, Conversation conversation, HalfStream half, HalfStream other, long long number, long long ts_ns
    ) except? -1
    cdef int expire(self, long long ts_ns) except? -1
    cdef int _expire(self, HalfStream half, long long ts_ns) except? -1
