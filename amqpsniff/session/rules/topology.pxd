# Written by `python -m tests.house.declarations`.
from amqpsniff.session.rules.context cimport RuleContext

cdef class Series:
    cdef public long long count
    cdef public long long others
    cdef public object number
    cdef public object ts_ns
    cdef public object last
    cdef public object last_ns
    cpdef object add(self, RuleContext context)

cdef class Changes(Series):
    cdef public long long queues_made
    cdef public long long queues_deleted
    cdef public long long bindings_made
    cdef public long long bindings_deleted
    cdef public object queue
