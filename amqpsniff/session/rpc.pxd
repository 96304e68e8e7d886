from amqpsniff.session.entities cimport Session

cdef class Requester:
    cdef public Session session
    cdef public object close_ns
    cdef bint closed_before(self, long long ts_ns) except? -1

cdef class RpcRequest:
    cdef public Requester requester
    cdef public long long packet_number, ts_ns, deadline
    cdef public long long connection_id
    cdef public bint replied, delivered, forgotten
    cdef public list keys

cdef class RequestQueue:
    cdef public list calls
    cdef public Py_ssize_t start, unreplied, undelivered
    cdef Py_ssize_t last(self) except? -2
    cdef bint trim(self) except? -1

cdef class RpcRequests:
    cdef public long long most, age_ns, hits
    cdef public dict waiting, requesters
    cdef public object order
    cdef Requester requester(self, long long connection, Session session)
    cpdef object close(self, long long connection, object close_ns)
    cpdef object end(self, long long connection, object close_ns)
    cpdef int add(self, RpcRequest call, object key) except? -1
    cpdef int wait(self, RpcRequest call, object key) except? -1
    cpdef RpcRequest find(self, object key, bint delivered)
    cdef bint is_late(self, RpcRequest call, long long ts_ns) except? -1
    cdef bint _is_old(self, RpcRequest call, long long ts_ns) except? -1
    cdef int _forget(self) except? -1
