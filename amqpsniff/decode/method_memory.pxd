from amqpsniff.decode.arguments cimport ArgumentDecoder
from amqpsniff.decode.memory cimport Memory
from amqpsniff.decode.rows cimport FrameRows
from amqpsniff.decode.values cimport ValueReader

cdef class MethodMemory(Memory):
    cdef const unsigned char[::1] places
    cdef long long[::1] cuts, facts, spans, names, serials
    cdef unsigned long long digest
    cdef int method
    cdef long long tag_at
    cdef int recall(self, ArgumentDecoder decoder, ValueReader reader, int dialect, long long at, long long end) except? -2
    cdef bint _locate(self, ValueReader reader, int place, long long at, long long end) except? -1
    cdef int _recite(self, ArgumentDecoder decoder, ValueReader reader, int code, int place, long long at) except? -2
    cdef int learn(self, ArgumentDecoder decoder, ValueReader reader, int dialect, long long at, long long end, long long mark) except? -2
    cdef int _learn_json(self, ValueReader reader, int code, int place, long long mark) except? -1
    cdef int end_row(self, FrameRows frames, ArgumentDecoder decoder, ValueReader reader, int code, long long serial) except? -1
