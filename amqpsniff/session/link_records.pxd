# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Integers
from amqpsniff.session.entities cimport Session
from amqpsniff.session.event_log cimport EventLog

cdef class LinkRecord:
    cdef public unsigned long long asks
    cdef public unsigned long long answers
    cdef public Session session
    cdef public long long flags
    cdef public long long connection
    cdef public long long channel
    cdef public long long packet_number
    cdef public long long sent_ns
    cdef public long long connection_id
    cdef public unsigned long long vhost
    cdef public unsigned long long line
    cdef public unsigned long long other
    cdef public unsigned long long routing_key
    cdef public unsigned long long queue
    cdef public unsigned long long correlation
    cdef public unsigned long long reply_to
    cdef public unsigned long long identity
    cdef public long long deadline
    cdef public bint published
    cdef public bint replies
    cdef public bint reply_late
    cdef public long long published_number
    cdef public long long published_id
    cdef public long long published_ns
    cdef public long long delivery_number
    cdef public long long request_number
    cdef public long long request_id
    cdef public long long request_ns
    cdef public int link_confidence
    cdef int clear(self) except? -1

cdef class LinkLog(EventLog):
    cdef public long long messages
    cdef public Integers asks
    cdef public Integers answers
    cdef public Integers message
    cdef public Integers flags
    cdef public Integers connection
    cdef public Integers channel
    cdef public Integers packet_number
    cdef public Integers sent_ns
    cdef public Integers connection_id
    cdef public Integers vhost
    cdef public Integers line
    cdef public Integers other
    cdef public Integers routing_key
    cdef public Integers queue
    cdef public Integers correlation
    cdef public Integers reply_to
    cdef public Integers deadline
    cdef public Integers identity
    cpdef int write(self, LinkRecord one) except? -1
    cpdef object close(self, long long connection, object close_ns, bint over)
