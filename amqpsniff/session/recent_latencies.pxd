# Written by `python -m tests.house.declarations`.
from amqpsniff.session.counts cimport LatencyHistogram
from amqpsniff.session.entities cimport Session

cdef class RecentLatencies:
    cdef public LatencyHistogram confirms
    cdef public LatencyHistogram acks
    cdef int add(self, Session session, int outcome, long long time_ns) except? -1
