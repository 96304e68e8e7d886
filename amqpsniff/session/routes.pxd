# Written by `python -m tests.house.declarations`.
cimport cython
from amqpsniff.decode.rows cimport MessageRows, Vocabularies

@cython.freelist(64)
cdef class Route:
    cdef public long long count
    cdef public long long first_number
    cdef public long long last_number
    cdef public long long first_ns
    cdef public long long last_ns
    cdef public long long step
    cdef public int step_bits
    cdef public bint has_steps
    cdef public bint mandatory
    cdef public tuple names
    cdef public list later
    cdef public object origin
    cdef public tuple roles
    cdef int add(self, long long number, long long ts_ns) except? -1
    cdef int _begin_step(self, long long ts_ns) except? -1

cdef class Routes:
    cdef public bint full
    cdef public bint consumed
    cdef public int count
    cdef public long long recent_exchange
    cdef public long long recent_key
    cdef public long long delivered_exchange
    cdef public long long delivered_key
    cdef public long long delivered_tag
    cdef public long long delivered_channel
    cdef public long long delivered_incarnation
    cdef public list of_all
    cdef public dict published
    cdef public dict delivered
    cdef public Vocabularies words
    cdef public tuple consumer
    cdef public dict consumer_routes
    cdef public Route recent_published
    cdef public Route recent_delivered
    cdef int publish(self, MessageRows messages, long long row) except? -1
    cdef int deliver(self, MessageRows messages, long long row, long long incarnation) except? -1
    cdef int mark(self, object role, bint published) except? -1
    cpdef int forget(self) except? -1
    cdef int _begin(self, Vocabularies words) except? -1
    cdef int _come_to(self, long long tag, long long channel, long long incarnation) except? -1
    cdef Route _deliveries(self, long long exchange, long long key)
    cdef Route _known(self, dict routes, long long exchange, long long key, long long known)
