# Written by `python -m tests.house.declarations`.
cimport cython
from amqpsniff.decode.rows cimport FrameRows, MessageRows
from amqpsniff.decode.state cimport Connection
from amqpsniff.findings.log cimport FindingLog
from amqpsniff.session.entities cimport Channel, PendingMessage, Session
from amqpsniff.session.method_frame cimport MethodFrame, Request
from amqpsniff.session.recent_publishes cimport RecentPublishes
from amqpsniff.session.rules.context cimport RuleContext
from amqpsniff.session.tracker cimport Tracker

@cython.final
cdef class Emitter:
    cdef public Tracker tracker
    cdef public FindingLog log
    cdef public dict shared
    cdef public dict rules
    cdef public dict amqp10_rules
    cdef public list of_methods
    cdef public list gated
    cdef public dict known_bits
    cdef public list names
    cdef public const unsigned char[::1] kinds
    cdef public RecentPublishes recent_publishes
    cdef public list routes_known
    cdef public object exchange_words
    cdef public dict exchanges
    cdef public long long[::1] exchange_counts
    cpdef object emit(self, str event, Channel channel, object number, object ts_ns, dict facts, int bits=*)
    cpdef object emit_connection(self, str event, Session session, object number, object ts_ns, dict facts, int bits=*)
    cdef RuleContext _context(self, Session session, Channel channel, object number, object ts_ns, MethodFrame frame, Request request, dict facts)
    cdef int emit_misplaced(self, str event, Session session, Channel channel, FrameRows frames, long long row) except? -1
    cdef int emit_method(self, Session session, Channel channel, MethodFrame frame, Request request) except? -1
    cdef int _method_bits(self, Session session, MethodFrame frame) except? -1
    cdef int on_channel_end(self, Channel channel) except? -1
    cdef int on_connection_end(self, Session session) except? -1
    cdef int on_capture_end(self, object number, object ts_ns) except? -1
    cdef int on_loss(self, Session session, int side) except? -1
    cdef int on_frame(self, Connection connection, FrameRows frames, long long row) except? -1
    cdef int _note_sent(self, Session session, FrameRows frames, long long row) except? -1
    cdef int on_message(self, Channel channel, PendingMessage entry, MessageRows messages, long long row, long long size) except? -1
    cdef object _emit_message(self, str event, Channel channel, PendingMessage entry, MessageRows messages, long long row)
    cdef int _see_note(self, Channel channel, PendingMessage entry, MessageRows messages, long long row, bint publish) except? -1
    cdef int _count_route(self, Channel channel, PendingMessage entry, MessageRows messages, long long row, bint publish) except? -1
    cdef int _see_size(self, Channel channel, PendingMessage entry, MessageRows messages, long long row, long long size) except? -1
    cdef int _note_bulky(self, Channel channel, MessageRows messages, long long row, long long size) except? -1
    cdef int _see_behind(self, Channel channel, long long number, long long ts_ns) except? -1
    cdef int _queued(self, Channel channel, MessageRows messages, long long row) except? -1
    cdef int _check_publish(self, Channel channel, PendingMessage entry, MessageRows messages, long long row) except? -1
    cdef int _count_exchange(self, MessageRows messages, long long row, bint publish) except? -1
    cdef dict _sum_exchanges(self)
