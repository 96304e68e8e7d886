from amqpsniff.decode.rows cimport FrameRows
from amqpsniff.session.event cimport Request
from amqpsniff.session.settling cimport Settler
from amqpsniff.session.state cimport Lane, Session

cdef class Pairing:
    cdef public long long most
    cdef public Settler settler
    cdef const unsigned char[::1] closes, replies
    cdef int count
    cdef list names
    cdef public dict spreads
    cdef int ask(self, Session session, Lane lane, FrameRows frames, long long row, int method, int side, object subject) except? -1
    cdef Request reply(self, Lane lane, FrameRows frames, long long row, int method, int side)
