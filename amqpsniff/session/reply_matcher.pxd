# Written by `python -m tests.house.declarations`.
cimport cython
from amqpsniff.decode.rows cimport FrameRows
from amqpsniff.session.entities cimport ChannelSlot, Session
from amqpsniff.session.method_frame cimport Request
from amqpsniff.session.settling cimport Settler

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

cdef class ReplyMatcher:
    cdef public long long most
    cdef public Settler settler
    cdef public dict histograms
    cdef int ask(self, Session session, ChannelSlot slot, FrameRows frames, long long row, int method, int side, object subject) except? -1
    cdef Request reply(self, Session session, ChannelSlot slot, FrameRows frames, long long row, int method, int side)
    cdef bint _came(self, Session session, ChannelSlot slot, Request request, long long before) except? -1
    cdef int _answer(self, Session session, ChannelSlot slot, Request request, long long number, long long ts_ns) except? -1
