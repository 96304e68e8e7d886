# Written by `python -m tests.house.declarations`.

cdef class Logins:
    cdef public list latest
    cdef public set clients
    cdef public set servers
    cdef public dict begun

cdef class DoubledConnections:
    cdef public object logins
    cdef public set known
    cdef public long long count
