# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Codes, Integers, Vocabulary
from amqpsniff.decode.amqp10.columns cimport SideColumns

cdef class LinkColumns(SideColumns):
    cdef public Vocabulary connections
    cdef public dict codes
    cdef public Codes link_confidence
    cdef public Codes published_connection_id
    cdef public Codes request_connection_id
    cdef public Codes reply_late
    cdef public Integers published_packet_number
    cdef public Integers published_ns
    cdef public Integers delivery_number
    cdef public Integers request_packet_number
    cdef public Integers request_ns
    cdef int published(self, long long row, long long number, long long connection_id, long long ns, int link_confidence, long long delivery_number) except? -1
    cdef int replies(self, long long row, long long number, long long connection_id, long long ns, bint reply_late) except? -1
    cdef int _code(self, long long connection_id) except? -1
