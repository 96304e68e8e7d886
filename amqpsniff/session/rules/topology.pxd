from amqpsniff.session.rules.context cimport RuleContext

cdef class Series:
    cdef public long long count, others
    cdef public object number, ts_ns, last, last_ns
    cpdef add(self, RuleContext context)

cdef class Changes(Series):
    cdef public long long queues_made, queues_deleted, bindings_made, bindings_deleted
    cdef public object queue
