# Written by `python -m tests.house.declarations`.
cimport cython
from amqpsniff.decode.rows cimport FrameRows

cdef class HandshakeArguments:
    cdef public bint whole
    cdef public long long uses
    cdef public bytes json

@cython.freelist(64)
cdef class Request:
    cdef public int method
    cdef public int side
    cdef public FrameRows rows
    cdef public long long row
    cdef public long long number
    cdef public long long ts_ns
    cdef public object subject
    cdef public bint sure
cdef Request request_of(FrameRows rows, long long row)

@cython.freelist(8)
cdef class MethodFrame:
    cdef public str name
    cdef public int method
    cdef public int side
    cdef public int flags
    cdef public int reply_code
    cdef public FrameRows rows
    cdef public long long row
    cdef public long long number
    cdef public long long ts_ns
cdef MethodFrame frame_of(str name, FrameRows rows, long long row)
