# Written by `python -m tests.house.declarations`.
from amqpsniff.decode.methods cimport DecodedMethod, MethodDecoder
from amqpsniff.decode.rows cimport FrameRows
from amqpsniff.decode.values cimport Cache, ValueReader

cdef class CachedMethod(DecodedMethod):
    cdef public int dialect
    cdef public int exchange
    cdef public int routing_key
    cdef public int queue
    cdef public int consumer_tag
    cdef public long long count
    cdef public long long first
    cdef public long long tag
    cdef public long long begin
    cdef public long long serial
    cdef public long long json_start
    cdef public long long json_cut
    cdef public long long json_end

cdef class MethodCache(Cache):
    cdef public unsigned long long digest
    cdef public int method
    cdef public int place
    cdef public long long tag_at
    cdef public const unsigned char[::1] places
    cdef public int[::1] last
    cdef public list methods
    cpdef int clear(self) except? -1
    cdef CachedMethod look_up(self, MethodDecoder decoder, ValueReader reader, FrameRows frames, int dialect, long long at, long long end)
    cdef bint _matches(self, ValueReader reader, int code, int dialect, long long at, long long end) except? -1
    cdef int _search(self, MethodDecoder decoder, ValueReader reader, int dialect, long long at, long long end) except? -2
    cdef bint _locate(self, ValueReader reader, int place, long long at, long long end) except? -1
    cdef int _write_json(self, ValueReader reader, FrameRows frames, CachedMethod known) except? -1
    cdef CachedMethod store(self, MethodDecoder decoder, ValueReader reader, int dialect, long long at, long long end, long long mark)
    cdef int _store_json(self, ValueReader reader, CachedMethod known, long long mark) except? -1
    cdef int end_row(self, FrameRows frames, CachedMethod known, ValueReader reader, long long at, long long serial) except? -1
