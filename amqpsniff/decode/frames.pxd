from amqpsniff.decode.arguments cimport ArgumentDecoder
from amqpsniff.decode.contents cimport ContentAssembler
from amqpsniff.decode.facts cimport MethodFacts
from amqpsniff.decode.method_memory cimport MethodMemory
from amqpsniff.decode.rows cimport FrameRows, MessageRows
from amqpsniff.decode.state cimport Connection, Half
from amqpsniff.decode.values cimport ValueReader

cdef class FrameHandler:
    cdef public FrameRows frames
    cdef public MessageRows messages
    cdef public ArgumentDecoder decoder
    cdef public MethodMemory memory
    cdef public ValueReader block, scratch
    cdef public ContentAssembler contents
    cdef public object report, ports
    cdef const unsigned char[::1] content, senders, dialects
    cdef public int known_methods, serial
    cdef public list connections, peers, captures, claims
    cdef public dict method_names
    cdef int refresh(self, Connection connection) except? -1
    cdef int _register(self, Connection connection) except? -1
    cdef int set_client(self, Connection connection, int direction) except? -1
    cdef int claim(self, Half half, int kind, long long offset, int channel, long long size, object payload, int method, bint exact) except? -1
    cdef int claim_body(self, Half half) except? -1
    cdef int claim_end(self, Half half, long long offset) except? -1
    cdef int _begin(self, Half half, long long number, long long ts_ns, int channel, int frame_type, long long size) except? -1
    cdef int frame(self, Half half, ValueReader reader, int frame_type, int channel, long long size, long long at, long long end, bint whole, long long number, long long ts_ns) except? -1
    cdef int body_end(self, Half half, long long number, long long ts_ns) except? -1
    cdef int protocol_header(self, Half half, long long number, long long ts_ns) except? -1
    cdef int _method(self, Half half, ValueReader reader, int channel, long long size, long long at, long long end, bint whole, long long number, long long ts_ns) except? -1
    cdef int weigh(self, facts, ValueReader reader, int dialect, long long at, long long end) except? -1
    cdef int prove_role(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cdef int _learn(self, Half half, MethodFacts facts, ValueReader reader, long long at, long long end) except? -1
    cdef int _vote(self, Connection connection, ValueReader reader, long long at, long long end) except? -1
    cdef int _unknown_method(self, Half half, ValueReader reader, int channel, long long size, long long at, long long number, long long ts_ns) except? -1
