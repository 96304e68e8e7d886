# Written by `python -m tests.house.declarations`.
from amqpsniff.decode.amqp10.performatives cimport Performative
from amqpsniff.session.entities cimport Channel, Consumer

cdef long long ahead(long long limit, long long at) noexcept

cdef class Address:
    cdef public bint deprecated
    cdef public bint claims
    cdef public bint manages
    cdef public bint asked
    cdef public long long batch
    cdef public int exchange_code
    cdef public int routing_key_code
    cdef public int queue_code
    cdef public str text
    cdef public str exchange
    cdef public str routing_key
    cdef public str queue

cdef class Allowance:
    cdef public long long used
    cdef public long long limit
    cdef public long long least
    cdef public long long most
    cdef public long long granted
    cdef public long long waits
    cdef public long long waited_ns
    cdef public long long longest_ns
    cdef public long long over
    cdef public long long empty_ns
    cdef public long long refilled_ns
    cdef public long long waiting_ns
    cdef public long long last_ns
    cdef public long long empty_number
    cdef public long long longest_number
    cdef public long long since_ns
    cdef public long long former
    cdef public long long lowered_ns
    cdef int begin(self, long long used) except? -1
    cpdef long long left(self) except? -2
    cdef int allow(self, long long limit, long long number, long long ts_ns) except? -1
    cdef int run_out(self, long long number, long long ts_ns) except? -1
    cdef bint use(self, long long number, long long ts_ns) except? -1
    cdef bint _is_under_way(self, long long ts_ns) except? -1

cdef class Link(Consumer):
    cdef public int sender
    cdef public int attached
    cdef public int answered
    cdef public int first_side
    cdef public bint refused
    cdef public bint coordinator
    cdef public long long client_handle
    cdef public long long server_handle
    cdef public long long attached_number
    cdef public long long detached_number
    cdef public long long attached_ns
    cdef public long long answered_ns
    cdef public long long detached_ns
    cdef public long long limit_bytes
    cdef public long long weight
    cdef public long long deliveries
    cdef public long long bytes
    cdef public long long flows
    cdef public long long drains
    cdef public long long accepted
    cdef public long long rejected
    cdef public long long released
    cdef public long long modified
    cdef public long long presettled
    cdef public long long aborted
    cdef public long long largest
    cdef public long long promised
    cdef public long long available
    cdef public long long available_ns
    cdef public long long oldest_number
    cdef public long long first_number
    cdef public long long settled_ns
    cdef public long long first_ns
    cdef public long long last_ns
    cdef public str name
    cdef public str source
    cdef public str target
    cdef public str durable
    cdef public str expiry_policy
    cdef public str distribution_mode
    cdef public str filter
    cdef public str sender_mode
    cdef public str receiver_mode
    cdef public str closed_by
    cdef public str condition
    cdef public str description
    cdef public str default_outcome
    cdef public Channel channel
    cdef public Address address
    cdef public object key
    cdef public object asked
    cdef public object given
    cdef public object dynamic
    cdef public object suspended
    cdef public Allowance credit
    cpdef object learn(self, int side, dict arguments, object texts)
    cdef object _learn_details(self, int side, dict arguments, dict terminus, dict source, object texts)
    cdef bint deliver(self, long long number, long long ts_ns) except? -1
    cdef int flow(self, Performative found, int side, long long number, long long ts_ns) except? -1

cdef class Windows:
    cdef public long long client_size
    cdef public long long server_size
    cdef public bint stopped
    cdef public Allowance client
    cdef public Allowance server
    cdef int begin(self, int side, Performative found) except? -1
    cdef int _announce(self, int side, long long size) except? -1
    cdef bint flow(self, int side, Performative found, long long number, long long ts_ns) except? -1
    cdef bint transfer(self, int side, long long number, long long ts_ns) except? -1
