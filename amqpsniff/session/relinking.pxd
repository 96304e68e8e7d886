from amqpsniff.columns cimport Integers
from amqpsniff.session.linkable cimport Linkable
from amqpsniff.session.linker cimport Linker

cdef unsigned long long _unsigned(long long number) except? 1

cdef class Relinking:
    cdef public Linker linker
    cdef public Linkable one
    cdef public dict columns
    cdef public long long rows
    cdef public Integers task, message, published_packet_number, published_connection_id
    cdef public Integers published_ns, delivery_number, link_confidence
    cdef public Integers request_packet_number, request_connection_id, request_ns, reply_late
    cpdef int feed(self, dict columns, long long count) except? -1
    cdef int _begin(self, long long count) except? -1
    cdef int _close(self, long long connection, long long close_ns, bint over) except? -1
    cdef int _put(self, long long task, long long message) except? -1
