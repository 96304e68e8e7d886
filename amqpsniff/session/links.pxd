from amqpsniff.decode.amqp10.performatives cimport Performative
from amqpsniff.session.entities cimport Channel, Consumer

cdef long long ahead(long long limit, long long at) noexcept

cdef class Address:
    cdef public str text, exchange, routing_key, queue
    cdef public bint deprecated, claims
    cdef long long batch
    cdef int exchange_code, routing_key_code, queue_code

cdef class Allowance:
    cdef public long long used, limit, least, most, granted, waits, waited_ns, longest_ns, over
    cdef public long long empty_ns, refilled_ns, waiting_ns, last_ns, empty_number, longest_number
    cdef public long long since_ns, former, lowered_ns
    cdef int begin(self, long long used) except? -1
    cpdef long long left(self) except? -2
    cdef int allow(self, long long limit, long long number, long long ts_ns) except? -1
    cdef int run_out(self, long long number, long long ts_ns) except? -1
    cdef bint use(self, long long number, long long ts_ns) except? -1
    cdef bint _is_under_way(self, long long ts_ns) except? -1

cdef class Link(Consumer):
    cdef public str name, source, target, durable, expiry_policy, distribution_mode, filter
    cdef public str sender_mode, receiver_mode, closed_by, condition, description, default_outcome
    cdef public int sender, attached, answered, first_side
    cdef public Channel channel
    cdef public Address address
    cdef public object key, asked, given, dynamic, suspended
    cdef public bint refused, coordinator
    cdef public Allowance credit
    cdef public long long client_handle, server_handle, attached_number, detached_number
    cdef public long long attached_ns, answered_ns, detached_ns, limit_bytes, weight
    cdef public long long deliveries, bytes, flows, drains, accepted, rejected, released, modified
    cdef public long long presettled, aborted, largest, promised
    cdef public long long available, available_ns, oldest_number, first_number, settled_ns, first_ns, last_ns
    cpdef learn(self, int side, dict arguments, texts)
    cdef _learn_details(self, int side, dict arguments, dict terminus, dict source, texts)
    cdef bint deliver(self, long long number, long long ts_ns) except? -1
    cdef int flow(self, Performative found, int side, long long number, long long ts_ns) except? -1

cdef class Windows:
    cdef public Allowance client, server
    cdef public long long client_size, server_size
    cdef public bint stopped
    cdef int begin(self, int side, Performative found) except? -1
    cdef int _announce(self, int side, long long size) except? -1
    cdef bint flow(self, int side, Performative found, long long number, long long ts_ns) except? -1
    cdef bint transfer(self, int side, long long number, long long ts_ns) except? -1
