# Written by `python -m tests.house.declarations`.
from amqpsniff.session.rules.context cimport RuleContext

cdef class Client:
    cdef public str host
    cdef public str server
    cdef public str server_host
    cdef public str user
    cdef public tuple key
    cdef public bytes start_ok
    cdef public bint on_network
    cdef public tuple texts
    cdef public int first
    cdef public dict verdicts
    cdef public object churn
    cdef public object short
cpdef Client client_of(RuleContext context)
cpdef str host_of(str end)
