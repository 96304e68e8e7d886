# Written by `python -m tests.house.declarations`.

cdef class Times:
    cdef public long long[::1] times
    cdef public long long[::1] amounts
    cdef public long long count
    cdef int add(self, long long time, long long amount) except? -1
