# Written by `python -m tests.house.declarations`.
from amqpsniff.decode.frames cimport FrameHandler
from amqpsniff.decode.state cimport Half
from amqpsniff.decode.values cimport ValueReader

cdef class Amqp010Framer:
    cdef public FrameHandler handler
    cpdef object begin(self, Half half)
    cdef long long data(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cdef int _take_header(self, Half half) except? -1
    cdef int _row(self, Half half) except? -1
    cdef int _refuse(self, Half half, str detail) except? -1
    cdef int gap(self, Half half, long long missing) except? -1
    cdef int lose(self, Half half) except? -1
