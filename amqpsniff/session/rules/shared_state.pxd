# Written by `python -m tests.house.declarations`.
from amqpsniff.findings.finding cimport Finding
from amqpsniff.session.rules.context cimport RuleContext

cpdef object remember(RuleContext context, dict memory, object key, object new)
cpdef object remembered(RuleContext context, str name, object key, object make)

cdef class _Verdict:
    cdef public str code
    cdef public str words
    cdef public object key
    cdef public object first
    cdef public Finding finding

cdef class Alike:
    cdef public object judge
    cdef public object requires
    cdef public object method
    cdef public bint whole
    cdef public bint at_first
    cdef public bint of_server
    cdef public int where
    cpdef object count(self, RuleContext context, object number, long long ts_ns, object count, object last)
    cdef list _found(self, RuleContext context)
