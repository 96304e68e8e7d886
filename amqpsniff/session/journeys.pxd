cimport cython

from amqpsniff.decode.rows cimport MessageRows
from amqpsniff.decode.state cimport Connection
from amqpsniff.session.calls cimport Call, Calls
from amqpsniff.session.likeness cimport Likeness
from amqpsniff.session.links cimport Links
from amqpsniff.session.state cimport Session

# Publishes hang on one another in long lines: freed one by one, not one inside the other.
@cython.trashcan(True)
cdef class Publish:
    cdef public object key
    cdef public long long packet_number, ts_ns, place, deliveries
    cdef public str connection_id
    cdef public Publish later, younger
    cdef public Call asks, answers
    cdef public bint identified

cdef class Line:
    cdef public Publish first, last, reached
    cdef public unsigned long long queue
    cdef public dict more
    cdef Publish position(self, unsigned long long queue)

cdef class Place:
    cdef public Session session
    cdef public str connection_id
    cdef public unsigned long long vhost

cdef class Journeys:
    cdef public object memory
    cdef public long long most, age_ns, count, positions, candidates
    cdef public bint advanced, unknown
    cdef public Likeness likeness
    cdef public Calls calls
    cdef public dict lines, places, _hits
    cdef public list vhosts
    cdef public MessageRows rows
    cdef public Publish oldest, youngest
    cdef const unsigned char[::1] kinds
    cpdef int feed(self, MessageRows messages, long long first, list peers) except? -1
    cpdef object end(self, Connection peer)
    cdef int _publish(self, MessageRows messages, Links found, long long row, list peers) except? -1
    cdef int _remember(self, Publish publish) except? -1
    cdef bint _is_old(self, Publish publish, long long ts_ns) except? -1
    cdef int _forget(self, Line kept) except? -1
    cdef int _deliver(self, MessageRows messages, Links found, long long row, list peers) except? -1
    cdef Line _line(self, unsigned long long h, Place place)
    cdef unsigned long long _queue(self, MessageRows messages, long long row, Place place) except? 1
    cdef Publish _meant(self, Line line, unsigned long long queue, bint again)
    cdef Publish _again(self, Line line, unsigned long long queue, Publish reached)
    cdef int _put(self, Line line, unsigned long long queue, Publish publish) except? -1
    cdef int _link(self, MessageRows messages, Links found, long long row, Publish publish, bint again) except? -1
    cdef Call _ask(self, MessageRows messages, long long row, Place place)
    cdef unsigned long long _on_channel(self, MessageRows messages, long long row, Place place) except? 1
    cdef unsigned long long _correlated(self, MessageRows messages, long long row, unsigned long long h) except? 1
    cdef Call _reply(self, MessageRows messages, Links found, long long row)
    cdef int _bring(self, MessageRows messages, Links found, long long row, Place place, Publish publish) except? -1
    cdef Call _unseen(self, MessageRows messages, long long row, Place place)
    cdef int _say_reply(self, MessageRows messages, Links found, long long row, Call call) except? -1
    cdef Place _place(self, MessageRows messages, long long row, list peers)
    cdef unsigned long long _vhost(self, Session session) except? 1
    cdef int _hit(self, str name) except? -1
