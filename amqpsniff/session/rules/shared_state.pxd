cdef class _Verdict:
    cdef str code, words
    cdef object key, first, finding

cdef class Alike:
    cdef public object judge, requires
    cdef public tuple said
    cdef public bint whole, at_first, of_server
    cdef public int where
