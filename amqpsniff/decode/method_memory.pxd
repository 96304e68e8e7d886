from amqpsniff.decode.arguments cimport ArgumentDecoder
from amqpsniff.decode.facts cimport MethodFacts
from amqpsniff.decode.memory cimport Memory
from amqpsniff.decode.rows cimport FrameRows
from amqpsniff.decode.values cimport ValueReader

cdef class RememberedMethod(MethodFacts):
    cdef int dialect, exchange, routing_key, queue, consumer_tag
    cdef long long count, first, tag, begin, serial
    cdef long long json_start, json_cut, json_end

cdef class MethodMemory(Memory):
    cdef const unsigned char[::1] places
    cdef int[::1] last
    cdef list remembered
    cdef unsigned long long digest
    cdef int method, place
    cdef long long tag_at
    cpdef int forget(self) except? -1
    cdef RememberedMethod recall(self, ArgumentDecoder decoder, ValueReader reader, FrameRows frames, int dialect, long long at, long long end)
    cdef bint _takes(self, ValueReader reader, int code, int dialect, long long at, long long end) except? -1
    cdef int _search(self, ArgumentDecoder decoder, ValueReader reader, int dialect, long long at, long long end) except? -2
    cdef bint _locate(self, ValueReader reader, int place, long long at, long long end) except? -1
    cdef int _recite(self, ValueReader reader, FrameRows frames, RememberedMethod known) except? -1
    cdef RememberedMethod learn(self, ArgumentDecoder decoder, ValueReader reader, int dialect, long long at, long long end, long long mark)
    cdef int _learn_json(self, ValueReader reader, RememberedMethod known, long long mark) except? -1
    cdef int end_row(self, FrameRows frames, RememberedMethod known, ValueReader reader, long long at, long long serial) except? -1
