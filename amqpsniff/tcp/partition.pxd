cdef long long mark_of(
    long long a_high, long long a_low, long long b_high, long long b_low, long long ports
) except? -1

cdef class Marks:
    cdef long long[::1] known
    cdef long long[::1] answers
    cdef object find
    cdef long long number(self, long long mark) except? -3

cdef class Partition(Marks):
    pass
