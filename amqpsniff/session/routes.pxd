from amqpsniff.decode.rows cimport MessageRows, Vocabularies

cdef class Route:
    cdef public long long count, first_number, last_number, first_ns, last_ns, step
    cdef int step_bits
    cdef bint has_steps
    cdef list later
    cdef public object told
    cdef public tuple roles
    cdef public bint mandatory
    cdef int add(self, long long number, long long ts_ns) except? -1
    cdef int _begin_step(self, long long ts_ns) except? -1

cdef class Routes:
    cdef public list of_all
    cdef public dict published, delivered
    cdef public bint full, consumed
    cdef Vocabularies words
    cdef int count
    cdef dict consumer_routes
    cdef tuple consumer
    cdef Route recent_published, recent_delivered
    cdef long long recent_exchange, recent_key
    cdef long long delivered_exchange, delivered_key, delivered_tag, delivered_channel
    cdef long long delivered_incarnation
    cdef int publish(self, MessageRows messages, long long row) except? -1
    cdef int deliver(self, MessageRows messages, long long row, long long incarnation) except? -1
    cdef int mark(self, object role, bint published) except? -1
    cpdef int forget(self) except? -1
    cdef int _begin(self, Vocabularies words) except? -1
    cdef int _come_to(self, long long tag, long long channel, long long incarnation) except? -1
    cdef Route _deliveries(self, long long exchange, long long key)
    cdef Route _known(self, dict routes, long long exchange, long long key, long long known)
