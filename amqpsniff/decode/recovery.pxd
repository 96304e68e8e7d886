from amqpsniff.decode.opening cimport OpeningFramer
from amqpsniff.decode.state cimport Half

cdef class RecoveringFramer(OpeningFramer):
    cpdef int gap(self, Half half, long long missing) except? -1
    cdef int _end_start(self, Half half) except? -1
    cdef int _lose(self, Half half, long long begin, bint forced) except? -1
    cpdef int finish(self, Half half) except? -1
    cdef long long _gap_in_counted(self, Half half, long long missing) except? -1
    cdef long long _gap_in_kept(self, Half half, long long missing) except? -1
