cdef class _Verdict:
    cdef str code
    cdef object key, words, first, finding
