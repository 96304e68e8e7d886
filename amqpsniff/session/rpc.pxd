# Written by `python -m tests.house.declarations`.
from amqpsniff.session.entities cimport Session

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
    cdef public list calls
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
    cpdef int add(self, RpcRequest call, object key) except? -1
    cpdef int wait(self, RpcRequest call, object key) except? -1
    cpdef RpcRequest find(self, object key, bint delivered)
    cdef bint is_late(self, RpcRequest call, long long ts_ns) except? -1
    cdef bint _is_old(self, RpcRequest call, long long ts_ns) except? -1
    cdef int _forget(self) except? -1
