from amqpsniff.columns cimport Integers
from amqpsniff.session.linkable cimport Linkable
from amqpsniff.session.witness cimport Witness

cdef long long _signed(unsigned long long number) except? -1

cdef class Linkables(Witness):
    cdef public long long messages
    cdef public Integers message, flags, connection, channel, packet_number, sent_ns, connection_id
    cdef public Integers vhost, line, other, routing_key, queue, correlation, reply_to, deadline
    cpdef int write(self, Linkable one) except? -1
    cpdef close(self, long long connection, object close_ns, bint over)
