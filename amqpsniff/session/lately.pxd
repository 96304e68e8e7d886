from amqpsniff.session.counts cimport Delays
from amqpsniff.session.state cimport Channel, Session

cdef class Lately:
    cdef public Delays confirms, acks
    cdef int add(self, Session session, int outcome, long long time_ns) except? -1
    cdef int guess(self, Channel channel, long long tag, bint multiple, long long ts_ns) except? -1

cdef class Joined:
    cdef public long long before, published, answered
    cdef long long[::1] times
    cpdef int publish(self, long long ts_ns) except? -1
    cdef int confirm(self, Channel channel, long long tag, bint multiple, long long ts_ns, Lately lately) except? -1
