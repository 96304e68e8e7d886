from amqpsniff.decode.rows cimport FrameRows

cdef class HandshakeArguments:
    cdef public bytes json
    cdef public bint whole
    cdef public long long uses

cdef class Request:
    cdef public int method, side
    cdef public FrameRows rows
    cdef public long long row, number, ts_ns
    cdef public object subject
    cdef public bint sure

cdef class MethodFrame:
    cdef public str name
    cdef public int method, side, flags, reply_code
    cdef public FrameRows rows
    cdef public long long row, number, ts_ns

cdef Request request_of(FrameRows rows, long long row)
cdef MethodFrame frame_of(str name, FrameRows rows, long long row)
