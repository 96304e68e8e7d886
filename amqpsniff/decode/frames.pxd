# Written by `python -m tests.house.declarations`.
from amqpsniff.decode.contents cimport ContentAssembler
from amqpsniff.decode.methods cimport DecodedMethod, MethodDecoder
from amqpsniff.decode.rows cimport FrameRows, MessageRows
from amqpsniff.decode.state cimport Connection, Half
from amqpsniff.decode.values cimport Cache, ValueReader
cdef class CachedMethod
cdef class MethodCache

cdef class FrameHandler:
    cdef public object report
    cdef public bint methods_only
    cdef public object ports
    cdef public int serial
    cdef public int dialect
    cdef public FrameRows frames
    cdef public MessageRows messages
    cdef public MethodCache method_cache
    cdef public ValueReader block
    cdef public ValueReader scratch
    cdef public ContentAssembler contents
    cdef public list captures
    cdef public list claims
    cdef public dict method_numbers
    cdef public list method_names
    cdef public MethodDecoder decoder
    cdef public list connections
    cdef public list peers
    cdef int claim(self, Half half, int kind, long long offset, int channel, long long size, object payload, int method, bint exact) except? -1
    cdef int claim_body(self, Half half) except? -1
    cdef int claim_end(self, Half half, long long offset) except? -1
    cdef int _begin(self, Half half) except? -1
    cdef int _row(self, Half half) except? -1
    cdef int frame(self, Half half, ValueReader reader, long long at, long long end, bint whole) except? -1
    cdef int body(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cdef int body_bytes(self, Half half, ValueReader reader, long long at, long long count) except? -1
    cdef int body_missing(self, Half half, long long count) except? -1
    cdef int body_end(self, Half half) except? -1
    cdef int protocol_header(self, Half half) except? -1
    cdef int method(self, Half half, ValueReader reader, long long at, long long end, bint whole) except? -1
    cdef bint _reveals_secret(self, Connection connection, CachedMethod cached, ValueReader reader, long long at, long long end) except? -1
    cdef int _write_cached(self, Half half, CachedMethod cached, ValueReader reader, long long at, long long end) except? -1
    cdef int _read_method(self, Half half, ValueReader reader, long long at, long long end, bint whole) except? -1
    cdef int _pass_on(self, Half half, DecodedMethod facts, ValueReader reader, long long at, long long end) except? -1
    cdef int _unknown_method(self, Half half, ValueReader reader, long long at) except? -1
    cdef int refresh(self, Connection connection) except? -1
    cdef int _register(self, Connection connection) except? -1
    cdef list names(self)
    cdef int set_client(self, Connection connection, int direction) except? -1
    cdef int prove_role(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cdef int _learn(self, Half half, DecodedMethod facts, ValueReader reader, long long at, long long end) except? -1
    cdef int _learn_queue(self, Connection connection) except? -1
    cdef int _agree(self, Connection connection, DecodedMethod facts) except? -1
    cdef int _infer_dialect(self, Connection connection, ValueReader reader, long long at, long long end) except? -1
    cdef int _matching_facts(self, object facts, ValueReader reader, int dialect, long long at, long long end) except? -1

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
    cdef public int cell
    cdef public long long tag_at
    cdef public const unsigned char[::1] tag_places
    cdef public int[::1] last
    cdef public list methods
    cpdef int clear(self) except? -1
    cdef CachedMethod look_up(self, MethodDecoder decoder, ValueReader reader, FrameRows frames, int dialect, long long at, long long end)
    cdef bint _matches(self, ValueReader reader, int code, int dialect, long long at, long long end) except? -1
    cdef int _search(self, MethodDecoder decoder, ValueReader reader, int dialect, long long at, long long end) except? -2
    cdef bint _locate(self, ValueReader reader, int tag_place, long long at, long long end) except? -1
    cdef int _write_json(self, ValueReader reader, FrameRows frames, CachedMethod cached) except? -1
    cdef int store(self, MethodDecoder decoder, ValueReader reader, int dialect, long long at, long long end, long long mark) except? -1
    cdef int _store_json(self, ValueReader reader, CachedMethod cached, long long mark) except? -1
    cdef int end_row(self, FrameRows frames, CachedMethod cached, ValueReader reader, long long at, long long serial) except? -1
