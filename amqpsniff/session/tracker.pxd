from amqpsniff.decode.rows cimport FrameRows, MessageRows
from amqpsniff.decode.state cimport Connection
from amqpsniff.session.event cimport Event, Request
from amqpsniff.session.messages cimport MessageMethods
from amqpsniff.session.state cimport Channel, Lane, Session

cdef class Tracker(MessageMethods):
    cdef public list channels, connections
    cdef const unsigned char[::1] farewells
    cdef public list channel_handlers, connection_handlers
    cdef public bint only_replies, only_moves, settles, wants_connections, wants_channels
    cdef public long long sessions, lanes, most_lanes
    cdef public set lost_before
    cdef const unsigned char[::1] followed, classes, senders, content
    cdef const unsigned char[::1] synchronous, answers, partings, discarded
    cpdef long long feed(self, FrameRows frames, long long first_frame, MessageRows messages, long long first_message, list peers, list losses, list captures, long long until=*) except? -1
    cdef int _method(self, FrameRows frames, long long row, int method, list peers) except? -1
    cdef object _follow(self, Session session, Lane lane, FrameRows frames, long long row, int kind, int side)
    cdef Session _begin(self, Connection peer, object capture)
    cdef Lane _lane(self, Session session, int number)
    cdef int _other(self, Session session, Lane lane, FrameRows frames, long long row, int method, int side) except? -1
    cdef int _move(self, Session session, Lane lane, int method, int side) except? -1
    cdef object _on_connection(self, Session session, FrameRows frames, long long row, int method, int side, Request request)
    cdef object _on_channel(self, Session session, Lane lane, FrameRows frames, long long row, int method, int side, Request request)
    cdef int _lose(self, Connection peer, int direction) except? -1
    cdef int _lose_refusals(self, Session session) except? -1
    cpdef int end(self, Connection peer, object capture) except? -1
    cpdef int add_channel(self, Channel channel) except? -1
