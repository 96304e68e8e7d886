cdef long long mark_of(
    long long a_high, long long a_low, long long b_high, long long b_low, long long ports
) except? -1

cdef class Partition:
    cdef public object marks
    cdef bint inverted
    cdef long long[::1] known
    cdef unsigned char[::1] answers
    cdef bint takes(self, long long mark) except? -1
