# Written by `python -m tests.house.declarations`.
from amqpsniff.decode.messages cimport MessageWriter
from amqpsniff.decode.methods cimport DecodedMethod
from amqpsniff.decode.properties cimport PropertyDecoder
from amqpsniff.decode.rows cimport FrameRows
from amqpsniff.decode.state cimport Content, Half, MemoryBudget
from amqpsniff.decode.values cimport ValueReader

cdef class ContentAssembler:
    cdef public object report
    cdef public object new_hash
    cdef public bint keep_bodies
    cdef public bint keeps_all
    cdef public bint unread
    cdef public bint marking
    cdef public bint marking_all
    cdef public long long held
    cdef public long long opened
    cdef public long long least_kept
    cdef public long long most_kept
    cdef public long long most_held
    cdef public unsigned long long seed
    cdef public FrameRows frames
    cdef public MessageWriter writer
    cdef public PropertyDecoder properties
    cdef public MemoryBudget budget
    cdef public list losses
    cdef Content _find(self, Half half, int channel)
    cdef Content _place(self, Half half, int channel)
    cdef int method(self, Half half, DecodedMethod facts, ValueReader reader, long long at, long long end) except? -1
    cdef int other_method(self, Half half) except? -1
    cdef int _interrupt(self, Half half, Content content) except? -1
    cdef int lose(self, Half half, long long begin) except? -1
    cdef int header(self, Half half, ValueReader reader, long long at, long long end, bint whole) except? -1
    cdef unsigned long long _mark(self, ValueReader reader, long long at, long long end) except? 1
    cdef int _keep_header(self, Content content, ValueReader reader, long long at, long long end) except? -1
    cdef bint _may_return(self, Content content) except? -1
    cdef int _begin_body(self, Half half, Content content) except? -1
    cdef int _check_header(self, Half half, Content content, ValueReader reader, long long at, long long end, bint whole) except? -1
    cdef Content _awaiting(self, Half half)
    cdef int body_bytes(self, Half half, ValueReader reader, long long at, long long count) except? -1
    cdef int _take(self, Half half, Content content, ValueReader reader, long long at, long long count) except? -1
    cpdef int _let_go(self, Content content) except? -1
    cdef int body_missing(self, Half half, long long count) except? -1
    cdef int body_end(self, Half half) except? -1
    cpdef int finish(self, Half half) except? -1
    cdef int _end(self, Half half, Content content, int status) except? -1
