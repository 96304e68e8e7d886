cdef class Times:
    cdef long long[::1] times, amounts
    cdef long long count
    cdef int add(self, long long time, long long amount) except? -1
