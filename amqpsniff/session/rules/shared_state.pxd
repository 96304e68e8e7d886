from amqpsniff.findings.finding cimport Finding
from amqpsniff.session.rules.context cimport RuleContext

cdef class _Verdict:
    cdef str code, words
    cdef object key, first
    cdef Finding finding

cdef class Alike:
    cdef public object judge, requires
    cdef public object said
    cdef public bint whole, at_first, of_server
    cdef public int where
    cpdef count(self, RuleContext context, object number, long long ts_ns, object count, object last)
    cdef list _found(self, RuleContext context)

cpdef remember(RuleContext context, dict memory, object key, object new)
cpdef remembered(RuleContext context, str name, object key, object make)
cdef dict _of_server(RuleContext context)
