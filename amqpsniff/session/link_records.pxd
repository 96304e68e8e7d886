from amqpsniff.columns cimport Integers
from amqpsniff.session.event_log cimport EventLog
from amqpsniff.session.entities cimport Session

cdef class LinkRecord:
    cdef public Session session
    cdef public long long flags, connection, channel, packet_number, sent_ns, connection_id
    cdef public unsigned long long vhost, line, other, routing_key, queue, correlation, reply_to
    cdef public unsigned long long identity, asks, answers
    cdef public long long deadline
    cdef public bint published, replies, reply_late
    cdef public long long published_number, published_id, published_ns, delivery_number
    cdef public long long request_number, request_id, request_ns
    cdef public int link_confidence
    cdef int clear(self) except? -1

cdef long long _signed(unsigned long long number) except? -1

cdef class LinkLog(EventLog):
    cdef public long long messages
    cdef public Integers message, flags, connection, channel, packet_number, sent_ns, connection_id
    cdef public Integers vhost, line, other, routing_key, queue, correlation, reply_to, deadline
    cdef public Integers identity, asks, answers
    cpdef int write(self, LinkRecord one) except? -1
    cpdef close(self, long long connection, object close_ns, bint over)
