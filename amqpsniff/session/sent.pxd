cdef class Sent:
    cdef long long last, publish, ack
    cdef dict others
    cdef int note(self, int kind, int method, long long number) except? -1
    cpdef packet(self, str method)
