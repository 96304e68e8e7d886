cimport cython
from amqpsniff.columns cimport Octets
from amqpsniff.decode.octets cimport ByteReader

@cython.final
cdef class Layout:
    cdef long long size
    cdef int luck
    cdef unsigned long long shape
    cdef bytes wanted, octets, marks
    cdef long long[::1] places, starts, ends
    cdef bint is_to_learn(self, long long size, bytes wanted) except? -1

@cython.final
cdef class ObjectNames(ByteReader):
    cdef public list names
    cdef public unsigned long long shape
    cdef int[::1] slots
    cdef unsigned long long[::1] hashes, sizes
    cdef long long[::1] starts, ends, rounds
    cdef long long round, outer_round
    cdef public list inside
    cdef list layouts
    cdef ObjectNames nested
    cdef Octets octets
    cdef bint has(self, int place) except? -1
    cpdef int forget(self) except? -1
    cdef bint is_null(self, int place) except? -1
    cdef bint is_plain(self, int place) except? -1
    cdef bytes text(self, int place)
    cdef Py_ssize_t digits(self, int place, tuple path) except? -2
    cpdef Py_ssize_t instant(self, int place) except? -2
    cdef Py_ssize_t _number(self, long long at, int count) except? -2
    cpdef object value(self, int place)
    cdef object _value_of(self, bytes octets)
    cpdef object along(self, int place, int within, tuple path)
    cdef ObjectNames enter(self, int place)
    cdef Py_ssize_t _open(self, ObjectNames outer, long long start, long long end) except? -2
    cdef bint _unescape(self, long long at, long long end, Octets out) except? -1
    cdef object _along(self, long long at, long long end, tuple path)
    cdef Py_ssize_t _step(self, long long at, long long end, object step) except? -2
    cdef Py_ssize_t _member(self, long long at, long long end, bytes name) except? -2
    cdef Py_ssize_t _item(self, long long at, long long end, long long index) except? -2
    cdef Py_ssize_t _next(self, long long at, long long end) except? -2
    cdef int _place(self, long long at, long long end) except? -2
    cpdef int read(self, const unsigned char[::1] data, long long at, long long end, bytes wanted=*) except? -1
    cdef bint _is_like(self, Layout layout, long long at) except? -1
    cdef int _recall(self, Layout layout, long long at) except? -1
    cdef int _learn(self, Layout layout, long long at, long long end, bytes marks) except? -1
    cdef int _loosen(self, bytearray marks, long long base, long long at, long long end) except? -1
    cdef Py_ssize_t _read(self, long long at, long long end, bytes wanted, bytearray marks) except? -2
    cdef Py_ssize_t _blank(self, long long at, long long end) except? -2
    cdef Py_ssize_t _value_end(self, long long at, long long end) except? -2
    cdef Py_ssize_t _text_end(self, long long at, long long end) except? -2
    cdef Py_ssize_t _escape(self, long long at, long long end) except? -2
    cdef bint _is_plain(self, long long at, long long end) except? -1
