from amqpsniff.session.counts cimport LatencyHistogram
from amqpsniff.session.entities cimport Channel, Session

cdef class RecentLatencies:
    cdef public LatencyHistogram confirms, acks
    cdef int add(self, Session session, int outcome, long long time_ns) except? -1
    cdef int estimate(self, Channel channel, long long tag, bint multiple, long long ts_ns) except? -1

cdef class MidstreamConfirms:
    cdef public long long before, published, answered
    cdef long long[::1] times
    cpdef int publish(self, long long ts_ns) except? -1
    cdef int confirm(self, Channel channel, long long tag, bint multiple, long long ts_ns, RecentLatencies latencies) except? -1
