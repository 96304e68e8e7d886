from amqpsniff.decode.rows cimport MessageRows
from amqpsniff.decode.state cimport Connection
from amqpsniff.session.calls cimport Call, Calls
from amqpsniff.session.likeness cimport Likeness
from amqpsniff.session.lines cimport Line, Lines, Publish
from amqpsniff.session.links cimport Links
from amqpsniff.session.state cimport Session

cdef class Place:
    cdef public Session session
    cdef public str connection_id
    cdef public unsigned long long vhost

cdef class Journeys:
    cdef public object memory
    cdef public bint unknown
    cdef public Lines lines
    cdef public Likeness likeness
    cdef public Calls calls
    cdef public dict places
    cdef public list vhosts
    cdef public MessageRows rows
    cdef const unsigned char[::1] kinds
    cpdef int feed(self, MessageRows messages, long long first, list peers) except? -1
    cpdef object end(self, Connection peer)
    cdef int _publish(self, MessageRows messages, Links found, long long row, list peers) except? -1
    cdef int _deliver(self, MessageRows messages, Links found, long long row, list peers) except? -1
    cdef Line _line(self, unsigned long long h, Place place)
    cdef unsigned long long _queue(self, MessageRows messages, long long row, Place place) except? 1
    cdef int _link(self, MessageRows messages, Links found, long long row, Publish publish, bint again) except? -1
    cdef Call _ask(self, MessageRows messages, long long row, Place place)
    cdef unsigned long long _on_channel(self, MessageRows messages, long long row, Place place) except? 1
    cdef unsigned long long _correlated(self, MessageRows messages, long long row, unsigned long long h) except? 1
    cdef Call _waiting(self, unsigned long long h, Place place, bint delivered)
    cdef Call _reply(self, MessageRows messages, Links found, long long row, Place place)
    cdef int _bring(self, MessageRows messages, Links found, long long row, Place place, Publish publish) except? -1
    cdef Call _unseen(self, MessageRows messages, long long row, Place place)
    cdef int _say_reply(self, MessageRows messages, Links found, long long row, Call call) except? -1
    cdef Place _place(self, MessageRows messages, long long row, list peers)
    cdef unsigned long long _vhost(self, Session session) except? 1
