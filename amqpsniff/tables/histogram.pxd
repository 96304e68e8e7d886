cdef class Histogram:
    cdef public object storage
    cdef long long[::1] counts
    cdef public long long count, largest
    cpdef int put(self, long long value) except? -1
    cdef long long _value(self, long long number) except? -1
