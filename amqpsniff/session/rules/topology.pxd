from amqpsniff.session.rules.context cimport RuleContext

cdef class Series:
    cdef public long long count, others
    cdef public object number, ts_ns, last, last_ns
    cpdef add(self, RuleContext context)
