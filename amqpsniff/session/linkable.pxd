from amqpsniff.session.state cimport Session

cdef class Linkable:
    cdef public Session session
    cdef public long long flags, connection, channel, packet_number, sent_ns, connection_id
    cdef public unsigned long long vhost, line, other, routing_key, queue, correlation, reply_to
    cdef public long long deadline
    cdef public bint published, replies, reply_late
    cdef public long long published_number, published_id, published_ns, delivery_number
    cdef public long long request_number, request_id, request_ns
    cdef public int link_confidence
    cdef int clear(self) except? -1
