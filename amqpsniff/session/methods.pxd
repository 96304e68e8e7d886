# Written by `python -m tests.house.declarations`.
cimport cython
from amqpsniff.decode.rows cimport FrameRows
from amqpsniff.session.entities cimport Channel, ChannelSlot, Session
from amqpsniff.session.method_frame cimport MethodFrame, Request
from amqpsniff.session.settling cimport Settler

cdef bint move_connection(Session session, int method, int side) except? -1
cdef bint has_closed(Session session, int side) noexcept
cdef int move_slot(ChannelSlot slot, int method, int side) except? -1
cdef int drop_requests(ChannelSlot slot, int side, bint closes) except? -1

cdef class ReplyMatcher:
    cdef public long long most
    cdef public Settler settler
    cdef public dict histograms
    cdef int ask(self, Session session, ChannelSlot slot, FrameRows frames, long long row, int method, int side, object subject) except? -1
    cdef Request reply(self, Session session, ChannelSlot slot, FrameRows frames, long long row, int method, int side)
    cdef bint _find_early_reply(self, Session session, ChannelSlot slot, Request request, long long before) except? -1
    cdef int _answer(self, Session session, ChannelSlot slot, Request request, long long number, long long ts_ns) except? -1

@cython.no_gc
cdef class ReplyTimes:
    cdef public str name
    cdef public ReplyTimes before
    cdef public long long count
    cdef public long long took_ns
    cdef public long long longest_ns
    cdef public long long number
    cdef public long long ts_ns

@cython.no_gc
cdef class Waited:
    cdef public ReplyTimes latest
    cdef public long long number
    cdef public long long ts_ns
    cdef public long long count
    cdef public long long waited_ns
    cdef public long long until_ns
cdef long long note_answer(dict memory, str name, Request request, long long now) except? -1
cdef Channel begin_channel(Session session, ChannelSlot slot, object capture, MethodFrame frame)
cdef int open_channel(object tracker, Session session, ChannelSlot slot, object capture, MethodFrame frame) except? -1
cdef Channel reopen_channel(object tracker, ChannelSlot slot, object capture, long long ts_ns)
cdef int note_end(object tracker, Session session) except? -1
cdef int end_connection(object tracker, Session session) except? -1
cdef int lose_frames(Session session, int side, tuple place) except? -1
cdef int resume_side(Session session, int side) except? -1
cdef int mark_uncertain(Channel channel, int side) except? -1
