from amqpsniff.session.rules.context cimport RuleContext

cdef class _Verdict:
    cdef str code, words
    cdef object key, first, finding

cdef class Alike:
    cdef public object judge, requires
    cdef public object said
    cdef public bint whole, at_first, of_server
    cdef public int where
    cdef _raise(self, RuleContext context, _Verdict verdict)

cdef dict _of_server(RuleContext context)
