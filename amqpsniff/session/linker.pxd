from amqpsniff.session.rpc cimport RpcRequest, RpcRequests
from amqpsniff.session.link_records cimport LinkRecord
from amqpsniff.session.publish_index cimport PublishIndex
from amqpsniff.columns cimport Integers

cdef unsigned long long _on_channel(LinkRecord one) except? 1

cdef class Linker:
    cdef public object memory
    cdef public PublishIndex lines, identities
    cdef public RpcRequests requests
    cdef public list vhosts
    cdef public bint unknown, any_vhost
    cdef public unsigned long long last_vhost
    cpdef int link(self, LinkRecord one) except? -1
    cdef int _enter(self, unsigned long long vhost) except? -1
    cdef int _publish(self, LinkRecord one) except? -1
    cdef int _deliver(self, LinkRecord one) except? -1
    cdef int _remember(self, PublishIndex index, unsigned long long h, LinkRecord one, RpcRequest answer, RpcRequest asked) except? -1
    cdef long long _line(self, PublishIndex index, unsigned long long h, unsigned long long vhost) except? -2
    cdef int _say_publish(self, LinkRecord one, PublishIndex lines, long long at, bint again, bint died) except? -1
    cdef RpcRequest _ask(self, LinkRecord one)
    cdef RpcRequest _waiting(self, unsigned long long h, unsigned long long vhost, bint delivered)
    cdef RpcRequest _reply(self, LinkRecord one)
    cdef int _bring(self, LinkRecord one, PublishIndex index, long long publish) except? -1
    cdef RpcRequest _unseen(self, LinkRecord one)
    cdef int _say_reply(self, LinkRecord one, RpcRequest call) except? -1


cdef unsigned long long _unsigned(long long number) except? 1

cdef class DistributedLinker:
    cdef public Linker linker
    cdef public LinkRecord one
    cdef public dict columns
    cdef public long long rows
    cdef public Integers task, message, published_packet_number, published_connection_id
    cdef public Integers published_ns, delivery_number, link_confidence
    cdef public Integers request_packet_number, request_connection_id, request_ns, reply_late
    cpdef int feed(self, dict columns, long long count) except? -1
    cdef int _begin(self, long long count) except? -1
    cdef int _close(self, long long connection, long long close_ns, bint over) except? -1
    cdef int _put(self, long long task, long long message) except? -1
