cdef class Candidate:
    cdef public long long start, next, wake, size, missing, held
    cdef public list frames
    cdef public int kind, channel, strong
    cdef bint keeps(self) except? -1
    cdef long long turn(self) except? -1
    cdef bint worse(self, Candidate other) except? -1
