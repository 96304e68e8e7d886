from amqpsniff.columns cimport Vocabulary
from amqpsniff.decode.rows cimport FrameRows, MessageRows

cdef class RouteSums:
    cdef dict numbers, sums
    cpdef list add(self, MessageRows messages, list clients)
    cpdef list drain(self)
    cdef list _numbers_of(self, Vocabulary words)

cpdef list frames_of(FrameRows frames, bytes methods, list connections)
