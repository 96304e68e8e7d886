from amqpsniff.decode.framing cimport Framer
from amqpsniff.decode.state cimport Half
from amqpsniff.decode.values cimport ValueReader

cdef class OpeningFramer(Framer):
    cpdef long long begin(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cdef int _protocol_header(self, Half half, bytes octets) except? -1
