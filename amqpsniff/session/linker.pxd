# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Integers
from amqpsniff.session.link_records cimport LinkRecord
from amqpsniff.session.publish_index cimport PublishIndex
from amqpsniff.session.rpc cimport RpcRequest, RpcRequests

cdef class Linker:
    cdef public object memory
    cdef public bint unknown
    cdef public bint any_vhost
    cdef public unsigned long long last_vhost
    cdef public PublishIndex lines
    cdef public PublishIndex identities
    cdef public RpcRequests requests
    cdef public list vhosts
    cpdef int link(self, LinkRecord one) except? -1
    cdef int _enter(self, unsigned long long vhost) except? -1
    cdef int _publish(self, LinkRecord one) except? -1
    cdef int _remember(self, PublishIndex index, unsigned long long h, LinkRecord one, RpcRequest answer, RpcRequest asked) except? -1
    cdef int _deliver(self, LinkRecord one) except? -1
    cdef long long _line(self, PublishIndex index, unsigned long long h, unsigned long long vhost) except? -2
    cdef int _say_publish(self, LinkRecord one, PublishIndex lines, long long at, bint again, bint died) except? -1
    cdef RpcRequest _ask(self, LinkRecord one)
    cdef RpcRequest _waiting(self, unsigned long long h, unsigned long long vhost, bint delivered)
    cdef RpcRequest _reply(self, LinkRecord one)
    cdef int _bring(self, LinkRecord one, PublishIndex index, long long publish) except? -1
    cdef RpcRequest _unseen(self, LinkRecord one)
    cdef int _say_reply(self, LinkRecord one, RpcRequest call) except? -1

cdef class DistributedLinker:
    cdef public long long rows
    cdef public Linker linker
    cdef public LinkRecord one
    cdef public dict columns
    cdef public Integers task
    cdef public Integers message
    cdef public Integers published_packet_number
    cdef public Integers published_connection_id
    cdef public Integers published_ns
    cdef public Integers delivery_number
    cdef public Integers link_confidence
    cdef public Integers request_packet_number
    cdef public Integers request_connection_id
    cdef public Integers request_ns
    cdef public Integers reply_late
    cpdef int feed(self, dict columns, long long count) except? -1
    cdef int _begin(self, long long count) except? -1
    cdef int _close(self, long long connection, long long close_ns, bint over) except? -1
    cdef int _put(self, long long task, long long message) except? -1
