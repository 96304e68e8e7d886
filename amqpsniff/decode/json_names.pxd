# Written by `python -m tests.house.declarations`.
cimport cython
from amqpsniff.columns cimport Octets
from amqpsniff.decode.octets cimport ByteReader

@cython.final
cdef class Layout:
    cdef public long long size
    cdef public int luck
    cdef public unsigned long long shape
    cdef public bytes requested
    cdef public bytes octets
    cdef public bytes marks
    cdef public long long[::1] indices
    cdef public long long[::1] starts
    cdef public long long[::1] ends
    cdef bint is_to_learn(self, long long size, bytes requested) except? -1

@cython.final
cdef class ObjectNames(ByteReader):
    cdef public unsigned long long shape
    cdef public long long round
    cdef public list inside
    cdef public list layouts
    cdef public ObjectNames nested
    cdef public Octets octets
    cdef public long long outer_round
    cdef public list names
    cdef public int[::1] slots
    cdef public unsigned long long[::1] hashes
    cdef public long long[::1] starts
    cdef public long long[::1] ends
    cdef public long long[::1] rounds
    cdef public unsigned long long[::1] sizes
    cdef bint has(self, int index) except? -1
    cpdef int forget(self) except? -1
    cdef bint is_plain(self, int index) except? -1
    cdef bint is_null(self, int index) except? -1
    cdef bytes text(self, int index)
    cdef Py_ssize_t digits(self, int index, tuple path) except? -2
    cpdef Py_ssize_t instant(self, int index) except? -2
    cdef Py_ssize_t _number(self, long long at, int count) except? -2
    cpdef object value(self, int index)
    cdef object _value_of(self, bytes octets)
    cpdef object along(self, int index, int within, tuple path)
    cdef ObjectNames enter(self, int index)
    cdef Py_ssize_t _open(self, ObjectNames outer, long long start, long long end) except? -2
    cdef bint _unescape(self, long long at, long long end, Octets out) except? -1
    cdef object _along(self, long long at, long long end, tuple path)
    cdef Py_ssize_t _step(self, long long at, long long end, object step) except? -2
    cdef Py_ssize_t _member(self, long long at, long long end, bytes name) except? -2
    cdef Py_ssize_t _item(self, long long at, long long end, long long index) except? -2
    cdef Py_ssize_t _next(self, long long at, long long end) except? -2
    cdef int _index_of(self, long long at, long long end) except? -2
    cpdef int read(self, const unsigned char[::1] data, long long at, long long end, bytes requested=*) except? -1
    cdef bint _is_like(self, Layout layout, long long at) except? -1
    cdef int _recall(self, Layout layout, long long at) except? -1
    cdef int _learn(self, Layout layout, long long at, long long end, bytes marks) except? -1
    cdef int _loosen(self, bytearray marks, long long base, long long at, long long end) except? -1
    cdef Py_ssize_t _read(self, long long at, long long end, bytes requested, bytearray marks) except? -2
    cdef Py_ssize_t _blank(self, long long at, long long end) except? -2
    cdef Py_ssize_t _value_end(self, long long at, long long end) except? -2
    cdef Py_ssize_t _text_end(self, long long at, long long end) except? -2
    cdef Py_ssize_t _escape(self, long long at, long long end) except? -2
    cdef bint _is_plain(self, long long at, long long end) except? -1
