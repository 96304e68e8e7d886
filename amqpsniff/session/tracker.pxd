from amqpsniff.decode.octets cimport ByteReader
from amqpsniff.decode.rows cimport FrameRows, MessageRows, Vocabularies
from amqpsniff.decode.state cimport Connection
from amqpsniff.session.event cimport Event, Request, Said
from amqpsniff.session.journeys cimport Journeys
from amqpsniff.session.pairing cimport Pairing
from amqpsniff.session.repeats cimport Repeats
from amqpsniff.session.settling cimport Settler
from amqpsniff.session.sightings cimport Sightings
from amqpsniff.session.state cimport Channel, Consumer, Entry, Lane, Session
from amqpsniff.session.witness cimport Witness

cdef class Tracker:
    cdef public object log
    cdef public bint judges
    cdef public dict memory, rules
    cdef public list names
    cdef const unsigned char[::1] kinds
    cdef public long long large, stalled
    cdef public Repeats repeats
    cdef public object words
    cdef public list captures
    cdef public Sightings sightings
    cdef public Journeys journeys
    cdef public object moments
    cdef public bint meeting
    cdef public long long now_row
    cdef public FrameRows frames
    cdef public dict exchanges
    cdef long long[::1] tallies
    cdef int hear(self, FrameRows frames, long long row, list peers) except? -1
    cdef int _note_sent(self, Session session, FrameRows frames, long long row) except? -1
    cpdef tell(self, str occasion, Channel channel, object number, object ts_ns, dict facts)
    cpdef tell_of(self, str occasion, Session session, object number, object ts_ns, dict facts)
    cdef tell_method(self, Session session, Channel channel, Event event, Request request)
    cpdef Sightings witness(self, Session session)
    cdef int date(self, Witness witness, Connection peer) except? -1
    cpdef tuple now(self)
    cpdef see_shut(self, Session session)
    cdef int see_closed(self, Channel channel) except? -1
    cdef int see_over(self, Session session) except? -1
    cdef int misplaced(self, FrameRows frames, long long row, list peers, str occasion) except? -1
    cdef int unopened(self, FrameRows frames, long long row, Channel channel) except? -1
    cdef dict _describe(self, FrameRows frames, long long row)
    cdef int weigh(self, Channel channel, Entry entry, MessageRows messages, long long row, long long size) except? -1
    cdef int _queued(self, Channel channel, MessageRows messages, long long row) except? -1
    cdef int _look(self, Channel channel, Entry entry, MessageRows messages, long long row) except? -1
    cdef int _look_at_headers(self, Channel channel, Entry entry, MessageRows messages, long long row) except? -1
    cdef int _tally(self, MessageRows messages, long long row, bint publish, long long size) except? -1
    cdef public object limits
    cdef public Settler settler
    cdef public ByteReader reader
    cdef public list opened
    cdef public long long consumers_known, facts_bytes
    cdef dict said
    cdef long long most_fact, most_facts
    cdef Vocabularies batch_words
    cdef long long batch
    cdef public long long first_opened
    cdef public dict late
    cpdef Said remember(self, str name, bytes octets, bint whole)
    cdef int forget(self, Said said) except? -1
    cdef int open(self, object known) except? -1
    cdef int meet(self, MessageRows messages, long long row, list peers) except? -1
    cdef int attach(self, MessageRows messages, long long row) except? -1
    cdef int _name_queue(self, MessageRows messages, long long row, Consumer consumer) except? -1
    cdef long long batch_of(self, Vocabularies words) except? -1
    cdef int _put_late(self) except? -1
    cdef public Pairing pairing
    cdef Consumer source(self, Lane lane, FrameRows frames, long long row, int kind)
    cdef object carry(self, Session session, Lane lane, FrameRows frames, long long row, int kind)
    cdef bint _publish(self, Session session, Channel channel, Entry entry, FrameRows frames, long long row) except? -1
    cdef int answer(self, Session session, Lane lane, FrameRows frames, long long row, int kind, int side) except? -1
    cdef int _doubt(self, Channel channel, int kind, int side, long long tag) except? -1
    cdef object capture_of(self, FrameRows frames, long long row)
    cdef Channel proved_channel(self, Session session, Lane lane, FrameRows frames, long long row)
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
