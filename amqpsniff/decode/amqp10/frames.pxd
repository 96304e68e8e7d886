# Written by `python -m tests.house.declarations`.
cimport cython
from amqpsniff.decode.amqp10.deliveries cimport Delivery, DeliveryAssembler
from amqpsniff.decode.amqp10.performatives cimport JsonCache, Performative, PerformativeDecoder
from amqpsniff.decode.amqp10.values cimport TypedReader
from amqpsniff.decode.frames cimport FrameHandler
from amqpsniff.decode.state cimport Half

cdef class Amqp10Half:
    cdef public long long first_part
    cdef public bint tells_redelivered
    cdef public dict under_way
    cdef public Delivery current
    cdef public set secret_links
    cdef public set managing_links
    cdef public set seen_links
    cdef public set nameless_links
    cdef public object search

@cython.final
cdef class Amqp10Frames:
    cdef public object report
    cdef public bint show_secrets
    cdef public FrameHandler handler
    cdef public PerformativeDecoder decoder
    cdef public JsonCache alike
    cdef public DeliveryAssembler deliveries
    cdef public TypedReader reader
    cdef public TypedReader scratch
    cdef Py_ssize_t frame(self, Half half, TypedReader reader, long long at, long long end, long long size) except? -2
    cdef int begin_large(self, Half half, TypedReader reader, long long at, long long end) except? -1
    cdef int transfer(self, Half half, TypedReader reader, long long at, long long end, bint whole, Performative found) except? -1
    cdef bint _is_secret(self, Half half, Performative found) except? -1
    cdef int _redact(self, Half half, Performative found) except? -1
    cdef bint _manages(self, Half half, TypedReader reader, long long at, long long end, Performative found) except? -1
    cdef int _put_managed(self, TypedReader reader, long long at, long long end) except? -1
    cdef bint _put_properties(self, TypedReader reader, long long at, long long end) except? -1
    cdef int transfer_end(self, Half half) except? -1
    cdef int finish(self, Half half) except? -1
    cdef int _learn(self, Half half, TypedReader reader, Performative found) except? -1
    cdef int _learn_link(self, Half half, TypedReader reader, Performative found) except? -1
