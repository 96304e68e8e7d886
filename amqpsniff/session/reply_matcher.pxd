from amqpsniff.decode.rows cimport FrameRows
from amqpsniff.session.method_frame cimport Request
from amqpsniff.session.settling cimport Settler
from amqpsniff.session.entities cimport ChannelSlot, Session

cdef class Answers:
    cdef public str name
    cdef public Answers before
    cdef public long long count, took_ns, longest_ns, number, ts_ns

cdef class Waited:
    cdef public Answers latest
    cdef public long long count, waited_ns, until_ns, number, ts_ns

cdef long long note_answer(dict memory, str name, Request request, long long now) except? -1

cdef class ReplyMatcher:
    cdef public long long most
    cdef public Settler settler
    cdef const unsigned char[::1] closes, replies
    cdef int count
    cdef list names
    cdef public dict histograms
    cdef public object scope
    cdef int ask(self, Session session, ChannelSlot slot, FrameRows frames, long long row, int method, int side, object subject) except? -1
    cdef bint _came(
        self, Session session, ChannelSlot slot, Request request, long long before
    ) except? -1
    cdef int _answer(
        self, Session session, ChannelSlot slot, Request request, long long number, long long ts_ns
    ) except? -1
    cdef Request reply(self, Session session, ChannelSlot slot, FrameRows frames, long long row, int method, int side)
