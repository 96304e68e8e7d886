from amqpsniff.decode.contents cimport ContentAssembler
from amqpsniff.decode.method_memory cimport MethodMemory, RememberedMethod
from amqpsniff.decode.parties cimport Parties
from amqpsniff.decode.rows cimport FrameRows, MessageRows
from amqpsniff.decode.state cimport Connection, Half
from amqpsniff.decode.values cimport ValueReader

cdef class FrameHandler(Parties):
    cdef public FrameRows frames
    cdef public MessageRows messages
    cdef public MethodMemory memory
    cdef public ValueReader block, scratch
    cdef public ContentAssembler contents
    cdef public object report
    cdef const unsigned char[::1] content, senders
    cdef public int known_methods
    cdef public list captures, claims
    cdef public dict method_names
    cdef int claim(self, Half half, int kind, long long offset, int channel, long long size, object payload, int method, bint exact) except? -1
    cdef int claim_body(self, Half half) except? -1
    cdef int claim_end(self, Half half, long long offset) except? -1
    cdef public bint methods_only
    cdef int _row(self, Half half) except? -1
    cdef int _begin(self, Half half) except? -1
    cdef int frame(self, Half half, ValueReader reader, long long at, long long end, bint whole) except? -1
    cdef int body(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cdef int body_end(self, Half half) except? -1
    cdef int protocol_header(self, Half half) except? -1
    cdef int method(self, Half half, ValueReader reader, long long at, long long end, bint whole) except? -1
    cdef int _read(self, Half half, ValueReader reader, long long at, long long end, bint whole) except? -1
    cdef bint _tells(self, Connection connection, RememberedMethod known, ValueReader reader, long long at, long long end) except? -1
    cdef int _again(self, Half half, RememberedMethod known, ValueReader reader, long long at, long long end) except? -1
    cdef int _unknown_method(self, Half half, ValueReader reader, long long at) except? -1
