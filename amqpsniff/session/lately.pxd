from amqpsniff.session.counts cimport Delays
from amqpsniff.session.state cimport Session

cdef class Lately:
    cdef public Delays confirms, acks
    cdef int add(self, Session session, int outcome, long long time_ns) except? -1
