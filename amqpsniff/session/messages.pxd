from amqpsniff.decode.rows cimport FrameRows
from amqpsniff.session.attaching cimport Attacher
from amqpsniff.session.pairing cimport Pairing
from amqpsniff.session.state cimport Channel, Consumer, Entry, Lane, Session

cdef class MessageMethods(Attacher):
    cdef public Pairing pairing
    cdef Consumer source(self, Lane lane, FrameRows frames, long long row, int kind)
    cdef object carry(self, Session session, Lane lane, FrameRows frames, long long row, int kind)
    cdef bint _publish(self, Session session, Channel channel, Entry entry, FrameRows frames, long long row) except? -1
    cdef int answer(self, Session session, Lane lane, FrameRows frames, long long row, int kind, int side) except? -1
    cdef int _doubt(self, Channel channel, int kind, int side, long long tag) except? -1
    cdef object capture_of(self, FrameRows frames, long long row)
    cdef Channel proved_channel(self, Session session, Lane lane, FrameRows frames, long long row)
