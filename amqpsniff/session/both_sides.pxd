# Written by `python -m tests.house.declarations`.
from amqpsniff.session.entities cimport Session

cpdef object login_of(Session session, object client, object server, object place)

cdef class Login:
    cdef public object client
    cdef public object server
    cdef public object place
    cdef public tuple times
    cdef public long long asked_ns
    cdef public long long done_ns

cdef class Logins:
    cdef public list latest
    cdef public set clients
    cdef public set servers
    cdef public dict begun

cdef class DoubledConnections:
    cdef public object logins
    cdef public set known
    cdef public long long count
    cpdef object opened(self, Session session)
    cpdef object found(self, object connection)
