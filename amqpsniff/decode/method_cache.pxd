from amqpsniff.decode.methods cimport MethodDecoder
from amqpsniff.decode.methods cimport DecodedMethod
from amqpsniff.decode.cache cimport Cache
from amqpsniff.decode.rows cimport FrameRows
from amqpsniff.decode.values cimport ValueReader

cdef class CachedMethod(DecodedMethod):
    cdef int dialect, exchange, routing_key, queue, consumer_tag
    cdef long long count, first, tag, begin, serial
    cdef long long json_start, json_cut, json_end

cdef class MethodCache(Cache):
    cdef const unsigned char[::1] places
    cdef int[::1] last
    cdef list methods
    cdef unsigned long long digest
    cdef int method, place
    cdef long long tag_at
    cpdef int clear(self) except? -1
    cdef CachedMethod look_up(self, MethodDecoder decoder, ValueReader reader, FrameRows frames, int dialect, long long at, long long end)
    cdef bint _matches(self, ValueReader reader, int code, int dialect, long long at, long long end) except? -1
    cdef int _search(self, MethodDecoder decoder, ValueReader reader, int dialect, long long at, long long end) except? -2
    cdef bint _locate(self, ValueReader reader, int place, long long at, long long end) except? -1
    cdef int _write_json(self, ValueReader reader, FrameRows frames, CachedMethod known) except? -1
    cdef CachedMethod store(self, MethodDecoder decoder, ValueReader reader, int dialect, long long at, long long end, long long mark)
    cdef int _store_json(self, ValueReader reader, CachedMethod known, long long mark) except? -1
    cdef int end_row(self, FrameRows frames, CachedMethod known, ValueReader reader, long long at, long long serial) except? -1
