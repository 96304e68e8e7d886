# Written by `python -m tests.house.declarations`.

cdef class UnnumberedConfirms:
    cdef public long long counted
    cdef public long long before
    cdef public long long published
    cdef public long long answered
    cdef public long long places
    cdef public long long oldest
    cdef public bint missed
    cdef public long long[::1] sent
    cpdef int forget(self) except? -1
    cpdef bint is_crowded(self) except? -1
    cpdef int grow(self) except? -1
    cpdef int publish(self, long long number, long long ts_ns, bint late) except? -1
    cpdef long long confirm(self, long long tag, bint multiple) except? -1
    cpdef long long place(self, long long tag) except? -1
