from amqpsniff.decode.frames cimport FrameHandler
from amqpsniff.decode.properties cimport PropertyDecoder
from amqpsniff.decode.state cimport Half
from amqpsniff.decode.values cimport ValueReader

cdef class FrameProbe:
    cdef public FrameHandler handler
    cdef public ValueReader reader
    cdef public PropertyDecoder properties
    cdef public int kind, channel
    cdef public long long size
    cdef int header(self, Half half, long long at, long long have, bint forced) except? -2
    cdef bint strong(self, Half half, int kind, int channel, long long at, long long size) except? -1
    cdef long long _limit(self, Half half, int kind) except? -1
    cdef bint _is_protocol_header(self, long long at) except? -1
    cdef bint _is_method(self, Half half, int class_id, int method_id) except? -1
