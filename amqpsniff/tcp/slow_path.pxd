# Written by `python -m tests.house.declarations`.
cimport cython
from amqpsniff.tcp.conversation cimport Conversation, ConversationTable
from amqpsniff.tcp.half_stream cimport HalfStream, HoldingPool, Segment
from amqpsniff.tcp.out_of_order cimport Deadlines
from amqpsniff.tcp.retransmissions cimport History
from amqpsniff.tcp.stream cimport EventWriter

@cython.final
@cython.no_gc
cdef class FollowedSegment(Segment):
    cdef public HalfStream half
    cdef public HalfStream other
    cdef public Conversation conversation

cdef class SlowPath:
    cdef public object limits
    cdef public long long max_conversations
    cdef public long long linger_after_ns
    cdef public long long near_bytes
    cdef public long long segment_serial
    cdef public bint limit_reported
    cdef public long long cut
    cdef public long long retransmissions
    cdef public long long duplicates
    cdef public long long out_of_order
    cdef public long long impossible
    cdef public HoldingPool pool
    cdef public ConversationTable table
    cdef public EventWriter writer
    cdef public History history
    cdef public Deadlines deadlines
    cdef public object pending
    cdef public dict pending_by_key
    cdef public object positions
    cdef public object starts
    cdef HalfStream find(self, long long[::1] rows, long long at)
    cdef int note_unreachable(self, long long[::1] rows, long long at) except? -1
    cdef int unknown(self, bytes octets, long long[::1] rows, long long at, long long number, long long ts_ns) except? -2
    cdef FollowedSegment _segment(self, bytes octets, long long[::1] rows, long long at, long long number, long long ts_ns)
    cdef object _make_pending(self, bytes key, Segment segment, long long serial)
    cdef int _queue_pending(self, object pending, bytes key, Segment segment) except? -1
    cdef int _replay_pending(self, object pending) except? -1
    cdef int _replay_segments(self, object segments) except? -1
    cdef object _kept_segment(self, bytes key, Segment segment)
    cdef FollowedSegment _recall(self, object saved)
    cdef int _replay(self, object saved, FollowedSegment segment) except? -1
    cdef int _open(self, Segment segment, long long serial) except? -1
    cdef int _evict(self, long long number, long long ts_ns) except? -1
    cdef int _close(self, Conversation conversation, long long number, long long ts_ns, int has_ended) except? -1
    cpdef int close_all(self, long long max_count) except? -1
    cdef int handle_segment(self, bytes octets, int index, long long[::1] rows, long long at, long long number, long long ts_ns) except? -1
    cdef int _handle(self, FollowedSegment segment, int index) except? -1
    cdef int _classify_doubtful(self, FollowedSegment segment) except? -1
    cdef int _take_possible(self, FollowedSegment segment) except? -1
    cdef int _count_syn_again(self, FollowedSegment segment, long long before_ns) except? -1
    cdef bint _waits_for_handshake(self, FollowedSegment segment) except? -1
    cdef int _start_doubt(self, FollowedSegment segment) except? -1
    cdef int _take_reset(self, FollowedSegment segment) except? -1
    cdef int _close_now(self, FollowedSegment segment) except? -1
    cdef long long _reset_wait(self, Conversation conversation) except? -1
    cdef int _apply_reset(self, Conversation conversation) except? -1
    cdef int _resolve_doubt(self, FollowedSegment segment) except? -1
    cdef int _ignore_reset(self, Conversation conversation, long long number) except? -1
    cdef bint _is_far(self, FollowedSegment segment) except? -1
    cdef int _reuse_endpoints(self, FollowedSegment segment) except? -1
    cdef bint _accept_impossible(self, FollowedSegment segment) except? -1
    cdef int note_position(self, HalfStream half, long long offset, long long[::1] rows, long long at) except? -1
    cdef int _take_payload(self, FollowedSegment segment) except? -1
    cdef int _note_resent(self, FollowedSegment segment) except? -1
    cdef int _report_segment(self, object code, FollowedSegment segment, object detail, int max_findings) except? -1
    cdef int _report_doubt(self, object code, Conversation conversation, object doubt, object detail) except? -1
    cdef int _report(self, object code, Conversation conversation, long long number, long long ts_ns, object detail, int max_findings) except? -1
    cdef int _close_if_finished(self, Conversation conversation, HalfStream half, HalfStream other, long long number, long long ts_ns) except? -1
    cdef int expire(self, long long ts_ns) except? -1
    cdef int _expire_half(self, HalfStream half, long long ts_ns) except? -1
    cdef int _settle(self, HalfStream half, HalfStream other, long long ts_ns) except? -1
