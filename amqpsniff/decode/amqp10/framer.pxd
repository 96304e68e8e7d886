# Written by `python -m tests.house.declarations`.
cimport cython
from amqpsniff.decode.amqp10.frames cimport Amqp10Frames
from amqpsniff.decode.amqp10.values cimport TypedReader
from amqpsniff.decode.frames cimport FrameHandler
from amqpsniff.decode.state cimport Half

@cython.final
cdef class Amqp10Framer:
    cdef public object protocol_header
    cdef public object report
    cdef public FrameHandler handler
    cdef public Amqp10Frames frames
    cdef public const unsigned char[::1] nothing
    cpdef object begin(self, Half half)
    cpdef object search(self, Half half, bint first=*)
    cdef Py_ssize_t data(self, Half half, TypedReader reader, long long at, long long end) except? -1
    cdef Py_ssize_t _read(self, Half half, TypedReader reader, long long at, long long end) except? -1
    cdef Py_ssize_t _frames(self, Half half, TypedReader reader, long long at, long long end) except? -1
    cdef int _refuse(self, Half half) except? -1
    cdef Py_ssize_t _frame(self, Half half, TypedReader reader, long long at, long long end) except? -2
    cpdef object _claim(self, Half half, int kind, long long offset, bytes octets)
    cdef Py_ssize_t _begun(self, Half half, TypedReader reader, long long at, long long end) except? -1
    cdef Py_ssize_t _kept(self, Half half, TypedReader reader, long long at, long long end) except? -1
    cdef int _kept_header(self, Half half, TypedReader store) except? -1
    cdef int _kept_part(self, Half half, TypedReader store) except? -1
    cdef bint _is_large_transfer(self, Half half, TypedReader store, long long kept) except? -1
    cdef Py_ssize_t _counted(self, Half half, TypedReader reader, long long at, long long end) except? -1
    cdef int _end_counted(self, Half half) except? -1
    cdef int _end_large(self, Half half) except? -1
    cpdef int gap(self, Half half, long long missing) except? -1
    cdef int _search_in(self, Half half, bytes octets) except? -1
    cdef int _take_up(self, Half half, bint ended) except? -1
    cpdef object finish(self, Half half)
