from amqpsniff.session.rules.context cimport RuleContext

cdef class Client:
    cdef public str host, server, server_host
    cdef public object user, start_ok
    cdef public bint on_network
    cdef public tuple texts, key
    cdef public dict verdicts
    cdef public int first
    cdef public object churn, short

cpdef Client client_of(RuleContext context)
cpdef str host_of(str end)
