from amqpsniff.decode.rows cimport FrameRows, MessageRows
from amqpsniff.decode.state cimport Connection
from amqpsniff.session.event cimport Event, Request
from amqpsniff.session.journeys cimport Journeys
from amqpsniff.session.repeats cimport Repeats
from amqpsniff.session.sightings cimport Sightings
from amqpsniff.session.state cimport Channel, Entry, Session
from amqpsniff.session.witness cimport Witness

cdef class Watcher:
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
