# Written by `python -m tests.house.declarations`.
from amqpsniff.decode.rows cimport MessageRows
from amqpsniff.session.entities cimport Session
from amqpsniff.session.fingerprint cimport Fingerprinter
from amqpsniff.session.link_columns cimport LinkColumns
from amqpsniff.session.link_records cimport LinkRecord
from amqpsniff.session.linker cimport Linker

cdef class Origin:
    cdef public long long connection_id
    cdef public long long number
    cdef public unsigned long long vhost
    cdef public Session session

cdef class LinkRecorder:
    cdef public object written
    cdef public Linker linker
    cdef public Fingerprinter fingerprinter
    cdef public LinkRecord one
    cdef public dict origins
    cdef public MessageRows rows
    cdef public set asking
    cdef public const unsigned char[::1] kinds
    cpdef int observe(self, MessageRows messages, long long row, list connections) except? -1
    cdef int _begin(self, MessageRows messages) except? -1
    cdef int _link(self, LinkColumns found, long long row) except? -1
    cpdef object close(self, Session session)
    cpdef object end(self, Session session)
    cdef bint _make(self, MessageRows messages, long long row, list connections) except? -1
    cdef bint _publish(self, MessageRows messages, long long row, list connections) except? -1
    cdef bint _deliver(self, MessageRows messages, long long row, list connections) except? -1
    cdef bint _make_amqp10(self, MessageRows messages, long long row, list connections, bint publish) except? -1
    cdef int _place(self, MessageRows messages, long long row, list connections) except? -1
    cdef unsigned long long _make_any(self, MessageRows messages, long long row, list connections) except? 1
    cdef int _address(self, MessageRows messages, long long row) except? -1
    cdef int _ask(self, MessageRows messages, long long row) except? -1
    cdef int _queue(self, MessageRows messages, long long row) except? -1
    cdef Origin _origin(self, MessageRows messages, long long row, list connections)
    cdef unsigned long long _vhost(self, Session session) except? 1
