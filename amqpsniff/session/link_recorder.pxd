# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Codes, Integers, Vocabulary
from amqpsniff.decode.amqp10.columns cimport SideColumns
from amqpsniff.decode.rows cimport MessageRows
from amqpsniff.session.entities cimport Session
from amqpsniff.session.event_logs cimport LinkLog
from amqpsniff.session.fingerprint cimport Fingerprinter
from amqpsniff.session.linker cimport LinkRecord, Linker

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
    cdef int write(self, long long row, LinkRecord record) except? -1
    cdef int _code(self, long long connection_id) except? -1

cdef class Origin:
    cdef public long long connection_id
    cdef public long long number
    cdef public unsigned long long vhost
    cdef public Session session

cdef class LinkRecorder:
    cdef public LinkLog log
    cdef public Linker linker
    cdef public Fingerprinter fingerprinter
    cdef public LinkRecord record
    cdef public dict origins
    cdef public MessageRows rows
    cdef public set asking
    cdef public const unsigned char[::1] kinds
    cpdef int observe(self, MessageRows messages, long long row, list connections) except? -1
    cdef int _begin(self, MessageRows messages) except? -1
    cdef int _link(self, LinkColumns columns, long long row) except? -1
    cpdef object close(self, Session session)
    cpdef object end(self, Session session)
    cdef bint _make_record(self, MessageRows messages, long long row, list connections) except? -1
    cdef bint _make_publish(self, MessageRows messages, long long row, list connections) except? -1
    cdef bint _make_delivery(self, MessageRows messages, long long row, list connections) except? -1
    cdef bint _make_amqp10(self, MessageRows messages, long long row, list connections, bint publish) except? -1
    cdef int _fill_in_place(self, MessageRows messages, long long row, list connections) except? -1
    cdef unsigned long long _fill_in(self, MessageRows messages, long long row, list connections) except? 1
    cdef int _fill_in_address(self, MessageRows messages, long long row) except? -1
    cdef int _fill_in_request(self, MessageRows messages, long long row) except? -1
    cdef int _fill_in_queue(self, MessageRows messages, long long row) except? -1
    cdef Origin _origin(self, MessageRows messages, long long row, list connections)
    cdef unsigned long long _vhost(self, Session session) except? 1
