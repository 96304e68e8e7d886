# Written by `python -m tests.house.declarations`.
from amqpsniff.session.entities cimport Session

cdef class LinkRecord:
    cdef public Session session
    cdef public long long flags
    cdef public long long connection
    cdef public long long channel
    cdef public long long packet_number
    cdef public long long sent_ns
    cdef public long long connection_id
    cdef public unsigned long long vhost
    cdef public unsigned long long line
    cdef public unsigned long long other
    cdef public unsigned long long routing_key
    cdef public unsigned long long queue
    cdef public unsigned long long correlation
    cdef public unsigned long long reply_to
    cdef public long long deadline
    cdef public unsigned long long identity
    cdef public unsigned long long asks
    cdef public unsigned long long answers
    cdef public bint published
    cdef public bint replies
    cdef public bint reply_late
    cdef public long long published_number
    cdef public long long published_id
    cdef public long long published_ns
    cdef public long long delivery_number
    cdef public long long request_number
    cdef public long long request_id
    cdef public long long request_ns
    cdef public int link_confidence
    cdef int clear(self) except? -1

cdef class PublishIndex:
    cdef public object memory
    cdef public long long most
    cdef public long long age_ns
    cdef public long long size
    cdef public long long used
    cdef public long long oldest
    cdef public long long next_id
    cdef public long long positions
    cdef public long long candidates
    cdef public bint is_first_hop
    cdef public unsigned long long[::1] keys
    cdef public unsigned long long[::1] queues
    cdef public long long[::1] packet_numbers
    cdef public long long[::1] times
    cdef public long long[::1] connection_ids
    cdef public long long[::1] ranks
    cdef public long long[::1] delivered
    cdef public long long[::1] next_equal
    cdef public unsigned char[::1] identified
    cdef public unsigned char[::1] doubted
    cdef public long long[::1] first
    cdef public long long[::1] last
    cdef public long long[::1] reached
    cdef public int[::1] slots
    cdef public list requests_made
    cdef public list requests_answered
    cdef public list free_lines
    cdef public dict more_queues
    cdef public dict hits
    cdef long long at(self, long long publish) noexcept
    cpdef long long remember(self, unsigned long long key, long long packet_number, long long ts_ns, long long connection_id, bint identified) except? -2
    cdef bint _is_old(self, long long ts_ns) except? -1
    cdef int _forget(self) except? -1
    cdef int _grow(self) except? -1
    cdef int _copy(self, object source, object target, long long size) except? -1
    cpdef long long get(self, unsigned long long key) except? -2
    cdef long long _slot(self, unsigned long long key) except? -2
    cdef int _free_slot(self, long long slot) except? -1
    cdef int _new_line(self, long long publish) except? -1
    cpdef long long match(self, long long line, unsigned long long queue, bint again) except? -2
    cdef long long _match_redelivery(self, long long line, unsigned long long queue, long long reached) except? -2
    cdef long long _position(self, long long line, unsigned long long queue) except? -2
    cdef int _set_position(self, long long line, unsigned long long queue, long long publish) except? -1
    cdef int _limit_reached(self, str name) except? -1

cdef class Requester:
    cdef public Session session
    cdef public object close_ns
    cdef bint closed_before(self, long long ts_ns) except? -1

cdef class RpcRequest:
    cdef public long long packet_number
    cdef public long long ts_ns
    cdef public long long deadline
    cdef public long long connection_id
    cdef public bint replied
    cdef public bint delivered
    cdef public bint forgotten
    cdef public Requester requester
    cdef public list keys

cdef class RequestQueue:
    cdef public Py_ssize_t start
    cdef public Py_ssize_t unreplied
    cdef public Py_ssize_t undelivered
    cdef public list requests
    cdef Py_ssize_t last(self) except? -2
    cdef bint trim(self) except? -1

cdef class RpcRequests:
    cdef public long long most
    cdef public long long age_ns
    cdef public long long hits
    cdef public object order
    cdef public dict waiting
    cdef public dict requesters
    cdef Requester requester(self, long long connection, Session session)
    cpdef object close(self, long long connection, object close_ns)
    cpdef object end(self, long long connection, object close_ns)
    cpdef int add(self, RpcRequest request, object key) except? -1
    cpdef int wait(self, RpcRequest request, object key) except? -1
    cpdef RpcRequest find(self, object key, bint delivered)
    cdef bint is_late(self, RpcRequest request, long long ts_ns) except? -1
    cdef bint _is_old(self, RpcRequest request, long long ts_ns) except? -1
    cdef int _forget(self) except? -1

cdef class Linker:
    cdef public object memory
    cdef public bint has_unknown_vhost
    cdef public bint any_vhost
    cdef public unsigned long long last_vhost
    cdef public PublishIndex lines
    cdef public PublishIndex identities
    cdef public RpcRequests requests
    cdef public list vhosts
    cpdef int link(self, LinkRecord record) except? -1
    cdef int _note_vhost(self, unsigned long long vhost) except? -1
    cdef int _publish(self, LinkRecord record) except? -1
    cdef int _remember_publish(self, PublishIndex index, unsigned long long h, LinkRecord record, RpcRequest answered, RpcRequest own_request) except? -1
    cdef int _deliver(self, LinkRecord record) except? -1
    cdef long long _find_line(self, PublishIndex index, unsigned long long h, unsigned long long vhost) except? -2
    cdef int _write_publish(self, LinkRecord record, PublishIndex lines, long long at, bint again, bint died) except? -1
    cdef RpcRequest _remember_request(self, LinkRecord record)
    cdef RpcRequest _find_request(self, unsigned long long h, unsigned long long vhost, bint delivered)
    cdef RpcRequest _request_answered(self, LinkRecord record)
    cdef int _link_reply(self, LinkRecord record, PublishIndex index, long long publish) except? -1
    cdef RpcRequest _request_of_unseen(self, LinkRecord record)
    cdef int _write_request(self, LinkRecord record, RpcRequest request) except? -1
