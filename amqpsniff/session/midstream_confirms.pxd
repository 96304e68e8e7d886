cdef class MidstreamConfirms:
    cdef public long long before, published, answered, places, oldest
    cdef public bint missed
    cdef public long long[::1] sent
    cpdef bint is_crowded(self) except -1
    cpdef int grow(self) except? -1
    cpdef int publish(self, long long number, long long ts_ns, bint late) except? -1
    cpdef long long confirm(self, long long tag, bint multiple) except? -1
    cpdef long long place(self, long long tag) except? -1
    cpdef int forget(self) except? -1
